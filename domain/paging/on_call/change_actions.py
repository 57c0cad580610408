"""Actions on overrides and swaps, which change the users of shifts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import ColumnElement, func, or_, select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.accounts.profiles import user_references
from domain.audit.events import EventKind
from domain.core.clock import written
from domain.core.database.paging import LARGEST_ID, fetch_part
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.types.base import Found, columns_of
from domain.paging.on_call import notices
from domain.paging.on_call.eligible_users import id_of_candidate, ids_of
from domain.paging.on_call.final_schedule import Source, spans
from domain.paging.on_call.notices import ShiftChange
from domain.paging.on_call.schedule_queries import read_plans
from domain.paging.on_call.schedule_values import Period
from domain.paging.on_call.schedules import get_row, get_schedule
from domain.paging.on_call.types import (
    ChangeQuery,
    NewOverride,
    NewSwap,
    OnCallOverride,
    OnCallSchedule,
    OnCallSwap,
    check_is_not_over,
    checked_period,
)
from domain.projects.owners import is_used_by, lineage_of
from domain.projects.views import Holder
from models import OnCallOverride as OverrideRow
from models import OnCallSchedule as ScheduleRow
from models import OnCallSwap as SwapRow

#: Maximum number of current and future overrides of a schedule, and also of swaps.
_MOST_AHEAD = 200
_FIRST, _SECOND = ("starts_at", "ends_at"), ("other_starts_at", "other_ends_at")
#: Columns with the ids of users, by the fields with their names.
_PEOPLE = {
    "user": "user_id",
    "instead_of": "instead_of_id",
    "other_user": "other_user_id",
    "created_by": "created_by",
}
#: Sources of the shifts that a swap exchanges. Overrides take precedence over swaps.
_EXCHANGED = frozenset({Source.ROTATION, Source.SWAP})
_NAMES: Mapping[type, str] = {OverrideRow: "Override", SwapRow: "Swap"}
_Row = TypeVar("_Row", OverrideRow, SwapRow)
_Shown = TypeVar("_Shown", OnCallOverride, OnCallSwap)


@question("on_call_overrides.index")
def list_overrides(
    work: Work, holder: Holder, schedule_id: int, query: ChangeQuery
) -> Found[OnCallOverride]:
    """List the overrides of a schedule, including past overrides."""
    return _list(work, holder, schedule_id, query, OverrideRow, OnCallOverride)


@question("on_call_overrides.index")
def overrides_ahead(work: Work, holder: Holder, schedule_id: int) -> Sequence[OnCallOverride]:
    """Return the current and future overrides of a schedule, ordered by start."""
    schedule = get_row(work, holder, schedule_id)
    rows = work.session.scalars(
        select(OverrideRow)
        .where(OverrideRow.schedule_id == schedule.id, OverrideRow.ends_at > work.now)
        .order_by(OverrideRow.starts_at, OverrideRow.id)
    )
    return present_changes(work, rows, OnCallOverride)


@question("on_call_overrides.show")
def show_override(work: Work, holder: Holder, schedule_id: int, override_id: int) -> OnCallOverride:
    """Show an override.

    Raise NotFoundError if there is no such override.
    """
    schedule = get_row(work, holder, schedule_id)
    return present_changes(
        work, [_get(work, OverrideRow, schedule.id, override_id)], OnCallOverride
    )[0]


@action("on_call_overrides.create")
def create_override(
    work: Work, holder: Holder, schedule_id: int, new: NewOverride
) -> OnCallOverride:
    """Create an override that puts one user on call for a time.

    The user replaces everyone else or one other user, or is on call in addition to them. Members
    without the Maintainer role can override gaps and their own shifts. They can also add themselves
    to any shift, and add other users while they are on call. Raise InvalidError if a field is
    invalid, or ForbiddenError if the override would change the shifts of other users.
    """
    schedule = get_schedule(work, holder, schedule_id)
    new = new.in_zone(schedule.time_zone)
    user_id = id_of_candidate(work, holder, new.user, field="user")
    if new.instead_of and new.in_addition:
        message = "An override can replace a user or be in addition to the others, but not both."
        raise InvalidError(message, field="instead_of")
    during = checked_period(new.starts_at, new.ends_at, fields=_FIRST)
    check_is_not_over(during, field="ends_at", now=work.now)
    covered_id = _covered(work, schedule.id, new, user_id, during) if new.instead_of else None
    ahead = (OverrideRow.schedule_id == schedule.id) & (OverrideRow.ends_at > work.now)
    _check_count(work, ahead, "overrides")
    own_id = user_id if new.in_addition else covered_id
    if not (_may_change_all(work, holder) or (own_id and own_id == work.actor.id)):
        _check_shifts(work, schedule.id, during, is_shared=new.in_addition)
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
    work.session.flush()  # assigns the id
    made = present_changes(work, [row], OnCallOverride)[0]
    record_change(work, holder, schedule, made, "created")
    notices.tell(notices.tell_of_override, made, ShiftChange(work, holder, schedule))
    return made


@action("on_call_overrides.delete")
def end_override(work: Work, holder: Holder, schedule_id: int, override_id: int) -> OnCallOverride:
    """Delete an override, or end an override that has begun.

    Return the former override. Raise NotFoundError if there is no such override, ForbiddenError if
    it belongs to other users, or ConflictError if it has ended.
    """
    schedule = get_schedule(work, holder, schedule_id)
    row = _lock(work, OverrideRow, schedule.id, override_id)
    if not (_may_change_all(work, holder) or work.actor.id in (row.user_id, row.created_by)):
        raise ForbiddenError("You need the Maintainer role to remove another user's override.")
    if row.ends_at <= work.now:
        raise ConflictError("This override has ended. Past shifts cannot be changed.")
    ended = present_changes(work, [row], OnCallOverride)[0]
    end_override_row(row, work)
    record_change(work, holder, schedule, ended, "deleted")
    notices.tell(notices.tell_of_ended_override, ended, ShiftChange(work, holder, schedule))
    return ended


@question("on_call_swaps.index")
def list_swaps(
    work: Work, holder: Holder, schedule_id: int, query: ChangeQuery
) -> Found[OnCallSwap]:
    """List the swaps of a schedule, including past swaps."""
    return _list(work, holder, schedule_id, query, SwapRow, OnCallSwap)


@question("on_call_swaps.index")
def swaps_ahead(work: Work, holder: Holder, schedule_id: int) -> Sequence[OnCallSwap]:
    """Return the current and future swaps of a schedule, ordered by their first start."""
    schedule = get_row(work, holder, schedule_id)
    rows = work.session.scalars(
        select(SwapRow)
        .where(SwapRow.schedule_id == schedule.id, SwapRow.over_at > work.now)
        .order_by(SwapRow.starts_at, SwapRow.id)
    )
    return present_changes(work, rows, OnCallSwap)


@question("on_call_swaps.index")
def own_swaps(work: Work, holder: Holder) -> Sequence[tuple[str, OnCallSwap]]:
    """Return the actor's current and future swaps, with the time zones of their schedules.

    Only schedules that the project or group uses are included.
    """
    rows = work.session.execute(
        select(SwapRow, ScheduleRow.time_zone)
        .join(ScheduleRow, ScheduleRow.id == SwapRow.schedule_id)
        .where(
            or_(SwapRow.user_id == work.actor.id, SwapRow.other_user_id == work.actor.id),
            SwapRow.over_at > work.now,
            is_used_by(ScheduleRow, [lineage_of(holder, session=work.session)]),
        )
        .order_by(SwapRow.starts_at, SwapRow.id)
    ).all()
    shown = present_changes(work, (row[0] for row in rows), OnCallSwap)
    return tuple(zip((row[1] for row in rows), shown, strict=True))


@question("on_call_swaps.show")
def show_swap(work: Work, holder: Holder, schedule_id: int, swap_id: int) -> OnCallSwap:
    """Show a swap.

    Raise NotFoundError if there is no such swap.
    """
    schedule = get_row(work, holder, schedule_id)
    return present_changes(work, [_get(work, SwapRow, schedule.id, swap_id)], OnCallSwap)[0]


@action("on_call_swaps.create")
def create_swap(work: Work, holder: Holder, schedule_id: int, new: NewSwap) -> OnCallSwap:
    """Swap two shifts of two users.

    Members without the Maintainer role can do this if one of the shifts is their own. Of a shift
    that has begun, only the rest is exchanged. Raise InvalidError if a field is invalid, or
    ForbiddenError if both shifts belong to other users.
    """
    schedule = get_schedule(work, holder, schedule_id)
    new = new.in_zone(schedule.time_zone)
    first, second = _users(work, holder, new)
    if not (_may_change_all(work, holder) or work.actor.id in (first, second)):
        raise ForbiddenError("You need the Maintainer role to swap shifts of other users.")
    mine, theirs = _periods(work, new)
    ahead = (SwapRow.schedule_id == schedule.id) & (SwapRow.over_at > work.now)
    _check_count(work, ahead, "swaps")
    for user_id, during, (field, _), name in (
        (first, mine, _FIRST, new.user),
        (second, theirs, _SECOND, new.other_user),
    ):
        if not _is_on_call(work, schedule.id, user_id, during, by=_EXCHANGED):
            message = f"{name} has no shift from a rotation or swap in this period."
            raise InvalidError(message, field=field)
    row = SwapRow(
        schedule_id=schedule.id,
        user_id=first,
        starts_at=mine.start,
        ends_at=mine.end,
        other_user_id=second,
        other_starts_at=theirs.start,
        other_ends_at=theirs.end,
        over_at=max(mine.end, theirs.end),
        created_by=work.actor.id,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # assigns the id
    made = present_changes(work, [row], OnCallSwap)[0]
    record_change(work, holder, schedule, made, "created")
    notices.tell(notices.tell_of_swap, made, ShiftChange(work, holder, schedule))
    return made


@action("on_call_swaps.delete")
def undo_swap(work: Work, holder: Holder, schedule_id: int, swap_id: int) -> OnCallSwap:
    """Undo the remaining part of a swap.

    Return the former swap; past shifts do not change. Raise NotFoundError if there is no such swap,
    ForbiddenError if it belongs to other users, or ConflictError if it has ended.
    """
    schedule = get_schedule(work, holder, schedule_id)
    row = _lock(work, SwapRow, schedule.id, swap_id)
    concerned = (row.user_id, row.other_user_id, row.created_by)
    if not (_may_change_all(work, holder) or work.actor.id in concerned):
        raise ForbiddenError("You need the Maintainer role to undo a swap between other users.")
    if row.over_at <= work.now:
        raise ConflictError("This swap has ended. Past shifts cannot be changed.")
    undone = present_changes(work, [row], OnCallSwap)[0]
    end_swap_row(row, work)
    record_change(work, holder, schedule, undone, "deleted")
    notices.tell(notices.tell_of_undone_swap, undone, ShiftChange(work, holder, schedule))
    return undone


def end_swap_row(row: SwapRow, work: Work) -> None:
    """End a swap now; its past part does not change."""
    if min(row.starts_at, row.other_starts_at) >= work.now:
        work.session.delete(row)
    else:
        row.ends_at = max(row.starts_at, min(row.ends_at, work.now))
        row.other_ends_at = max(row.other_starts_at, min(row.other_ends_at, work.now))
        row.over_at = work.now
    work.session.flush()


def end_override_row(row: OverrideRow, work: Work) -> None:
    """End an override now; its past part does not change."""
    if row.starts_at < work.now:
        row.ends_at = work.now
    else:
        work.session.delete(row)
    work.session.flush()


def _may_change_all(work: Work, holder: Holder) -> bool:
    """Return whether the actor may change the shifts of all users, not only their own."""
    return work.actor.is_trusted or holder.can_maintain


def _list(
    work: Work,
    holder: Holder,
    schedule_id: int,
    query: ChangeQuery,
    table: type[_Row],
    resource: type[_Shown],
) -> Found[_Shown]:
    schedule = get_row(work, holder, schedule_id)
    here = select(table).where(table.schedule_id == schedule.id)
    orders = {"id": table.id, "starts_at": table.starts_at}
    found = fetch_part(here, orders, query.part, session=work.session)
    items = present_changes(work, (row[0] for row in found.items), resource)
    return Found(items=items, total=found.total, next_cursor=found.next_cursor)


def _get(work: Work, table: type[_Row], schedule_id: int, row_id: int) -> _Row:
    row = work.session.get(table, min(row_id, LARGEST_ID))
    if row is None or row.schedule_id != schedule_id:
        raise NotFoundError(f"{_NAMES[table]} not found in this schedule.")
    return row


def _lock(work: Work, table: type[_Row], schedule_id: int, row_id: int) -> _Row:
    row = _get(work, table, schedule_id, row_id)
    work.session.refresh(row, with_for_update=True)
    return row


def _check_count(work: Work, ahead: ColumnElement[bool], name: str) -> None:
    if (work.session.scalar(select(func.count()).where(ahead)) or 0) >= _MOST_AHEAD:
        message = f"A schedule can have at most {_MOST_AHEAD} current and future {name}."
        raise InvalidError(message, field="starts_at")


def _check_shifts(work: Work, schedule_id: int, during: Period, *, is_shared: bool) -> None:
    """Raise ForbiddenError if the actor would change shifts of other users without the role.

    If the actor is on call at the time, other users may be on call in addition.
    """
    within = Period(max(during.start, work.now), during.end)
    plans = read_plans([schedule_id], within, session=work.session, now=work.now)
    for span in spans(plans[schedule_id], within.start, within.end):
        others = set(span.user_ids) - {work.actor.id}
        if others and not (is_shared and work.actor.id in span.user_ids):
            message = (
                "Other users are on call in this period. You need the Maintainer role to change "
                "their shifts."
            )
            raise ForbiddenError(message)


def _covered(work: Work, schedule_id: int, new: NewOverride, user_id: int, during: Period) -> int:
    """Return the id of the user whose shifts an override takes.

    Raise InvalidError if this user has no shift in the period.
    """
    (covered_id,) = ids_of([new.instead_of], field="instead_of", session=work.session)
    if covered_id == user_id:
        message = "Users cannot cover their own shifts. Choose another user."
        raise InvalidError(message, field="user")
    within = Period(max(during.start, work.now), during.end)
    if not _is_on_call(work, schedule_id, covered_id, within, by=frozenset(Source)):
        message = f"{new.instead_of} is not on call in this period."
        raise InvalidError(message, field="instead_of")
    return covered_id


def _users(work: Work, holder: Holder, new: NewSwap) -> tuple[int, int]:
    first = id_of_candidate(work, holder, new.user, field="user")
    second = id_of_candidate(work, holder, new.other_user, field="other_user")
    if first == second:
        message = "Users cannot swap shifts with themselves. Choose two different users."
        raise InvalidError(message, field="other_user")
    return first, second


def _periods(work: Work, new: NewSwap) -> tuple[Period, Period]:
    now = work.now
    mine = checked_period(new.starts_at, new.ends_at, fields=_FIRST)
    theirs = checked_period(new.other_starts_at, new.other_ends_at, fields=_SECOND)
    check_is_not_over(mine, field=_FIRST[1], now=now)
    check_is_not_over(theirs, field=_SECOND[1], now=now)
    if mine.start < theirs.end and theirs.start < mine.end:
        message = "The two shifts overlap. Choose shifts that do not overlap."
        raise InvalidError(message, field=_SECOND[0])
    return Period(max(mine.start, now), mine.end), Period(max(theirs.start, now), theirs.end)


def _is_on_call(
    work: Work, schedule_id: int, user_id: int, during: Period, *, by: Collection[Source]
) -> bool:
    """Return whether a user has any shift in a period; within a turn, others may be on call too."""
    plans = read_plans([schedule_id], during, session=work.session, now=work.now)
    return any(
        duty.user_id == user_id and duty.source in by
        for span in spans(plans[schedule_id], during.start, during.end)
        for duty in span.duties
    )


def present_changes(
    work: Work, rows: Iterable[OverrideRow | SwapRow], resource: type[_Shown]
) -> Sequence[_Shown]:
    """Return the resources of overrides or swaps, with the names of their users."""
    columns = {field: each for field, each in _PEOPLE.items() if field in resource.model_fields}
    found = [(row, {field: getattr(row, each) for field, each in columns.items()}) for row in rows]
    named = user_references(
        (each for _, people in found for each in people.values() if each),
        base_url=work.settings.base_url,
        session=work.session,
    )
    return tuple(
        resource(
            **columns_of(row, resource)
            | {field: named.get(each or 0) for field, each in people.items()}
        )
        for row, people in found
    )


def record_change(
    work: Work,
    holder: Holder,
    schedule: OnCallSchedule,
    shown: OnCallOverride | OnCallSwap,
    change: str,
) -> None:
    """Log an audit event about an override or a swap."""
    kind = EventKind.ON_CALL_OVERRIDE_CHANGED
    details: dict[str, object] = {
        "change": change,
        holder.namespace.resource_type: holder.path,
        "user": shown.user.username,
        "starts_at": written(shown.starts_at),
        "ends_at": written(shown.ends_at),
    }
    if isinstance(shown, OnCallOverride) and shown.instead_of:
        details["instead_of"] = shown.instead_of.username
    if isinstance(shown, OnCallOverride) and shown.in_addition:
        details["in_addition"] = True
    if isinstance(shown, OnCallSwap):
        kind = EventKind.ON_CALL_SWAP_CHANGED
        details["other_user"] = shown.other_user.username
        details["other_starts_at"] = written(shown.other_starts_at)
        details["other_ends_at"] = written(shown.other_ends_at)
    work.record(kind, subject=schedule.name, details=details)
