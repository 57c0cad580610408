"""Queries of the escalation policies of projects and groups, and of the targets they can page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from sqlalchemy import false, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.access.roles import Ability
from domain.accounts.users import ERASED
from domain.alerts.reading.text import storable
from domain.core.database.locks import AdvisoryLock
from domain.core.database.paging import LARGEST_ID
from domain.core.database.rows import slices
from domain.core.errors import ConflictError, InvalidError
from domain.core.types.base import columns_of
from domain.paging.escalations.steps import (
    AnyTarget,
    NamedStep,
    NamedTarget,
    Plan,
    Step,
    Target,
    TargetKind,
    read_steps,
)
from domain.paging.escalations.types import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    describe,
)
from domain.projects.member_lists import able_people, users_with
from domain.projects.owners import (
    Lineage,
    belongs_to,
    groups_above,
    groups_of,
    is_in,
    is_used_by,
    lineage_of,
)
from domain.projects.views import Holder, Namespace
from models import Contact, Group, OnCallSchedule, Project, User
from models import EscalationPolicy as PolicyRow
from models.folding import fold

_MISSING = {
    TargetKind.USER: '"{}" is not a member who can see the alerts.',
    TargetKind.SCHEDULE: 'Schedule "{}" not found here or in the groups above.',
    TargetKind.CHANNEL: 'Channel "{}" not found here or in the groups above.',
}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The targets that a form offers."""

    people: tuple[EscalationTarget, ...]
    schedules: tuple[EscalationTarget, ...]
    channels: tuple[EscalationTarget, ...]


class _Usable(NamedTuple):
    """A schedule or channel that a policy may page."""

    id: int
    name: str
    project_id: int | None
    group_id: int | None
    #: Path of the owning group above. None if the project or group itself is the owner.
    group: str | None


class OtherPolicy(NamedTuple):
    """A policy, and the path of the project or group that owns it."""

    name: str
    path: str
    is_of_group: bool

    @property
    def url_values(self) -> Mapping[str, Any]:
        """Return the URL parameters of the pages of the owner."""
        return {"group_path" if self.is_of_group else "project_path": self.path}


def who_may_be_paged(
    namespace: Namespace, user_ids: Collection[int], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return the names of the users who can be paged for alerts of a namespace, by id.

    These are the users who may see the alerts and are not locked.
    """
    wanted = User.id.in_(user_ids) if user_ids else false()
    return able_people(wanted, Ability.READ_ALERTS, namespace, session=session, today=today)


def choices(holder: Holder, *, most: int, session: Session, today: date) -> Choices:
    """Return the targets that a form offers, with at most `most` users."""
    namespace, used = holder.namespace, lineage_of(holder, session=session)
    names = users_with(Ability.READ_ALERTS, namespace, limit=most, session=session, today=today)
    wanted = User.username.in_(names)
    people = able_people(wanted, Ability.READ_ALERTS, namespace, session=session, today=today)
    return Choices(
        people=_views(TargetKind.USER, people),
        schedules=_views(TargetKind.SCHEDULE, _offered(_schedules(used, session=session))),
        channels=_views(TargetKind.CHANNEL, _offered(_channels(used, session=session))),
    )


def _offered(found: Sequence[_Usable]) -> Mapping[int, str]:
    return {
        each.id: f"{each.name} (from {each.group})" if each.group else each.name for each in found
    }


def _views(kind: TargetKind, names: Mapping[int, str]) -> tuple[EscalationTarget, ...]:
    by_name = sorted(names.items(), key=lambda each: each[1].lower())
    return tuple(
        EscalationTarget(type=kind.value, id=number, name=name) for number, name in by_name
    )


def resolve_steps(
    steps: Sequence[NamedStep], holder: Holder, *, session: Session, today: date
) -> tuple[Step, ...]:
    """Return steps with the ids of their targets.

    Raise InvalidError if a target does not exist.
    """
    wanted = [each for step in steps for each in step.targets]
    found = resolve_targets(wanted, holder, field="steps", session=session, today=today)
    return tuple(
        Step(
            after=step.after,
            targets=tuple(dict.fromkeys(found[each] for each in step.targets)),
            takes_turns=step.takes_turns,
        )
        for step in steps
    )


def resolve_targets(
    wanted: Collection[AnyTarget], holder: Holder, *, field: str, session: Session, today: date
) -> Mapping[AnyTarget, Target]:
    """Return the targets for ids and names.

    If several targets have the name, the nearest target is used. Raise InvalidError if a target
    does not exist.
    """
    used = lineage_of(holder, session=session)
    people = _people(holder.namespace, wanted, session=session, today=today)
    found = {
        TargetKind.USER: [(name, number) for number, name in people.items()],
        TargetKind.SCHEDULE: [(each.name, each.id) for each in _schedules(used, session=session)],
        TargetKind.CHANNEL: [(each.name, each.id) for each in _channels(used, session=session)],
    }
    known = {kind: {number for _, number in pairs} for kind, pairs in found.items()}
    by_name = {
        kind: {fold(name): number for name, number in reversed(pairs)}
        for kind, pairs in found.items()
    }
    resolved: dict[AnyTarget, Target] = {}
    for each in wanted:
        if isinstance(each, Target):
            name, number = str(each.id), each.id if each.id in known[each.kind] else None
        else:
            name, number = each.name, by_name[each.kind].get(fold(storable(each.name)))
        if number is None:
            raise InvalidError(_MISSING[each.kind].format(name[:100]), field=field)
        resolved[each] = Target(each.kind, number)
    return resolved


def _people(
    namespace: Namespace, wanted: Collection[AnyTarget], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return the names of the requested users who can be paged, by id."""
    people = [each for each in wanted if each.kind is TargetKind.USER]
    keys = [fold(storable(each.name)) for each in people if isinstance(each, NamedTarget)]
    ids = [each.id for each in people if isinstance(each, Target) and each.id <= LARGEST_ID]
    condition = or_(User.username_key.in_(keys), User.id.in_(ids))
    return able_people(condition, Ability.READ_ALERTS, namespace, session=session, today=today)


def _schedules(used: Lineage, *, session: Session) -> Sequence[_Usable]:
    return _usable(OnCallSchedule, OnCallSchedule.name, used, session=session)


def _channels(used: Lineage, *, session: Session) -> Sequence[_Usable]:
    return _usable(Contact, Contact.label, used, session=session)


def _usable(
    table: Any, name: InstrumentedAttribute[str], used: Lineage, *, session: Session
) -> Sequence[_Usable]:
    """Return the usable rows of a table, the nearest owner and then the oldest row first."""
    rows = session.execute(
        select(table.id, name, table.project_id, table.group_id, Group.path)
        .outerjoin(Group, Group.id == table.group_id)
        .where(is_used_by(table, [used]))
        .order_by(table.id)
    )
    found = sorted((_Usable(*row) for row in rows), key=used.distance)
    return [each if used.distance(each) else each._replace(group=None) for each in found]


def names_of(targets: Iterable[Target], *, session: Session) -> Mapping[Target, str]:
    """Return the names of targets.

    Deleted targets are left out.
    """
    ids: dict[TargetKind, set[int]] = {kind: set() for kind in TargetKind}
    for each in targets:
        ids[each.kind].add(each.id)
    named = {
        TargetKind.USER: select(User.id, User.username).where(User.kind != ERASED),
        TargetKind.SCHEDULE: select(OnCallSchedule.id, OnCallSchedule.name),
        TargetKind.CHANNEL: select(Contact.id, Contact.label),
    }
    return {
        Target(kind, number): name
        for kind, statement in named.items()
        for some in slices([*ids[kind]])
        for number, name in session.execute(
            statement.where(statement.selected_columns.id.in_(some))
        )
    }


def lock_rules(holder: Holder, *, session: Session) -> None:
    """Serialize changes of policies and routes with changes in the groups above and below.

    While the locks are held, nothing is created in the group or transferred. The set of projects
    that use the group's rules is therefore stable. Alerts can still be stored. Raise ConflictError
    if the holder was transferred or deleted in the meantime.
    """
    if holder.is_group:
        AdvisoryLock.MOVES.take(session)
    above = select(Group.id).where(Group.id.in_(groups_above(holder, session=session)))
    table: type[Group | Project] = Group if holder.is_group else Project
    session.execute(above.order_by(Group.id).with_for_update(read=True))
    path = session.scalar(
        select(table.path)
        .where(table.id == holder.id)
        .with_for_update(key_share=not holder.is_group)
    )
    if path != holder.path:
        raise ConflictError(f"{holder.path} was transferred or deleted meanwhile. Try again.")


def all_policies(holder: Holder, *, session: Session) -> Sequence[EscalationPolicy]:
    """Return the policies of a project or group itself, ordered by name."""
    rows = session.scalars(
        select(PolicyRow)
        .where(belongs_to(PolicyRow, holder))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    ).all()
    return policies_of(rows, session=session)


def used_policies(used: Iterable[Lineage], *, session: Session) -> Sequence[EscalationPolicy]:
    """Return the policies that projects or groups use, including inherited policies, by name."""
    rows = session.scalars(
        select(PolicyRow)
        .where(is_used_by(PolicyRow, used))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    ).all()
    return policies_of(rows, session=session)


def default_among(policies: Iterable[EscalationPolicy]) -> EscalationPolicy | None:
    """Return the default policy of the nearest owner."""
    defaults = [each for each in policies if each.default]
    own = next((each for each in defaults if each.group is None), None)
    return own or max(defaults, key=lambda each: len(each.group or ""), default=None)


def policies_of(rows: Sequence[PolicyRow], *, session: Session) -> Sequence[EscalationPolicy]:
    """Return the policies of database rows."""
    plans = [plan_of(row) for row in rows]
    named = _named(plans, session=session)
    groups = groups_of(rows, session=session)
    return tuple(
        EscalationPolicy(
            **columns_of(row, EscalationPolicy) | {"steps": steps},
            group=groups.get(row.group_id),
            default=row.is_default,
            repeat_pause_seconds=row.repeat_pause,
            acknowledgement_timeout_seconds=row.acknowledgement_timeout,
            summary=" ".join(describe(plan, steps)),
        )
        for row, plan, steps in zip(rows, plans, named, strict=True)
    )


def plan_of(row: PolicyRow) -> Plan:
    """Return the plan of a stored policy."""
    return Plan(
        steps=read_steps(row.steps),
        repeats=row.repeats,
        pause=timedelta(seconds=row.repeat_pause),
        timeout=_seconds(row.acknowledgement_timeout),
        retriggers=row.retrigger_when_critical,
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


def policies_with(target: Target, holder: Holder, *, session: Session) -> tuple[OtherPolicy, ...]:
    """Return the policies that page a target, in a project or group and below it."""
    rows = session.execute(
        select(
            PolicyRow.name,
            PolicyRow.steps,
            PolicyRow.group_id,
            func.coalesce(Project.path, Group.path),
        )
        .outerjoin(Project, Project.id == PolicyRow.project_id)
        .outerjoin(Group, Group.id == PolicyRow.group_id)
        .where(is_in(PolicyRow, holder))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    )
    return tuple(
        OtherPolicy(name, path, is_of_group=group_id is not None)
        for name, steps, group_id, path in rows
        if any(target in step.targets for step in read_steps(steps))
    )


def check_unused(target: Target, holder: Holder, *, session: Session) -> None:
    """Raise ConflictError if a policy pages the target."""
    lock_rules(holder, session=session)  # Prevents new policies from using it.
    found = policies_with(target, holder, session=session)
    if found:
        where = "" if found[0].path == holder.path else f" of {found[0].path}"
        raise ConflictError(
            f"The escalation policy {found[0].name}{where} pages this {target.kind}. "
            f"Remove the {target.kind} from the policy first."
        )
