"""The stored escalation policies of a project, with the names of their targets."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.escalations.steps import Plan, read_steps
from domain.escalations.targets import names_of
from domain.escalations.types import EscalationPolicy, EscalationStep, EscalationTarget, describe
from models import EscalationPolicy as PolicyRow
from models import Project


def lock_rules(project_id: int, *, session: Session) -> None:
    """Serialize changes of a project's policies and routes; alerts are stored meanwhile."""
    session.execute(
        select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    )


def all_policies(project_id: int, *, session: Session) -> Sequence[EscalationPolicy]:
    """Return all policies of a project by name."""
    rows = session.scalars(
        select(PolicyRow)
        .where(PolicyRow.project_id == project_id)
        .order_by(PolicyRow.name_key, PolicyRow.id)
    ).all()
    return policies_of(rows, session=session)


def policies_of(rows: Sequence[PolicyRow], *, session: Session) -> Sequence[EscalationPolicy]:
    """Return rows as policies."""
    plans = [plan_of(row) for row in rows]
    named = _named(plans, session=session)
    return tuple(
        EscalationPolicy(
            id=row.id,
            name=row.name,
            default=row.is_default,
            steps=steps,
            repeats=row.repeats,
            repeat_pause_seconds=row.repeat_pause,
            summary=" ".join(describe(plan, steps)),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row, plan, steps in zip(rows, plans, named, strict=True)
    )


def plan_of(row: PolicyRow) -> Plan:
    """Return what a stored policy does."""
    return Plan(
        steps=read_steps(row.steps),
        repeats=row.repeats,
        pause=timedelta(seconds=row.repeat_pause),
    )


def named_steps(plan: Plan, *, session: Session) -> list[EscalationStep]:
    """Return the steps of a plan with the names of their targets."""
    return _named([plan], session=session)[0]


def _named(plans: Sequence[Plan], *, session: Session) -> list[list[EscalationStep]]:
    targets = [target for plan in plans for step in plan.steps for target in step.targets]
    names = names_of(targets, session=session)
    return [
        [
            EscalationStep(
                delay_seconds=int(step.after.total_seconds()),
                targets=[
                    EscalationTarget(type=each.kind.value, id=each.id, name=names.get(each))
                    for each in step.targets
                ],
            )
            for step in plan.steps
        ]
        for plan in plans
    ]
