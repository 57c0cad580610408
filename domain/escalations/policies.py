"""The stored escalation policies of a project, and whom their steps can page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NoReturn

from sqlalchemy import false, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.accounts.users import ERASED
from domain.alerts.reading.text import storable
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError, InvalidError
from domain.escalations.steps import (
    AnyTarget,
    NamedStep,
    NamedTarget,
    Plan,
    Step,
    Target,
    TargetKind,
    read_steps,
)
from domain.escalations.types import EscalationPolicy, EscalationStep, EscalationTarget, describe
from domain.projects.member_lists import able_people, users_with
from domain.projects.views import Namespace
from domain.types.base import columns_of
from models import Contact, OnCallSchedule, Project, User
from models import EscalationPolicy as PolicyRow
from models.folding import fold

_MISSING = {
    TargetKind.USER: "“{}” is not a member of this project who can see its alerts.",
    TargetKind.SCHEDULE: "This project has no schedule “{}”.",
    TargetKind.CHANNEL: "This project has no channel “{}”.",
}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The targets that a form offers."""

    people: tuple[EscalationTarget, ...]
    schedules: tuple[EscalationTarget, ...]
    channels: tuple[EscalationTarget, ...]


def who_may_be_paged(
    namespace: Namespace, user_ids: Collection[int], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return those of the users who can be paged for the project's alerts, with their names.

    They are people who may see the alerts, and whose account is not locked.
    """
    wanted = User.id.in_(user_ids) if user_ids else false()
    return able_people(wanted, Ability.READ_ALERTS, namespace, session=session, today=today)


def choices(namespace: Namespace, *, most: int, session: Session, today: date) -> Choices:
    """Return what a form offers, at most so many people."""
    names = users_with(Ability.READ_ALERTS, namespace, limit=most, session=session, today=today)
    wanted = User.username.in_(names)
    people = able_people(wanted, Ability.READ_ALERTS, namespace, session=session, today=today)
    return Choices(
        people=_views(TargetKind.USER, people),
        schedules=_views(TargetKind.SCHEDULE, _schedules(namespace, session=session)),
        channels=_views(TargetKind.CHANNEL, _channels(namespace, session=session)),
    )


def _views(kind: TargetKind, names: Mapping[int, str]) -> tuple[EscalationTarget, ...]:
    by_name = sorted(names.items(), key=lambda each: each[1].lower())
    return tuple(
        EscalationTarget(type=kind.value, id=number, name=name) for number, name in by_name
    )


def resolve_steps(
    steps: Sequence[NamedStep], namespace: Namespace, *, session: Session, today: date
) -> tuple[Step, ...]:
    """Return steps with the ids of their targets; raise InvalidError for what is not there."""
    wanted = {each for step in steps for each in step.targets}
    ids = {
        TargetKind.USER: _people(namespace, wanted, session=session, today=today),
        TargetKind.SCHEDULE: _schedules(namespace, session=session),
        TargetKind.CHANNEL: _channels(namespace, session=session),
    }
    by_name = {
        kind: {fold(name): number for number, name in names.items()} for kind, names in ids.items()
    }
    return tuple(
        Step(
            after=step.after,
            targets=tuple(dict.fromkeys(_resolved(each, by_name) for each in step.targets)),
            takes_turns=step.takes_turns,
        )
        for step in steps
    )


def _resolved(wanted: AnyTarget, ids: Mapping[TargetKind, Mapping[str, int]]) -> Target:
    known = ids[wanted.kind]
    if isinstance(wanted, Target):
        if wanted.id not in known.values():
            _refuse(wanted.kind, str(wanted.id))
        return wanted
    number = known.get(fold(storable(wanted.name)))
    if number is None:
        _refuse(wanted.kind, wanted.name)
    return Target(wanted.kind, number)


def _refuse(kind: TargetKind, name: str) -> NoReturn:
    raise InvalidError(_MISSING[kind].format(name[:100]), field="steps")


def _people(
    namespace: Namespace, wanted: Collection[AnyTarget], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return those wanted people who can be paged, by id."""
    people = [each for each in wanted if each.kind is TargetKind.USER]
    keys = [fold(storable(each.name)) for each in people if isinstance(each, NamedTarget)]
    ids = [each.id for each in people if isinstance(each, Target) and each.id <= LARGEST_ID]
    condition = or_(User.username_key.in_(keys), User.id.in_(ids))
    return able_people(condition, Ability.READ_ALERTS, namespace, session=session, today=today)


def _schedules(namespace: Namespace, *, session: Session) -> Mapping[int, str]:
    rows = session.execute(
        select(OnCallSchedule.id, OnCallSchedule.name).where(
            OnCallSchedule.project_id == namespace.project_id
        )
    )
    return dict(rows.all())


def _channels(namespace: Namespace, *, session: Session) -> Mapping[int, str]:
    rows = session.execute(
        select(Contact.id, Contact.label)
        .where(Contact.project_id == namespace.project_id)
        .order_by(Contact.id.desc())  # of several with one label, the first
    )
    return dict(rows.all())


def names_of(targets: Iterable[Target], *, session: Session) -> Mapping[Target, str]:
    """Return the names of targets; those that were deleted are left out."""
    ids: dict[TargetKind, set[int]] = {kind: set() for kind in TargetKind}
    for each in targets:
        ids[each.kind].add(each.id)
    statements = {
        TargetKind.USER: select(User.id, User.username).where(
            User.kind != ERASED, User.id.in_(ids[TargetKind.USER])
        ),
        TargetKind.SCHEDULE: select(OnCallSchedule.id, OnCallSchedule.name).where(
            OnCallSchedule.id.in_(ids[TargetKind.SCHEDULE])
        ),
        TargetKind.CHANNEL: select(Contact.id, Contact.label).where(
            Contact.id.in_(ids[TargetKind.CHANNEL])
        ),
    }
    return {
        Target(kind, number): name
        for kind, statement in statements.items()
        if ids[kind]
        for number, name in session.execute(statement)
    }


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
            **columns_of(row, EscalationPolicy) | {"steps": steps},
            default=row.is_default,
            repeat_pause_seconds=row.repeat_pause,
            acknowledgement_timeout_seconds=row.acknowledgement_timeout,
            summary=" ".join(describe(plan, steps)),
        )
        for row, plan, steps in zip(rows, plans, named, strict=True)
    )


def plan_of(row: PolicyRow) -> Plan:
    """Return what a stored policy does."""
    return Plan(
        steps=read_steps(row.steps),
        repeats=row.repeats,
        pause=timedelta(seconds=row.repeat_pause),
        timeout=_seconds(row.acknowledgement_timeout),
    )


def _seconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


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
                round_robin=step.takes_turns,
            )
            for step in plan.steps
        ]
        for plan in plans
    ]


def policies_with(target: Target, project_id: int, *, session: Session) -> tuple[str, ...]:
    """Return the names of the project's policies that page a target."""
    rows = session.execute(
        select(PolicyRow.name, PolicyRow.steps)
        .where(PolicyRow.project_id == project_id)
        .order_by(PolicyRow.name_key)
    )
    return tuple(
        row.name for row in rows if any(target in step.targets for step in read_steps(row.steps))
    )


def check_unused(target: Target, project_id: int, *, session: Session) -> None:
    """Raise ConflictError that names a policy if one pages the target."""
    lock_rules(project_id, session=session)  # No policy begins to page it meanwhile.
    found = policies_with(target, project_id, session=session)
    if found:
        message = (
            f"The escalation policy {found[0]} pages this {target.kind}. "
            "Take it out of the policy first."
        )
        raise ConflictError(message)
