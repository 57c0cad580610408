"""Escalation policies of a project: create, change, list, find and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts.following.followers import Follower, follow, unfollow
from domain.alerts.reading.text import storable
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.escalations.state import State
from domain.escalations.steps import Plan, check_plan, read_steps, stored_steps
from domain.escalations.targets import TargetView, names_of
from domain.escalations.wording import repeat_words, step_words, target_words
from models import AlertRoute, Escalation, EscalationPolicy, Project
from models.folding import fold

_UNDER_WAY = (State.RUNNING.value, State.HELD.value)

LONGEST_NAME = 255
#: Of a project.
MOST_POLICIES = 100


@dataclass(frozen=True, kw_only=True)
class PolicyDraft:
    """What a policy is made of."""

    name: str
    plan: Plan
    is_default: bool = False


@dataclass(frozen=True, kw_only=True)
class PolicyEdit:
    """What changes in a policy; None leaves a part as it is."""

    name: str | None = None
    plan: Plan | None = None
    is_default: bool | None = None


@dataclass(frozen=True, kw_only=True)
class StepView:
    """A step with the names of its targets."""

    after: timedelta
    targets: tuple[TargetView, ...]

    @property
    def words(self) -> str:
        """The step as a sentence."""
        return step_words(self.after, [target_words(each.kind, each.name) for each in self.targets])


@dataclass(frozen=True, kw_only=True)
class PolicyView:
    """A policy with the names of its targets."""

    id: int
    name: str
    is_default: bool
    plan: Plan
    steps: tuple[StepView, ...]
    created_at: datetime
    updated_at: datetime

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it does, in words: a sentence for each step, and one for the repeats."""
        return describe(self.plan, self.steps)

    @property
    def has_gone_targets(self) -> bool:
        """Whether a target of a step was deleted."""
        return any(target.name is None for step in self.steps for target in step.targets)


def describe(plan: Plan, steps: Sequence[StepView]) -> tuple[str, ...]:
    """Return what a plan does, in words."""
    return (*(step.words for step in steps), repeat_words(plan.repeats, plan.pause))


def named_steps(plan: Plan, *, session: Session) -> tuple[StepView, ...]:
    """Return the steps of a plan with the names of their targets."""
    return _named([plan], session=session)[0]


def _named(plans: Sequence[Plan], *, session: Session) -> list[tuple[StepView, ...]]:
    targets = [target for plan in plans for step in plan.steps for target in step.targets]
    names = names_of(targets, session=session)
    return [
        tuple(
            StepView(
                after=step.after,
                targets=tuple(
                    TargetView(each.kind, each.id, names.get(each)) for each in step.targets
                ),
            )
            for step in plan.steps
        )
        for plan in plans
    ]


def plan_of(row: EscalationPolicy) -> Plan:
    """Return what a stored policy does."""
    return Plan(
        steps=read_steps(row.steps),
        repeats=row.repeats,
        pause=timedelta(seconds=row.repeat_pause),
    )


def _views(rows: Sequence[EscalationPolicy], *, session: Session) -> tuple[PolicyView, ...]:
    plans = [plan_of(row) for row in rows]
    named = _named(plans, session=session)
    return tuple(
        PolicyView(
            id=row.id,
            name=row.name,
            is_default=row.is_default,
            plan=plan,
            steps=steps,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
        for row, plan, steps in zip(rows, plans, named, strict=True)
    )


def list_policies(
    project_id: int, *, offset: int, limit: int, session: Session
) -> tuple[Sequence[PolicyView], int]:
    """Return a part of a project's policies by name, and the number of all."""
    here = select(EscalationPolicy).where(EscalationPolicy.project_id == project_id)
    rows = session.scalars(
        here.order_by(EscalationPolicy.name_key, EscalationPolicy.id).offset(offset).limit(limit)
    ).all()
    total = session.scalar(select(func.count()).select_from(here.subquery()))
    return _views(rows, session=session), total or 0


def all_policies(project_id: int, *, session: Session) -> Sequence[PolicyView]:
    """Return all policies of a project by name; there are at most MOST_POLICIES."""
    return list_policies(project_id, offset=0, limit=MOST_POLICIES, session=session)[0]


def get_policy(project_id: int, policy_id: int, *, session: Session) -> PolicyView:
    """Return a policy of a project, or raise NotFoundError."""
    return _views([_get(project_id, policy_id, session=session)], session=session)[0]


def find_policy(project_id: int, name: str, *, session: Session) -> PolicyView:
    """Return the policy with this name in any case, or its id, or raise NotFoundError."""
    row = session.scalar(
        select(EscalationPolicy).where(
            EscalationPolicy.project_id == project_id,
            EscalationPolicy.name_key == fold(storable(name).strip()),
        )
    )
    if row is not None:
        return _views([row], session=session)[0]
    if name.isascii() and name.isdecimal():
        return get_policy(project_id, int(name), session=session)
    message = f"This project has no escalation policy “{name[:100]}”."
    raise NotFoundError(message)


def _get(project_id: int, policy_id: int, *, session: Session) -> EscalationPolicy:
    row = session.get(EscalationPolicy, policy_id) if policy_id <= LARGEST_ID else None
    if row is None or row.project_id != project_id:
        message = "Escalation policy not found in this project."
        raise NotFoundError(message)
    return row


def lock_rules(project_id: int, *, session: Session) -> None:
    """Serialize changes of a project's policies and routes; alerts are stored meanwhile."""
    session.execute(
        select(Project.id).where(Project.id == project_id).with_for_update(key_share=True)
    )


def create_policy(
    project_id: int, draft: PolicyDraft, *, session: Session, now: datetime
) -> PolicyView:
    """Create a policy; raise InvalidError, or ConflictError if the name is taken.

    From then on the project's new alerts are escalated.
    """
    lock_rules(project_id, session=session)
    of_project = EscalationPolicy.project_id == project_id
    count = session.scalar(select(func.count(EscalationPolicy.id)).where(of_project)) or 0
    if count >= MOST_POLICIES:
        message = f"A project has at most {MOST_POLICIES} escalation policies."
        raise InvalidError(message)
    row = EscalationPolicy(
        project_id=project_id, name=_checked(draft.name), created_at=now, is_default=False
    )
    _fill(row, draft, session=session, now=now)
    _store(row, session=session)
    follow(project_id, Follower.ESCALATIONS, session=session)
    return _views([row], session=session)[0]


def change_policy(
    project_id: int, policy_id: int, edit: PolicyEdit, *, session: Session, now: datetime
) -> PolicyView:
    """Change a policy; raise NotFoundError, InvalidError or ConflictError.

    Escalations under way go on with the new steps at once, from the number of the step that is
    next.
    """
    lock_rules(project_id, session=session)
    row = _get(project_id, policy_id, session=session)
    session.refresh(row)
    draft = PolicyDraft(
        name=row.name if edit.name is None else edit.name,
        plan=edit.plan or plan_of(row),
        is_default=row.is_default if edit.is_default is None else edit.is_default,
    )
    with session.no_autoflush:
        row.name = _checked(draft.name)
        _fill(row, draft, session=session, now=now)
    _store(row, session=session)
    _wake_escalations(policy_id, session=session, now=now)
    return _views([row], session=session)[0]


def _fill(row: EscalationPolicy, draft: PolicyDraft, *, session: Session, now: datetime) -> None:
    if draft.is_default:
        session.execute(
            update(EscalationPolicy)
            .where(
                EscalationPolicy.project_id == row.project_id,
                EscalationPolicy.id != (row.id or 0),
                EscalationPolicy.is_default,
            )
            .values(is_default=False, updated_at=now)
        )
    check_plan(draft.plan)
    row.is_default = draft.is_default
    row.steps = stored_steps(draft.plan.steps)
    row.repeats = draft.plan.repeats
    row.repeat_pause = int(draft.plan.pause.total_seconds())
    row.updated_at = now


def _store(row: EscalationPolicy, *, session: Session) -> None:
    name = row.name
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        message = f"This project already has a policy with the name {name}."
        raise ConflictError(message, field="name") from error


def _checked(name: str) -> str:
    kept = storable(name).strip()
    if not kept or not kept.isprintable():
        message = "Enter a name with letters, digits or symbols, such as Night."
        raise InvalidError(message, field="name")
    if len(kept) > LONGEST_NAME:
        message = f"A name has at most {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    return kept


def delete_policy(
    project_id: int, policy_id: int, *, session: Session, now: datetime
) -> PolicyView:
    """Delete a policy that no route leads to; raise NotFoundError or ConflictError.

    Its escalations begin again with the policies that are chosen then. Without any policy, alerts
    of the project page nobody.
    """
    lock_rules(project_id, session=session)
    row = _get(project_id, policy_id, session=session)
    view = _views([row], session=session)[0]
    leading = select(AlertRoute.name).where(AlertRoute.policy_id == policy_id)
    routes = session.scalars(leading.order_by(AlertRoute.position)).all()
    if routes:
        message = f"The route {routes[0]} leads to this policy. Change or delete the route first."
        raise ConflictError(message, field="policy")
    _check_others_take_over(row, session=session)
    _wake_escalations(policy_id, session=session, now=now)
    session.delete(row)
    session.flush()
    of_project = EscalationPolicy.project_id == project_id
    if session.scalar(select(EscalationPolicy.id).where(of_project).limit(1)) is None:
        unfollow(project_id, Follower.ESCALATIONS, session=session)
    return view


def _check_others_take_over(row: EscalationPolicy, *, session: Session) -> None:
    """Raise ConflictError if alerts are being escalated that would page nobody from now on."""
    running = select(func.count(Escalation.id)).where(
        Escalation.policy_id == row.id, Escalation.state.in_(_UNDER_WAY)
    )
    count = session.scalar(running) or 0
    of_project = EscalationPolicy.project_id == row.project_id
    others = EscalationPolicy.id != row.id, of_project
    led_to = select(AlertRoute.policy_id).where(AlertRoute.policy_id.is_not(None))
    is_chosen = or_(EscalationPolicy.is_default, EscalationPolicy.id.in_(led_to))
    if not count or session.scalar(select(EscalationPolicy.id).where(*others, is_chosen).limit(1)):
        return
    alerts = "An alert is" if count == 1 else f"{count:,} alerts are"
    message = (
        f"{alerts} being escalated by this policy, and no other policy would page anybody. "
        "Make another policy the default one first, or acknowledge these alerts."
    )
    raise ConflictError(message, field="policy")


def _wake_escalations(policy_id: int, *, session: Session, now: datetime) -> None:
    """Let escalations of a policy that was changed or deleted look at once what follows."""
    session.execute(
        update(Escalation)
        .where(
            Escalation.policy_id == policy_id,
            Escalation.state.in_(_UNDER_WAY),
            Escalation.next_at > now,
        )
        .values(next_at=now)
        .execution_options(synchronize_session=False)
    )
