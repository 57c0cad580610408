"""Actions on on-call schedules and their rotations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import UserReference, find_user_references
from domain.audit.events import EventKind
from domain.core.database.pagination import fetch_list_page
from domain.core.errors import ConflictError, InvalidError
from domain.core.time_zones import normalize_zone_name
from domain.core.types.pagination import ListPage
from domain.paging.escalations.policies import check_no_policy_pages
from domain.paging.escalations.policy_steps import Target, TargetKind
from domain.paging.on_call.dependent_incident_rules import check_no_dependent_rules
from domain.paging.on_call.final_schedule import find_turn_parts
from domain.paging.on_call.lanes import Lane, LaneKind, build_lane, find_rotation_cycle
from domain.paging.on_call.moved_turns import (
    PreviousPlan,
    describe_moved_swaps_and_overrides,
    find_moved_swaps_and_overrides,
    load_previous_plan,
    move_swaps_and_overrides,
)
from domain.paging.on_call.rotation_syntax import format_cadence
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedules import (
    apply_time_zone,
    build_rotation,
    build_schedules,
    get_schedule,
    get_schedule_row,
    lock_schedule_row,
    store_rotations,
)
from domain.paging.on_call.shift_change_notices import (
    ShiftChangeContext,
    queue_notices_if_mail_is_configured,
    queue_rotation_removal_notices,
)
from domain.paging.on_call.shifts import (
    build_schedules_on_call,
    compute_balance,
    list_schedule_shifts,
    list_schedules_on_call,
)
from domain.paging.on_call.types import (
    MAX_SCHEDULE_NAME_LENGTH,
    BalanceQuery,
    NewRotation,
    NewSchedule,
    OnCallBalance,
    OnCallNowQuery,
    OnCallRotation,
    OnCallSchedule,
    OnCallShift,
    ScheduleChange,
    ScheduleOnCall,
    ScheduleQuery,
    ShiftQuery,
)
from domain.projects.row_ownership import (
    build_owner_columns,
    build_owner_match_condition,
    is_owned_by_self_or_ancestor,
)
from domain.projects.views import ProjectOrGroup
from models import OnCallSchedule as ScheduleRow

#: Maximum number of schedules in a project or group.
MAX_SCHEDULES = 50
_ORDER_COLUMNS = {"id": ScheduleRow.id, "name": ScheduleRow.name_key}


@read_action("on_call_schedules.index")
def list_schedules(
    work: UnitOfWork, holder: ProjectOrGroup, query: ScheduleQuery
) -> ListPage[OnCallSchedule]:
    """List the on-call schedules of a project or group."""
    here = is_owned_by_self_or_ancestor(
        ScheduleRow,
        holder,
        with_groups_above=query.include_ancestor_groups,
        session=work.session,
    )
    found = fetch_list_page(
        select(ScheduleRow).where(here), _ORDER_COLUMNS, query.requested_range, session=work.session
    )
    items = build_schedules(work, holder, [row[0] for row in found.items])
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@read_action("on_call_schedules.current")
def show_all_on_call(
    work: UnitOfWork, holder: ProjectOrGroup, query: OnCallNowQuery
) -> ListPage[ScheduleOnCall]:
    """Show the current and next users on call in every schedule."""
    found = list_schedules_on_call(work, holder, with_groups_above=query.include_ancestor_groups)
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@action("on_call_schedules.create")
def create_schedule(work: UnitOfWork, holder: ProjectOrGroup, new: NewSchedule) -> OnCallSchedule:
    """Create an on-call schedule.

    Raise InvalidError if a field is invalid or the maximum number of schedules is reached. Raise
    ConflictError if the name is taken.
    """
    count = select(func.count()).where(build_owner_match_condition(ScheduleRow, holder))
    if (work.session.scalar(count) or 0) >= MAX_SCHEDULES:
        message = (
            f"{holder.path} already has {MAX_SCHEDULES} on-call schedules, which is the maximum. "
            "Delete a schedule first."
        )
        raise InvalidError(message, field="name")
    row = ScheduleRow(**build_owner_columns(holder), description="", created_at=work.now)
    _store_schedule_fields(work, row, new)
    store_rotations(work, holder, row, new.rotations)
    created = get_schedule(work, holder, row.id)
    _record_schedule_event(work, holder, created, "created")
    return created


@read_action("on_call_schedules.show")
def show_schedule(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> OnCallSchedule:
    """Show an on-call schedule.

    `schedule_id` is the ID or the name of the schedule. Names are not case-sensitive. Raise
    NotFoundError if there is no such schedule.
    """
    return get_schedule(work, holder, schedule_id)


@action("on_call_schedules.change")
def change_schedule(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, change: ScheduleChange
) -> OnCallSchedule:
    """Change an on-call schedule.

    Past shifts do not change. Unchanged rotations continue, and changed rotations start again. If
    the time zone changes, all later handoffs use the new time zone. Swaps and overrides of whole
    turns move with the turns, and end if the turns no longer exist. Users of these swaps and
    overrides receive an email.

    Raise NotFoundError if there is no such schedule, InvalidError if a field is invalid, or
    ConflictError if the name is taken.
    """
    row = lock_schedule_row(work, holder, schedule_id)
    before, ahead = build_schedules(work, holder, [row])[0], load_previous_plan(work, row.id)
    _apply_schedule_change(work, holder, row, change)
    return _record_schedule_change(work, holder, before, ahead)


@action("on_call_schedules.change")
def preview_schedule_change(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, change: ScheduleChange
) -> Sequence[str]:
    """Return a sentence for each swap or override that a change to a schedule would move or end.

    Raise the same errors as the change itself.
    """
    row = lock_schedule_row(work, holder, schedule_id)
    return _preview_moved_changes(
        work, holder, row, lambda: _apply_schedule_change(work, holder, row, change)
    )


def _apply_schedule_change(
    work: UnitOfWork, holder: ProjectOrGroup, row: ScheduleRow, change: ScheduleChange
) -> None:
    _store_schedule_fields(work, row, change)
    if "rotations" in change.given_values:
        store_rotations(work, holder, row, change.rotations)
    apply_time_zone(work, holder, row)


@action("on_call_schedules.delete")
def delete_schedule(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> OnCallSchedule:
    """Delete an on-call schedule and its rotations, overrides and swaps.

    Return the deleted schedule. Raise NotFoundError if there is no such schedule. Raise
    ConflictError if the schedule is used by an escalation policy or incident rule of the project or
    group, or of a project or group below it.
    """
    row = get_schedule_row(work, holder, schedule_id)
    check_no_policy_pages(Target(TargetKind.SCHEDULE, row.id), holder, session=work.session)
    check_no_dependent_rules([row.id], holder, session=work.session)
    deleted = build_schedules(work, holder, [row])[0]
    work.session.delete(row)
    work.session.flush()
    _record_schedule_event(work, holder, deleted, "deleted")
    return deleted


@read_action("on_call_schedules.current_of_one", command="on-call")
def show_on_call(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str
) -> ScheduleOnCall:
    """Show the current and next users on call in a schedule."""
    return build_schedules_on_call(work, [get_schedule(work, holder, schedule_id)])[0]


@read_action("on_call_schedules.shifts")
def list_shifts(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, query: ShiftQuery
) -> ListPage[OnCallShift]:
    """List the shifts in a period, including gaps, overrides and swaps."""
    row = get_schedule_row(work, holder, schedule_id)
    found = list_schedule_shifts(work, row.id, query.resolve_period(work.now))
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@read_action("on_call_schedules.balance")
def show_balance(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int | str, query: BalanceQuery
) -> OnCallBalance:
    """Show the distribution of on-call time among users.

    Overrides and swaps are included.
    """
    row, asked = get_schedule_row(work, holder, schedule_id), query.resolve_period(work.now)
    # The time before the schedule was created does not count as a gap.
    within = Period(min(max(asked.start, row.created_at), asked.end), asked.end)
    return compute_balance(list_schedule_shifts(work, row.id, within), within)


@action("on_call_rotations.put")
def put_rotation(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    rotation_id: int | None,
    wanted: NewRotation | None,
) -> OnCallSchedule:
    """Add, replace or end a rotation.

    If `rotation_id` is None, add a rotation. If `wanted` is None, end the rotation. Raise
    InvalidError if a field is invalid, or ConflictError if the rotation was changed in the
    meantime.
    """
    row = lock_schedule_row(work, holder, schedule_id)
    before, ahead = build_schedules(work, holder, [row])[0], load_previous_plan(work, row.id)
    _replace_rotation(work, holder, row, before, rotation_id, wanted)
    return _record_schedule_change(work, holder, before, ahead)


@action("on_call_rotations.put")
def preview_rotation(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    rotation_id: int | None,
    wanted: NewRotation | None,
) -> Sequence[str]:
    """Return a sentence for each swap or override that `put_rotation` would move or end.

    Raise the same errors as the change itself.
    """
    row = lock_schedule_row(work, holder, schedule_id)
    before = build_schedules(work, holder, [row])[0]
    return _preview_moved_changes(
        work,
        holder,
        row,
        lambda: _replace_rotation(work, holder, row, before, rotation_id, wanted),
    )


@dataclass(frozen=True, kw_only=True)
class RotationPreview:
    """One turn of each user in a rotation that is being edited."""

    lane: Lane
    period: Period
    users: Mapping[int, UserReference]


@action("on_call_rotations.put")
def preview_turns(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    rotation_id: int | None,
    wanted: NewRotation,
) -> RotationPreview:
    """Return one turn of each user in a rotation, without storing the rotation.

    Raise InvalidError if a field is invalid.
    """
    row = get_schedule_row(work, holder, schedule_id)
    plan = build_rotation(work, holder, row, wanted, rotation_id)
    during = find_rotation_cycle(plan, work.now)
    parts = find_turn_parts(replace(plan, valid_from=during.start), during)
    users = find_user_references(
        plan.user_ids, base_url=work.settings.base_url, session=work.session
    )
    lane = build_lane(parts, during, LaneKind.ROTATION, name=plan.name)
    return RotationPreview(lane=lane, period=during, users=users)


def _preview_moved_changes(
    work: UnitOfWork, holder: ProjectOrGroup, row: ScheduleRow, change: Callable[[], None]
) -> Sequence[str]:
    """Apply a change, describe the swaps and overrides that move, and roll the change back."""
    ahead = load_previous_plan(work, row.id)
    if ahead is None:
        return ()
    attempt = work.session.begin_nested()
    try:
        change()
        after = get_schedule(work, holder, row.id)
        return describe_moved_swaps_and_overrides(
            find_moved_swaps_and_overrides(ahead, work), ShiftChangeContext(work, holder, after)
        )
    finally:
        if attempt.is_active:
            attempt.rollback()


def _replace_rotation(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    row: ScheduleRow,
    previous_schedule: OnCallSchedule,
    rotation_id: int | None,
    new_rotation: NewRotation | None,
) -> None:
    ids = [each.id for each in previous_schedule.rotations]
    if rotation_id is not None and rotation_id not in ids:
        message = "This rotation was changed or removed in the meantime. Check it and try again."
        raise ConflictError(message, field="name")
    position = len(ids) if rotation_id is None else ids.index(rotation_id)
    rotations = [
        NewRotation.model_validate(each.model_dump()) for each in previous_schedule.rotations
    ]
    rotations[position : position + 1] = [new_rotation] if new_rotation else []
    instead = {position: rotation_id} if new_rotation and rotation_id else {}
    store_rotations(work, holder, row, rotations, instead)


def _store_schedule_fields(work: UnitOfWork, row: ScheduleRow, new_schedule: NewSchedule) -> None:
    """Store the given fields of a schedule.

    Raise InvalidError if a field is invalid, or ConflictError if the name is taken.
    """
    values = new_schedule.model_dump(include=new_schedule.model_fields_set - {"rotations"})
    if "name" in values:
        values["name"] = _check_name(values["name"])
    if "time_zone" in values:
        values["time_zone"] = normalize_zone_name(values["time_zone"])
    try:
        with work.session.begin_nested():
            for name, value in values.items():
                setattr(row, name, value.strip())
            work.session.add(row)
    except IntegrityError as error:
        message = f"An on-call schedule named {values['name']} already exists here."
        raise ConflictError(message, field="name") from error


def _check_name(name: str) -> str:
    kept = name.strip()
    if not kept or not kept.isprintable():
        message = (
            f"Enter a name of at most {MAX_SCHEDULE_NAME_LENGTH} visible characters, such as "
            "Primary."
        )
        raise InvalidError(message, field="name")
    return kept


def _record_schedule_change(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    previous_schedule: OnCallSchedule,
    previous_plan: PreviousPlan | None,
) -> OnCallSchedule:
    """Log a change, and notify the affected users, unless nothing changed."""
    after = get_schedule(work, holder, previous_schedule.id)
    if after != previous_schedule:
        _record_schedule_event(work, holder, after, "changed")
        change = ShiftChangeContext(work, holder, after)
        queue_notices_if_mail_is_configured(
            queue_rotation_removal_notices, previous_schedule, change
        )
        move_swaps_and_overrides(find_moved_swaps_and_overrides(previous_plan, work), change)
    return after


def _record_schedule_event(
    work: UnitOfWork, holder: ProjectOrGroup, schedule: OnCallSchedule, change: str
) -> None:
    details = {
        "change": change,
        holder.namespace.resource_type: holder.path,
        "time_zone": schedule.time_zone,
        "rotations": [_format_rotation(each) for each in schedule.rotations],
    }
    work.record_audit_event(
        EventKind.ON_CALL_SCHEDULE_CHANGED, subject=schedule.name, details=details
    )


def _format_rotation(rotation: OnCallRotation) -> str:
    names = ", ".join(each.username for each in rotation.users)
    return f"{rotation.name}: {names}, {format_cadence(rotation.cadence)}"
