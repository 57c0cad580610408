"""Actions on swap requests. A request changes the schedule only when the other user accepts it."""

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, func, or_, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.alerts.listing.project_selection import (
    build_member_groups_query,
    build_member_projects_query,
)
from domain.core.errors import ConflictError, ForbiddenError, InvalidError
from domain.core.types.pagination import ListPage
from domain.paging.on_call import shift_change_notices
from domain.paging.on_call.final_schedule import compute_spans
from domain.paging.on_call.overrides_and_swaps import (
    SWAPPABLE_SOURCES,
    build_change_resources,
    can_change_all_shifts,
    check_new_swap,
    list_shift_changes,
    lock_shift_change_row,
    record_and_announce_change,
    show_shift_change,
    store_swap,
)
from domain.paging.on_call.schedule_plans import Period, UserPeriod
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.paging.on_call.schedules import get_schedule, get_schedule_row, lock_schedule_row
from domain.paging.on_call.shift_change_notices import ShiftChangeContext
from domain.paging.on_call.shifts import UserSchedule, load_user_schedules
from domain.paging.on_call.swap_request_states import (
    SwapRequestParty,
    SwapRequestState,
    compute_request_state,
    find_next_state,
)
from domain.paging.on_call.swap_request_types import OnCallSwapRequest, SwapRequestAnswer
from domain.paging.on_call.types import (
    ChangeQuery,
    NewSwap,
)
from domain.projects.views import ProjectOrGroup, get_viewer
from models import OnCallSchedule as ScheduleRow
from models import OnCallSwapRequest as RequestRow

#: Maximum number of open requests in a schedule.
_MAX_OPEN_REQUESTS = 200


@read_action("on_call_swap_requests.index")
def list_swap_requests(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: ChangeQuery
) -> ListPage[OnCallSwapRequest]:
    """List the swap requests of a schedule, including answered and expired requests."""
    found = list_shift_changes(work, holder, schedule_id, query, OnCallSwapRequest)
    items = _set_current_states(work, found.items)
    return ListPage(items=items, total=found.total, next_cursor=found.next_cursor)


@read_action("on_call_swap_requests.index")
def list_open_swap_requests(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> Sequence[OnCallSwapRequest]:
    """Return the open swap requests of a schedule, oldest first."""
    schedule = get_schedule_row(work, holder, schedule_id)
    rows = work.session.scalars(
        select(RequestRow)
        .where(RequestRow.schedule_id == schedule.id, *_build_open_request_conditions(work))
        .order_by(RequestRow.id)
    )
    return build_change_resources(work, rows, OnCallSwapRequest)


@read_action("own_on_call.show")
def list_own_swap_requests(
    work: UnitOfWork,
) -> Sequence[tuple[UserSchedule, OnCallSwapRequest]]:
    """Return the open swap requests that you sent or can answer, with their schedules."""
    viewer, session, ability = get_viewer(work), work.session, Ability.ADMIN_ALERTS
    projects = build_member_projects_query(viewer, session=session, ability=ability)
    groups = build_member_groups_query(viewer, session=session, ability=ability)
    found = session.scalars(
        select(RequestRow)
        .join(ScheduleRow, ScheduleRow.id == RequestRow.schedule_id)
        .where(
            or_(RequestRow.user_id == work.actor.id, RequestRow.other_user_id == work.actor.id),
            or_(ScheduleRow.project_id.in_(projects), ScheduleRow.group_id.in_(groups)),
            *_build_open_request_conditions(work),
        )
        .order_by(RequestRow.id)
    )
    rows = found.all()
    ids = {row.schedule_id for row in rows}
    # Schedules of archived projects are left out.
    schedules = {each.id: each for each in load_user_schedules(ids, session=session)}
    shown = build_change_resources(work, rows, OnCallSwapRequest)
    return tuple(
        (schedules[row.schedule_id], each)
        for row, each in zip(rows, shown, strict=True)
        if row.schedule_id in schedules
    )


@read_action("on_call_swap_requests.show")
def show_swap_request(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, request_id: int
) -> OnCallSwapRequest:
    """Show a swap request.

    Raise NotFoundError if there is no such swap request.
    """
    shown = show_shift_change(work, holder, schedule_id, request_id, OnCallSwapRequest)
    return _set_current_states(work, [shown])[0]


@action("on_call_swap_requests.create")
def create_swap_request(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, new: NewSwap
) -> OnCallSwapRequest:
    """Create a request to swap one of your shifts with a shift of another user.

    Both shifts must be in the future. Raise InvalidError if a field is invalid, ForbiddenError if
    the first shift is not your own, or ConflictError if there is an open request for the same swap.
    """
    lock_schedule_row(work, holder, schedule_id)
    schedule = get_schedule(work, holder, schedule_id)
    new = new.with_time_zone(schedule.time_zone)
    mine, theirs = check_new_swap(work, holder, schedule, new)
    if mine.user_id != work.actor.id:
        raise ForbiddenError("You can request swaps only of your own shifts.")
    for side, field in ((mine, "starts_at"), (theirs, "other_starts_at")):
        if side.during.start <= work.now:
            message = "This shift has started. Choose a shift that starts later, or find cover."
            raise InvalidError(message, field=field)
    _check_open_requests(work, schedule.id, mine, theirs)
    row = RequestRow(
        schedule_id=schedule.id,
        user_id=mine.user_id,
        starts_at=mine.during.start,
        ends_at=mine.during.end,
        seconds=_count_on_call_seconds(work, schedule.id, mine),
        other_user_id=theirs.user_id,
        other_starts_at=theirs.during.start,
        other_ends_at=theirs.during.end,
        other_seconds=_count_on_call_seconds(work, schedule.id, theirs),
        expires_at=min(mine.during.start, theirs.during.start),
        state=SwapRequestState.REQUESTED.value,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    return _record_request_change(work, ShiftChangeContext(work, holder, schedule), row)


@action("on_call_swap_requests.answer")
def answer_swap_request(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    schedule_id: int,
    request_id: int,
    body: SwapRequestAnswer,
) -> OnCallSwapRequest:
    """Accept, decline or withdraw a swap request.

    An accepted request swaps the shifts. Raise NotFoundError if there is no such swap request, or
    ForbiddenError if you cannot give this answer. Raise ConflictError if the request is no longer
    open or the shifts have changed in the meantime. Raise InvalidError if a user can no longer be
    on call.
    """
    lock_schedule_row(work, holder, schedule_id)
    schedule = get_schedule(work, holder, schedule_id)
    row = lock_shift_change_row(work, RequestRow, schedule.id, request_id)
    state = compute_request_state(row.state, row.expires_at, work.now)
    following = find_next_state(state, body.answer, _find_party(work, holder, row))
    if following is SwapRequestState.ACCEPTED:
        _swap_shifts(work, ShiftChangeContext(work, holder, schedule), row)
    row.state, row.answered_at = following.value, work.now
    work.session.flush()
    return _record_request_change(work, ShiftChangeContext(work, holder, schedule), row)


def _swap_shifts(work: UnitOfWork, change: ShiftChangeContext, row: RequestRow) -> None:
    shown = _build_request(work, row)
    for user_id, start, end, seconds in (
        (row.user_id, row.starts_at, row.ends_at, row.seconds),
        (row.other_user_id, row.other_starts_at, row.other_ends_at, row.other_seconds),
    ):
        side = UserPeriod(user_id=user_id, during=Period(start, end))
        if _count_on_call_seconds(work, row.schedule_id, side) != seconds:
            message = (
                "The shifts have changed since the swap was requested. Decline the request and ask "
                "for a new swap."
            )
            raise ConflictError(message, field="answer")
    swap = NewSwap(
        user=shown.user.username,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        other_user=shown.other_user.username,
        other_starts_at=row.other_starts_at,
        other_ends_at=row.other_ends_at,
    )
    store_swap(work, change.holder, change.schedule, swap, created_by=row.user_id)


def _find_party(work: UnitOfWork, holder: ProjectOrGroup, row: RequestRow) -> SwapRequestParty:
    if work.actor.id == row.other_user_id:
        return SwapRequestParty.ASKED
    if work.actor.id == row.user_id:
        return SwapRequestParty.REQUESTER
    return (
        SwapRequestParty.MAINTAINER
        if can_change_all_shifts(work, holder)
        else SwapRequestParty.OTHER
    )


def _record_request_change(
    work: UnitOfWork, change: ShiftChangeContext, row: RequestRow
) -> OnCallSwapRequest:
    """Record a change to a request, and notify the other user."""
    shown = _build_request(work, row)
    return record_and_announce_change(
        change, shown, shown.state, shift_change_notices.queue_swap_request_notices
    )


def _count_on_call_seconds(work: UnitOfWork, schedule_id: int, side: UserPeriod) -> int:
    """Return the number of seconds for which a rotation or swap puts a user on call."""
    during = side.during
    plans = load_schedule_plans([schedule_id], during, session=work.session, now=work.now)
    return int(
        sum(
            (span.end - span.start).total_seconds()
            for span in compute_spans(plans[schedule_id], during.start, during.end)
            for duty in span.duties
            if duty.user_id == side.user_id and duty.source in SWAPPABLE_SOURCES
        )
    )


def _check_open_requests(
    work: UnitOfWork, schedule_id: int, mine: UserPeriod, theirs: UserPeriod
) -> None:
    is_open = (RequestRow.schedule_id == schedule_id, *_build_open_request_conditions(work))
    count = work.session.scalar(select(func.count()).where(*is_open)) or 0
    if count >= _MAX_OPEN_REQUESTS:
        message = f"A schedule can have at most {_MAX_OPEN_REQUESTS} open swap requests."
        raise InvalidError(message, field="starts_at")
    same = select(RequestRow.id).where(
        *is_open,
        RequestRow.user_id == mine.user_id,
        RequestRow.starts_at == mine.during.start,
        RequestRow.other_user_id == theirs.user_id,
        RequestRow.other_starts_at == theirs.during.start,
    )
    if work.session.scalar(same.limit(1)) is not None:
        message = "You already asked for this swap, and the other user has not answered yet."
        raise ConflictError(message, field="other_starts_at")


def _build_open_request_conditions(work: UnitOfWork) -> tuple[ColumnElement[bool], ...]:
    return (RequestRow.state == SwapRequestState.REQUESTED.value, RequestRow.expires_at > work.now)


def _build_request(work: UnitOfWork, row: RequestRow) -> OnCallSwapRequest:
    built = build_change_resources(work, [row], OnCallSwapRequest)
    return _set_current_states(work, built)[0]


def _set_current_states(
    work: UnitOfWork, requests: Iterable[OnCallSwapRequest]
) -> Sequence[OnCallSwapRequest]:
    return tuple(
        each.model_copy(
            update={"state": compute_request_state(each.state, each.expires_at, work.now).value}
        )
        for each in requests
    )
