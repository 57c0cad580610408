"""Actions on overrides and swaps, which change the users on call."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, func, or_, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.profiles import find_user_references
from domain.audit.events import EventKind
from domain.core.clock import format_api_time
from domain.core.database.pagination import MAX_ID, fetch_list_page
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.paging.on_call import shift_change_notices
from domain.paging.on_call.eligible_users import find_eligible_user_id, find_user_ids
from domain.paging.on_call.final_schedule import DutySource, compute_spans
from domain.paging.on_call.schedule_plans import Period, UserPeriod
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.paging.on_call.schedules import get_schedule, get_schedule_row, lock_schedule_row
from domain.paging.on_call.shift_change_notices import ShiftChangeContext
from domain.paging.on_call.swap_request_types import OnCallSwapRequest
from domain.paging.on_call.types import (
    ChangeQuery,
    NewOverride,
    NewSwap,
    OnCallOverride,
    OnCallSchedule,
    OnCallSwap,
    SwappedShifts,
    check_period,
    check_period_not_over,
)
from domain.projects.row_ownership import build_used_by_condition, find_group_chain
from domain.projects.views import ProjectOrGroup
from models import OnCallOverride as OverrideRow
from models import OnCallSchedule as ScheduleRow
from models import OnCallSwap as SwapRow
from models import OnCallSwapRequest as SwapRequestRow

#: Maximum number of current and future overrides in a schedule. The same limit applies to swaps.
_MAX_UPCOMING_CHANGES = 200
_FIRST_FIELDS, _SECOND_FIELDS = ("starts_at", "ends_at"), ("other_starts_at", "other_ends_at")
#: Columns that contain user IDs, by the resource fields that contain the users.
_USER_COLUMNS = {
    "user": "user_id",
    "instead_of": "instead_of_id",
    "other_user": "other_user_id",
    "created_by": "created_by",
}
#: Sources of the shifts that a swap exchanges. Overrides take precedence over swaps.
SWAPPABLE_SOURCES = frozenset({DutySource.ROTATION, DutySource.SWAP})
_TABLES: Mapping[type, type[Any]] = {
    OnCallOverride: OverrideRow,
    OnCallSwap: SwapRow,
    OnCallSwapRequest: SwapRequestRow,
}
_TABLE_NAMES: Mapping[type, str] = {
    OverrideRow: "Override",
    SwapRow: "Swap",
    SwapRequestRow: "Swap request",
}
_ChangeRow = TypeVar("_ChangeRow", OverrideRow, SwapRow, SwapRequestRow)
_ChangeResource = TypeVar("_ChangeResource", OnCallOverride, OnCallSwap, OnCallSwapRequest)


@read_action("on_call_overrides.index")
def list_overrides(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: ChangeQuery
) -> ListPage[OnCallOverride]:
    """List the overrides of a schedule, including past overrides."""
    return list_shift_changes(work, holder, schedule_id, query, OnCallOverride)


@read_action("on_call_overrides.index")
def list_upcoming_overrides(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> Sequence[OnCallOverride]:
    """Return the current and future overrides of a schedule, ordered by start."""
    return _list_upcoming_changes(work, holder, schedule_id, OnCallOverride)


@read_action("on_call_overrides.show")
def show_override(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, override_id: int
) -> OnCallOverride:
    """Show an override.

    Raise NotFoundError if there is no such override.
    """
    return show_shift_change(work, holder, schedule_id, override_id, OnCallOverride)


@action("on_call_overrides.create")
def create_override(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, new: NewOverride
) -> OnCallOverride:
    """Create an override that puts one user on call for a period.

    The user replaces all other users or a single user, or is on call in addition to other users.
    Members without the Maintainer role can override gaps and their own shifts. They can also add
    themselves to any shift, and add other users to their own shifts. Raise InvalidError if a field
    is invalid, or ForbiddenError if the override would change the shifts of other users.
    """
    schedule = get_schedule(work, holder, schedule_id)
    new = new.with_time_zone(schedule.time_zone)
    user_id = find_eligible_user_id(work, holder, new.user, field="user")
    if new.instead_of and new.in_addition:
        message = "An override can replace a user or add a user to the shift, but not both."
        raise InvalidError(message, field="instead_of")
    during = check_period(new.starts_at, new.ends_at, fields=_FIRST_FIELDS)
    check_period_not_over(during, field="ends_at", now=work.now)
    covered_id = (
        _find_covered_user(work, schedule.id, new, user_id, during) if new.instead_of else None
    )
    ahead = (OverrideRow.schedule_id == schedule.id) & (OverrideRow.ends_at > work.now)
    _check_change_count(work, ahead, "overrides")
    own_id = user_id if new.in_addition else covered_id
    if not (can_change_all_shifts(work, holder) or (own_id and own_id == work.actor.id)):
        _check_no_others_on_call(work, schedule.id, during, is_shared=new.in_addition)
    row = OverrideRow(
        schedule_id=schedule.id,
        user_id=user_id,
        instead_of_id=covered_id,
        in_addition=new.in_addition,
        # Past shifts do not change.
        starts_at=max(during.start, work.now),
        ends_at=during.end,
        created_by=None if work.actor.is_trusted else work.actor.id,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    made = build_change_resources(work, [row], OnCallOverride)[0]
    change = ShiftChangeContext(work, holder, schedule)
    return record_and_announce_change(
        change, made, "created", shift_change_notices.queue_override_notices
    )


@action("on_call_overrides.delete")
def end_override(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, override_id: int
) -> OnCallOverride:
    """Delete an override, or end it early if it has started.

    Return the override as it was before. Raise NotFoundError if there is no such override,
    ForbiddenError if the override belongs to other users, or ConflictError if the override has
    ended.
    """
    schedule = get_schedule(work, holder, schedule_id)
    row = lock_shift_change_row(work, OverrideRow, schedule.id, override_id)
    if not (can_change_all_shifts(work, holder) or work.actor.id in (row.user_id, row.created_by)):
        raise ForbiddenError("You need the Maintainer role to remove another user's override.")
    if row.ends_at <= work.now:
        raise ConflictError("This override has ended. Past shifts cannot be changed.")
    ended = build_change_resources(work, [row], OnCallOverride)[0]
    end_override_row(row, work)
    change = ShiftChangeContext(work, holder, schedule)
    return record_and_announce_change(
        change, ended, "deleted", shift_change_notices.queue_ended_override_notices
    )


@read_action("on_call_swaps.index")
def list_swaps(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: ChangeQuery
) -> ListPage[OnCallSwap]:
    """List the swaps of a schedule, including past swaps."""
    return list_shift_changes(work, holder, schedule_id, query, OnCallSwap)


@read_action("on_call_swaps.index")
def list_upcoming_swaps(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> Sequence[OnCallSwap]:
    """Return the current and future swaps of a schedule, ordered by their first start."""
    return _list_upcoming_changes(work, holder, schedule_id, OnCallSwap)


@read_action("on_call_swaps.index")
def list_own_swaps(work: UnitOfWork, holder: ProjectOrGroup) -> Sequence[tuple[str, OnCallSwap]]:
    """Return the actor's current and future swaps, with the time zones of their schedules.

    Only schedules that the project or group can use are included.
    """
    rows = work.session.execute(
        select(SwapRow, ScheduleRow.time_zone)
        .join(ScheduleRow, ScheduleRow.id == SwapRow.schedule_id)
        .where(
            or_(SwapRow.user_id == work.actor.id, SwapRow.other_user_id == work.actor.id),
            SwapRow.over_at > work.now,
            build_used_by_condition(ScheduleRow, [find_group_chain(holder, session=work.session)]),
        )
        .order_by(SwapRow.starts_at, SwapRow.id)
    ).all()
    shown = build_change_resources(work, (row[0] for row in rows), OnCallSwap)
    return tuple(zip((row[1] for row in rows), shown, strict=True))


@read_action("own_on_call.show")
def find_accepted_swap_ids(work: UnitOfWork) -> Collection[int]:
    """Return the IDs of the actor's current and future swaps that result from accepted requests."""
    is_mine = or_(SwapRow.user_id == work.actor.id, SwapRow.other_user_id == work.actor.id)
    # A swap is stored at the time at which its request is accepted.
    is_answer = and_(
        SwapRequestRow.schedule_id == SwapRow.schedule_id,
        SwapRequestRow.user_id == SwapRow.user_id,
        SwapRequestRow.answered_at == SwapRow.created_at,
    )
    found = select(SwapRow.id).join(SwapRequestRow, is_answer)
    is_shown = (SwapRow.over_at > work.now, SwapRequestRow.state == "accepted")
    return set(work.session.scalars(found.where(is_mine, *is_shown)))


@read_action("on_call_swaps.show")
def show_swap(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, swap_id: int
) -> OnCallSwap:
    """Show a swap.

    Raise NotFoundError if there is no such swap.
    """
    return show_shift_change(work, holder, schedule_id, swap_id, OnCallSwap)


@action("on_call_swaps.create")
def create_swap(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, new: NewSwap
) -> OnCallSwap:
    """Swap shifts between two users immediately, without their consent.

    Members without the Maintainer role request a swap instead. If a shift has begun, only the rest
    of the shift is exchanged. Raise InvalidError if a field is invalid.
    """
    lock_schedule_row(work, holder, schedule_id)
    schedule = get_schedule(work, holder, schedule_id)
    made = store_swap(work, holder, schedule, new, created_by=work.actor.id)
    shift_change_notices.queue_notices_if_mail_is_configured(
        shift_change_notices.queue_swap_notices, made, ShiftChangeContext(work, holder, schedule)
    )
    return made


def store_swap(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule: OnCallSchedule,
    new: NewSwap,
    *,
    created_by: int | None,
) -> OnCallSwap:
    """Check a swap and store it.

    Raise InvalidError if a field is invalid.
    """
    sides = check_new_swap(work, holder, schedule, new)
    (first, mine), (second, theirs) = ((each.user_id, each.during) for each in sides)
    row = SwapRow(
        schedule_id=schedule.id,
        user_id=first,
        starts_at=mine.start,
        ends_at=mine.end,
        other_user_id=second,
        other_starts_at=theirs.start,
        other_ends_at=theirs.end,
        over_at=max(mine.end, theirs.end),
        created_by=created_by,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    made = build_change_resources(work, [row], OnCallSwap)[0]
    record_shift_change(work, holder, schedule, made, "created")
    return made


def check_new_swap(
    work: UnitOfWork, holder: ProjectOrGroup, schedule: OnCallSchedule, new: NewSwap
) -> tuple[UserPeriod, UserPeriod]:
    """Check a swap, and return its two shifts.

    Raise InvalidError if a field is invalid.
    """
    new = new.with_time_zone(schedule.time_zone)
    first, second = _find_swap_users(work, holder, new)
    mine, theirs = _check_swap_periods(work, new)
    ahead = (SwapRow.schedule_id == schedule.id) & (SwapRow.over_at > work.now)
    _check_change_count(work, ahead, "swaps")
    for user_id, during, (field, _), name in (
        (first, mine, _FIRST_FIELDS, new.user),
        (second, theirs, _SECOND_FIELDS, new.other_user),
    ):
        if not _is_on_call(work, schedule.id, user_id, during, duty_sources=SWAPPABLE_SOURCES):
            message = f"{name} has no shift from a rotation or swap in this period."
            raise InvalidError(message, field=field)
    return UserPeriod(user_id=first, during=mine), UserPeriod(user_id=second, during=theirs)


@action("on_call_swaps.delete")
def undo_swap(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, swap_id: int
) -> OnCallSwap:
    """Undo the remaining part of a swap.

    Return the swap as it was before. Past shifts do not change. Raise NotFoundError if there is no
    such swap, ForbiddenError if the swap belongs to other users, or ConflictError if the swap has
    ended.
    """
    lock_schedule_row(work, holder, schedule_id)
    schedule = get_schedule(work, holder, schedule_id)
    row = lock_shift_change_row(work, SwapRow, schedule.id, swap_id)
    concerned = (row.user_id, row.other_user_id, row.created_by)
    if not (can_change_all_shifts(work, holder) or work.actor.id in concerned):
        raise ForbiddenError("You need the Maintainer role to undo a swap between other users.")
    if row.over_at <= work.now:
        raise ConflictError("This swap has ended. Past shifts cannot be changed.")
    undone = build_change_resources(work, [row], OnCallSwap)[0]
    end_swap_row(row, work)
    change = ShiftChangeContext(work, holder, schedule)
    return record_and_announce_change(
        change, undone, "deleted", shift_change_notices.queue_undone_swap_notices
    )


def end_swap_row(row: SwapRow, work: UnitOfWork) -> None:
    """End a swap now.

    The past part of the swap does not change.
    """
    if min(row.starts_at, row.other_starts_at) >= work.now:
        work.session.delete(row)
    else:
        row.ends_at = max(row.starts_at, min(row.ends_at, work.now))
        row.other_ends_at = max(row.other_starts_at, min(row.other_ends_at, work.now))
        row.over_at = work.now
    work.session.flush()


def end_override_row(row: OverrideRow, work: UnitOfWork) -> None:
    """End an override now.

    The past part of the override does not change.
    """
    if row.starts_at < work.now:
        row.ends_at = work.now
    else:
        work.session.delete(row)
    work.session.flush()


def can_change_all_shifts(work: UnitOfWork, holder: ProjectOrGroup) -> bool:
    """Return whether the actor may change the shifts of all users."""
    return work.actor.is_trusted or holder.can_maintain


def list_shift_changes(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    query: ChangeQuery,
    kind: type[_ChangeResource],
) -> ListPage[_ChangeResource]:
    """Return one page of the list of a schedule's overrides, swaps or swap requests."""
    schedule, table = get_schedule_row(work, holder, schedule_id), _TABLES[kind]
    here = select(table).where(table.schedule_id == schedule.id)
    orders = {"id": table.id, "starts_at": table.starts_at}
    found = fetch_list_page(here, orders, query.requested_range, session=work.session)
    items = build_change_resources(work, (row[0] for row in found.items), kind)
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


def _list_upcoming_changes(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, kind: type[_ChangeResource]
) -> Sequence[_ChangeResource]:
    schedule, table = get_schedule_row(work, holder, schedule_id), _TABLES[kind]
    is_upcoming = (SwapRow.over_at if table is SwapRow else table.ends_at) > work.now
    found = select(table).where(table.schedule_id == schedule.id, is_upcoming)
    rows = work.session.scalars(found.order_by(table.starts_at, table.id))
    return build_change_resources(work, rows, kind)


def show_shift_change(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    row_id: int,
    kind: type[_ChangeResource],
) -> _ChangeResource:
    """Return the resource for an override, swap or swap request.

    Raise NotFoundError if there is no such override, swap or swap request.
    """
    schedule = get_schedule_row(work, holder, schedule_id)
    row = get_shift_change_row(work, _TABLES[kind], schedule.id, row_id)
    return build_change_resources(work, [row], kind)[0]


def get_shift_change_row(
    work: UnitOfWork, table: type[_ChangeRow], schedule_id: int, row_id: int
) -> _ChangeRow:
    """Return the database row of an override, swap or swap request.

    Raise NotFoundError if there is no such row.
    """
    row = work.session.get(table, min(row_id, MAX_ID))
    if row is None or row.schedule_id != schedule_id:
        raise NotFoundError(f"{_TABLE_NAMES[table]} not found in this schedule.")
    return row


def lock_shift_change_row(
    work: UnitOfWork, table: type[_ChangeRow], schedule_id: int, row_id: int
) -> _ChangeRow:
    """Lock and return the database row of an override, swap or swap request.

    Raise NotFoundError if there is no such row.
    """
    row = get_shift_change_row(work, table, schedule_id, row_id)
    work.session.refresh(row, with_for_update=True)
    return row


def record_and_announce_change(
    change: ShiftChangeContext,
    shown: _ChangeResource,
    verb: str,
    queue_notices: Callable[[_ChangeResource, ShiftChangeContext], None],
) -> _ChangeResource:
    """Record an audit event about a change, queue its notices, and return the changed resource."""
    record_shift_change(change.work, change.holder, change.schedule, shown, verb)
    shift_change_notices.queue_notices_if_mail_is_configured(queue_notices, shown, change)
    return shown


def _check_change_count(work: UnitOfWork, ahead: ColumnElement[bool], name: str) -> None:
    if (work.session.scalar(select(func.count()).where(ahead)) or 0) >= _MAX_UPCOMING_CHANGES:
        message = f"A schedule can have at most {_MAX_UPCOMING_CHANGES} current and future {name}."
        raise InvalidError(message, field="starts_at")


def _check_no_others_on_call(
    work: UnitOfWork, schedule_id: int, period: Period, *, is_shared: bool
) -> None:
    """Check that a period contains no shifts of other users.

    If `is_shared` is true, shifts that other users share with the actor are allowed. Raise
    ForbiddenError if the check fails.
    """
    within = Period(max(period.start, work.now), period.end)
    plans = load_schedule_plans([schedule_id], within, session=work.session, now=work.now)
    for span in compute_spans(plans[schedule_id], within.start, within.end):
        others = set(span.user_ids) - {work.actor.id}
        if others and not (is_shared and work.actor.id in span.user_ids):
            message = (
                "Other users are on call in this period. You need the Maintainer role to change "
                "their shifts."
            )
            raise ForbiddenError(message)


def _find_covered_user(
    work: UnitOfWork, schedule_id: int, new_override: NewOverride, user_id: int, period: Period
) -> int:
    """Return the ID of the user whose shifts an override takes over.

    Raise InvalidError if the user has no shift in the period.
    """
    (covered_id,) = find_user_ids(
        [new_override.instead_of], field="instead_of", session=work.session
    )
    if covered_id == user_id:
        message = "Users cannot cover their own shifts. Choose another user."
        raise InvalidError(message, field="user")
    within = Period(max(period.start, work.now), period.end)
    if not _is_on_call(work, schedule_id, covered_id, within, duty_sources=frozenset(DutySource)):
        message = f"{new_override.instead_of} is not on call in this period."
        raise InvalidError(message, field="instead_of")
    return covered_id


def _find_swap_users(
    work: UnitOfWork, holder: ProjectOrGroup, new_swap: NewSwap
) -> tuple[int, int]:
    first = find_eligible_user_id(work, holder, new_swap.user, field="user")
    second = find_eligible_user_id(work, holder, new_swap.other_user, field="other_user")
    if first == second:
        message = "Users cannot swap shifts with themselves. Choose two different users."
        raise InvalidError(message, field="other_user")
    return first, second


def _check_swap_periods(work: UnitOfWork, new_swap: NewSwap) -> tuple[Period, Period]:
    now = work.now
    mine = check_period(new_swap.starts_at, new_swap.ends_at, fields=_FIRST_FIELDS)
    theirs = check_period(new_swap.other_starts_at, new_swap.other_ends_at, fields=_SECOND_FIELDS)
    check_period_not_over(mine, field=_FIRST_FIELDS[1], now=now)
    check_period_not_over(theirs, field=_SECOND_FIELDS[1], now=now)
    if mine.start < theirs.end and theirs.start < mine.end:
        message = "The two shifts overlap. Choose shifts that do not overlap."
        raise InvalidError(message, field=_SECOND_FIELDS[0])
    return Period(max(mine.start, now), mine.end), Period(max(theirs.start, now), theirs.end)


def _is_on_call(
    work: UnitOfWork,
    schedule_id: int,
    user_id: int,
    period: Period,
    *,
    duty_sources: Collection[DutySource],
) -> bool:
    """Return whether a user has at least one shift in a period."""
    plans = load_schedule_plans([schedule_id], period, session=work.session, now=work.now)
    return any(
        duty.user_id == user_id and duty.source in duty_sources
        for span in compute_spans(plans[schedule_id], period.start, period.end)
        for duty in span.duties
    )


def build_change_resources(
    work: UnitOfWork,
    rows: Iterable[OverrideRow | SwapRow | SwapRequestRow],
    resource: type[_ChangeResource],
) -> Sequence[_ChangeResource]:
    """Return the resources of overrides or swaps, with the names of their users."""
    columns = {
        field: each for field, each in _USER_COLUMNS.items() if field in resource.model_fields
    }
    found = [(row, {field: getattr(row, each) for field, each in columns.items()}) for row in rows]
    named = find_user_references(
        (each for _, people in found for each in people.values() if each),
        base_url=work.settings.base_url,
        session=work.session,
    )
    return tuple(
        resource(
            **get_column_values(row, resource)
            | {field: named.get(each or 0) for field, each in people.items()}
        )
        for row, people in found
    )


def record_shift_change(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule: OnCallSchedule,
    shown: OnCallOverride | SwappedShifts,
    change: str,
) -> None:
    """Record an audit event about an override or a swap."""
    kind = EventKind.ON_CALL_OVERRIDE_CHANGED
    details: dict[str, object] = {
        "change": change,
        holder.namespace.resource_type: holder.path,
        "user": shown.user.username,
        "starts_at": format_api_time(shown.starts_at),
        "ends_at": format_api_time(shown.ends_at),
    }
    if isinstance(shown, OnCallOverride) and shown.instead_of:
        details["instead_of"] = shown.instead_of.username
    if isinstance(shown, OnCallOverride) and shown.in_addition:
        details["in_addition"] = True
    if isinstance(shown, SwappedShifts):
        kind = EventKind.ON_CALL_SWAP_CHANGED
        details["other_user"] = shown.other_user.username
        details["other_starts_at"] = format_api_time(shown.other_starts_at)
        details["other_ends_at"] = format_api_time(shown.other_ends_at)
    work.record_audit_event(kind, subject=schedule.name, details=details)
