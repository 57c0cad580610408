"""Queries for the escalation policies of projects and groups, and for targets of policies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from sqlalchemy import false, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.accounts.users import ERASED
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.database.bulk_statements import split_into_batches
from domain.core.database.locks import AdvisoryLock
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError, InvalidError
from domain.core.types.base import get_column_values
from domain.paging.escalations.policy_steps import (
    AnyTarget,
    EscalationPlan,
    NamedStep,
    NamedTarget,
    Step,
    Target,
    TargetKind,
    parse_stored_steps,
)
from domain.paging.escalations.types import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    describe_plan,
)
from domain.projects.member_lists import find_users_with_ability, list_usernames_with_ability
from domain.projects.row_ownership import (
    GroupChain,
    build_owner_match_condition,
    build_used_by_condition,
    find_ancestor_group_ids,
    find_group_chain,
    find_owner_group_paths,
    is_owned_in_subtree,
)
from domain.projects.views import Namespace, ProjectOrGroup
from models import Contact, Group, OnCallSchedule, Project, User
from models import EscalationPolicy as PolicyRow
from models.case_folding import fold_text

_MISSING_TARGET_MESSAGES = {
    TargetKind.USER: '"{}" is not a member who can see the alerts.',
    TargetKind.SCHEDULE: 'Schedule "{}" not found here or in ancestor groups.',
    TargetKind.CHANNEL: 'Channel "{}" not found here or in ancestor groups.',
}


@dataclass(frozen=True, kw_only=True)
class TargetChoices:
    """The targets that users can choose in a form."""

    people: tuple[EscalationTarget, ...]
    schedules: tuple[EscalationTarget, ...]
    channels: tuple[EscalationTarget, ...]


class _UsableTarget(NamedTuple):
    """A schedule or channel that a policy can page."""

    id: int
    name: str
    project_id: int | None
    group_id: int | None
    #: Path of the ancestor group that owns the target. None if the project or group itself is the
    #: owner.
    group: str | None


class PolicyReference(NamedTuple):
    """A policy, and the path of the project or group that owns it."""

    name: str
    path: str
    is_of_group: bool

    @property
    def url_values(self) -> Mapping[str, Any]:
        """URL parameters for the owner's web pages."""
        return {"group_path" if self.is_of_group else "project_path": self.path}


def find_pageable_users(
    namespace: Namespace, user_ids: Collection[int], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return the names of users who can be paged for alerts in a namespace, by user ID.

    These users have access to the alerts and are not locked.
    """
    wanted = User.id.in_(user_ids) if user_ids else false()
    return find_users_with_ability(
        wanted, Ability.READ_ALERTS, namespace, session=session, today=today
    )


def find_target_choices(
    holder: ProjectOrGroup, *, maximum: int, session: Session, today: date
) -> TargetChoices:
    """Return the targets that users can choose in a form, with at most `maximum` users."""
    namespace, used = holder.namespace, find_group_chain(holder, session=session)
    names = list_usernames_with_ability(
        Ability.READ_ALERTS, namespace, limit=maximum, session=session, today=today
    )
    wanted = User.username.in_(names)
    people = find_users_with_ability(
        wanted, Ability.READ_ALERTS, namespace, session=session, today=today
    )
    return TargetChoices(
        people=_build_choice_targets(TargetKind.USER, people),
        schedules=_build_choice_targets(
            TargetKind.SCHEDULE, _format_choice_names(_find_usable_schedules(used, session=session))
        ),
        channels=_build_choice_targets(
            TargetKind.CHANNEL, _format_choice_names(_find_usable_channels(used, session=session))
        ),
    )


def _format_choice_names(usable_targets: Sequence[_UsableTarget]) -> Mapping[int, str]:
    return {
        each.id: f"{each.name} (from {each.group})" if each.group else each.name
        for each in usable_targets
    }


def _build_choice_targets(
    kind: TargetKind, names: Mapping[int, str]
) -> tuple[EscalationTarget, ...]:
    by_name = sorted(names.items(), key=lambda each: each[1].lower())
    return tuple(
        EscalationTarget(type=kind.value, id=number, name=name) for number, name in by_name
    )


def resolve_steps(
    work: UnitOfWork, steps: Sequence[NamedStep], holder: ProjectOrGroup
) -> tuple[Step, ...]:
    """Convert steps with named targets to steps with target IDs.

    Raise InvalidError if a target does not exist.
    """
    wanted = [each for step in steps for each in step.targets]
    session, today = work.session, work.now.date()
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
    targets: Collection[AnyTarget],
    holder: ProjectOrGroup,
    *,
    field: str,
    session: Session,
    today: date,
) -> Mapping[AnyTarget, Target]:
    """Return the target for each given ID or name.

    If several targets have the same name, the nearest target is used. Raise InvalidError if a
    target does not exist.
    """
    used = find_group_chain(holder, session=session)
    people = _find_named_users(holder.namespace, targets, session=session, today=today)
    found = {
        TargetKind.USER: [(name, number) for number, name in people.items()],
        TargetKind.SCHEDULE: [
            (each.name, each.id) for each in _find_usable_schedules(used, session=session)
        ],
        TargetKind.CHANNEL: [
            (each.name, each.id) for each in _find_usable_channels(used, session=session)
        ],
    }
    known = {kind: {number for _, number in pairs} for kind, pairs in found.items()}
    by_name = {
        kind: {fold_text(name): number for name, number in reversed(pairs)}
        for kind, pairs in found.items()
    }
    resolved: dict[AnyTarget, Target] = {}
    for each in targets:
        if isinstance(each, Target):
            name, number = str(each.id), each.id if each.id in known[each.kind] else None
        else:
            name, number = (
                each.name,
                by_name[each.kind].get(fold_text(replace_unstorable_characters(each.name))),
            )
        if number is None:
            raise InvalidError(_MISSING_TARGET_MESSAGES[each.kind].format(name[:100]), field=field)
        resolved[each] = Target(each.kind, number)
    return resolved


def _find_named_users(
    namespace: Namespace, targets: Collection[AnyTarget], *, session: Session, today: date
) -> Mapping[int, str]:
    """Return the names of the requested users who can be paged, by ID."""
    people = [each for each in targets if each.kind is TargetKind.USER]
    keys = [
        fold_text(replace_unstorable_characters(each.name))
        for each in people
        if isinstance(each, NamedTarget)
    ]
    ids = [each.id for each in people if isinstance(each, Target) and each.id <= MAX_ID]
    condition = or_(User.username_key.in_(keys), User.id.in_(ids))
    return find_users_with_ability(
        condition, Ability.READ_ALERTS, namespace, session=session, today=today
    )


def _find_usable_schedules(group_chain: GroupChain, *, session: Session) -> Sequence[_UsableTarget]:
    return _find_usable_targets(OnCallSchedule, OnCallSchedule.name, group_chain, session=session)


def _find_usable_channels(group_chain: GroupChain, *, session: Session) -> Sequence[_UsableTarget]:
    return _find_usable_targets(Contact, Contact.label, group_chain, session=session)


def _find_usable_targets(
    table: Any, name: InstrumentedAttribute[str], group_chain: GroupChain, *, session: Session
) -> Sequence[_UsableTarget]:
    """Return the usable schedules or channels, nearest owner first, and then ordered by ID."""
    rows = session.execute(
        select(table.id, name, table.project_id, table.group_id, Group.path)
        .outerjoin(Group, Group.id == table.group_id)
        .where(build_used_by_condition(table, [group_chain]))
        .order_by(table.id)
    )
    found = sorted((_UsableTarget(*row) for row in rows), key=group_chain.count_levels_to_owner)
    return [
        each if group_chain.count_levels_to_owner(each) else each._replace(group=None)
        for each in found
    ]


def find_target_names(targets: Iterable[Target], *, session: Session) -> Mapping[Target, str]:
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
        for some in split_into_batches([*ids[kind]])
        for number, name in session.execute(
            statement.where(statement.selected_columns.id.in_(some))
        )
    }


def lock_policies_and_routes(holder: ProjectOrGroup, *, session: Session) -> None:
    """Lock the policies and routes that apply to a project or group.

    Concurrent changes to policies and routes in ancestor and descendant groups wait. While the
    locks are held, no project can be created in the group or transferred. The set of projects that
    use the group's policies and routes is therefore stable. Alerts can still be stored. Raise
    ConflictError if the project or group was transferred or deleted in the meantime.
    """
    if holder.is_group:
        AdvisoryLock.TRANSFERS.acquire(session)
    above = select(Group.id).where(Group.id.in_(find_ancestor_group_ids(holder, session=session)))
    table: type[Group | Project] = Group if holder.is_group else Project
    session.execute(above.order_by(Group.id).with_for_update(read=True))
    path = session.scalar(
        select(table.path)
        .where(table.id == holder.id)
        .with_for_update(key_share=not holder.is_group)
    )
    if path != holder.path:
        raise ConflictError(f"{holder.path} was transferred or deleted meanwhile. Try again.")


def list_own_policies(holder: ProjectOrGroup, *, session: Session) -> Sequence[EscalationPolicy]:
    """Return the policies owned by a project or group, ordered by name."""
    rows = session.scalars(
        select(PolicyRow)
        .where(build_owner_match_condition(PolicyRow, holder))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    ).all()
    return build_policies(rows, session=session)


def list_applicable_policies(
    group_chains: Iterable[GroupChain], *, session: Session
) -> Sequence[EscalationPolicy]:
    """Return the policies that apply to projects or groups, ordered by name.

    Inherited policies are included.
    """
    rows = session.scalars(
        select(PolicyRow)
        .where(build_used_by_condition(PolicyRow, group_chains))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    ).all()
    return build_policies(rows, session=session)


def find_default_policy(policies: Iterable[EscalationPolicy]) -> EscalationPolicy | None:
    """Return the default policy of the nearest owner, or None if no policy is the default."""
    defaults = [each for each in policies if each.default]
    own = next((each for each in defaults if each.group is None), None)
    return own or max(defaults, key=lambda each: len(each.group or ""), default=None)


def build_policies(rows: Sequence[PolicyRow], *, session: Session) -> Sequence[EscalationPolicy]:
    """Build policies from database rows."""
    plans = [build_plan(row) for row in rows]
    named = _build_plan_steps(plans, session=session)
    groups = find_owner_group_paths(rows, session=session)
    return tuple(
        EscalationPolicy(
            **get_column_values(row, EscalationPolicy) | {"steps": steps},
            group=groups.get(row.group_id),
            default=row.is_default,
            repeat_pause_seconds=row.repeat_pause,
            acknowledgement_timeout_seconds=row.acknowledgement_timeout,
            summary=" ".join(describe_plan(plan, steps)),
        )
        for row, plan, steps in zip(rows, plans, named, strict=True)
    )


def build_plan(row: PolicyRow) -> EscalationPlan:
    """Return the plan of a stored policy."""
    return EscalationPlan(
        steps=parse_stored_steps(row.steps),
        repeats=row.repeats,
        pause=timedelta(seconds=row.repeat_pause),
        timeout=_build_timedelta(row.acknowledgement_timeout),
        retriggers=row.retrigger_when_critical,
    )


def _build_timedelta(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


def build_named_steps(plan: EscalationPlan, *, session: Session) -> list[EscalationStep]:
    """Return the steps of a plan with the names of their targets."""
    return _build_plan_steps([plan], session=session)[0]


def _build_plan_steps(
    plans: Sequence[EscalationPlan], *, session: Session
) -> list[list[EscalationStep]]:
    targets = [target for plan in plans for step in plan.steps for target in step.targets]
    names = find_target_names(targets, session=session)
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


def find_policies_that_page(
    target: Target, holder: ProjectOrGroup, *, session: Session
) -> tuple[PolicyReference, ...]:
    """Return the policies that page a target, in a project or group and in its descendants."""
    rows = session.execute(
        select(
            PolicyRow.name,
            PolicyRow.steps,
            PolicyRow.group_id,
            func.coalesce(Project.path, Group.path),
        )
        .outerjoin(Project, Project.id == PolicyRow.project_id)
        .outerjoin(Group, Group.id == PolicyRow.group_id)
        .where(is_owned_in_subtree(PolicyRow, holder))
        .order_by(PolicyRow.name_key, PolicyRow.id)
    )
    return tuple(
        PolicyReference(name, path, is_of_group=group_id is not None)
        for name, steps, group_id, path in rows
        if any(target in step.targets for step in parse_stored_steps(steps))
    )


def check_no_policy_pages(target: Target, holder: ProjectOrGroup, *, session: Session) -> None:
    """Check that no policy pages the target.

    Raise ConflictError if a policy pages it.
    """
    lock_policies_and_routes(
        holder, session=session
    )  # The lock prevents other changes from using the target.
    found = find_policies_that_page(target, holder, session=session)
    if found:
        where = "" if found[0].path == holder.path else f" of {found[0].path}"
        raise ConflictError(
            f"The escalation policy {found[0].name}{where} pages this {target.kind}. "
            f"Remove the {target.kind} from the policy first."
        )
