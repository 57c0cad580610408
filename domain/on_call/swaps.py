"""Swaps: two users exchange two of their shifts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from domain.database.paging import LARGEST_ID, Listed, ListPart, fetch_part
from domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.on_call.change_permissions import Changer
from domain.on_call.final_schedule import Source, spans
from domain.on_call.given_times import check_is_not_over, checked_period
from domain.on_call.people import PersonOnCall, check_can_be_on_call, ids_of, people
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.projects.views import Namespace
from models import OnCallSchedule, OnCallSwap

#: Of a schedule, that are not over.
MOST_SWAPS = 200
_FIRST, _SECOND = ("starts_at", "ends_at"), ("other_starts_at", "other_ends_at")


@dataclass(frozen=True, kw_only=True)
class NewSwap:
    """A swap as somebody wants it: whose shift, and the other's for it."""

    username: str
    starts_at: datetime
    ends_at: datetime
    other_username: str
    other_starts_at: datetime
    other_ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class SwapView:
    """A stored swap."""

    id: int
    person: PersonOnCall
    starts_at: datetime
    ends_at: datetime
    other_person: PersonOnCall
    other_starts_at: datetime
    other_ends_at: datetime
    #: None for a deleted account.
    created_by: PersonOnCall | None
    created_at: datetime


#: What a list can be ordered by.
_ORDERS = {"id": OnCallSwap.id, "starts_at": OnCallSwap.starts_at}


def list_swaps(schedule_id: int, part: ListPart, *, session: Session) -> Listed[SwapView]:
    """Return a part of the swaps of a schedule, those that are over as well."""
    statement = select(OnCallSwap).where(OnCallSwap.schedule_id == schedule_id)
    found = fetch_part(statement, _ORDERS, part, session=session)
    views = _views((row[0] for row in found.items), session=session)
    return Listed(items=views, total=found.total, next_cursor=found.next_cursor)


def swaps_ahead(schedule_id: int, *, session: Session, now: datetime) -> tuple[SwapView, ...]:
    """Return the swaps of a schedule that are not over, by the start of the first shift."""
    rows = session.scalars(
        select(OnCallSwap)
        .where(OnCallSwap.schedule_id == schedule_id, OnCallSwap.over_at > now)
        .order_by(OnCallSwap.starts_at, OnCallSwap.id)
    ).all()
    return _views(rows, session=session)


def swaps_of_user(
    project_id: int, user_id: int, *, session: Session, now: datetime
) -> tuple[tuple[str, SwapView], ...]:
    """Return the swaps of a user in a project that are not over, with the schedules' time zones."""
    rows = session.execute(
        select(OnCallSwap, OnCallSchedule.time_zone)
        .join(OnCallSchedule, OnCallSchedule.id == OnCallSwap.schedule_id)
        .where(
            or_(OnCallSwap.user_id == user_id, OnCallSwap.other_user_id == user_id),
            OnCallSwap.over_at > now,
            OnCallSchedule.project_id == project_id,
        )
        .order_by(OnCallSwap.starts_at, OnCallSwap.id)
    ).all()
    views = _views((row[0] for row in rows), session=session)
    return tuple(zip((row[1] for row in rows), views, strict=True))


def get_swap(schedule_id: int, swap_id: int, *, session: Session) -> SwapView:
    """Return a swap of a schedule, or raise NotFoundError."""
    row = session.scalar(
        select(OnCallSwap).where(
            OnCallSwap.schedule_id == schedule_id, OnCallSwap.id == min(swap_id, LARGEST_ID)
        )
    )
    if row is None:
        message = "Swap not found in this schedule."
        raise NotFoundError(message)
    return _views([row], session=session)[0]


def create_swap(
    project: Namespace,
    schedule_id: int,
    new: NewSwap,
    *,
    by: Changer,
    session: Session,
    now: datetime,
) -> SwapView:
    """Exchange two shifts, each of which has to be of the user that is named for it.

    Of a shift that has begun, what is left is exchanged. Raises InvalidError, or ForbiddenError for
    a swap between others.
    """
    (first, second) = _users(project, new, session=session, now=now)
    if not (by.may_change_all or by.user_id in (first, second)):
        message = "You need the Maintainer role to swap shifts of other people."
        raise ForbiddenError(message)
    mine, theirs = _periods(new, now=now)
    _check_count(schedule_id, session=session, now=now)
    for user_id, during, field, name in (
        (first, mine, _FIRST[0], new.username),
        (second, theirs, _SECOND[0], new.other_username),
    ):
        if not _is_on_call(schedule_id, user_id, during, session=session, now=now):
            message = f"{name} is not on call in the rotations for this whole period."
            raise InvalidError(message, field=field)
    row = OnCallSwap(
        schedule_id=schedule_id,
        user_id=first,
        starts_at=mine.start,
        ends_at=mine.end,
        other_user_id=second,
        other_starts_at=theirs.start,
        other_ends_at=theirs.end,
        over_at=max(mine.end, theirs.end),
        created_by=by.user_id,
        created_at=now,
    )
    session.add(row)
    session.flush()  # to learn the id
    return get_swap(schedule_id, row.id, session=session)


def _users(project: Namespace, new: NewSwap, *, session: Session, now: datetime) -> tuple[int, int]:
    found = []
    for name, field in ((new.username, "user"), (new.other_username, "other_user")):
        (user_id,) = ids_of([name], field=field, session=session)
        check_can_be_on_call(
            project, {name: user_id}, field=field, session=session, today=now.date()
        )
        found.append(user_id)
    first, second = found
    if first == second:
        message = "Two different people swap shifts."
        raise InvalidError(message, field="other_user")
    return first, second


def _periods(new: NewSwap, *, now: datetime) -> tuple[Period, Period]:
    mine = checked_period(new.starts_at, new.ends_at, fields=_FIRST)
    theirs = checked_period(new.other_starts_at, new.other_ends_at, fields=_SECOND)
    check_is_not_over(mine, field=_FIRST[1], now=now)
    check_is_not_over(theirs, field=_SECOND[1], now=now)
    if mine.start < theirs.end and theirs.start < mine.end:
        message = "The two shifts overlap: choose one after the other."
        raise InvalidError(message, field=_SECOND[0])
    return Period(max(mine.start, now), mine.end), Period(max(theirs.start, now), theirs.end)


def _check_count(schedule_id: int, *, session: Session, now: datetime) -> None:
    ahead = (OnCallSwap.schedule_id == schedule_id) & (OnCallSwap.over_at > now)
    if (session.scalar(select(func.count()).where(ahead)) or 0) >= MOST_SWAPS:
        message = f"A schedule can have at most {MOST_SWAPS} current and future swaps."
        raise InvalidError(message, field=_FIRST[0])


def _is_on_call(
    schedule_id: int, user_id: int, during: Period, *, session: Session, now: datetime
) -> bool:
    plans = read_plans([schedule_id], during, session=session, today=now.date())
    return all(
        any(duty.user_id == user_id and duty.source is not Source.OVERRIDE for duty in span.duties)
        for span in spans(plans[schedule_id], during.start, during.end)
    )


def undo_swap(
    schedule_id: int, swap_id: int, *, by: Changer, session: Session, now: datetime
) -> SwapView:
    """Undo what is left of a swap, and return what it was; what has been stays as it was.

    Raises NotFoundError, ForbiddenError for one between others, and ConflictError for one that is
    over.
    """
    view = get_swap(schedule_id, swap_id, session=session)
    row = session.get_one(OnCallSwap, view.id, with_for_update=True)
    if not (by.may_change_all or by.user_id in (row.user_id, row.other_user_id, row.created_by)):
        message = "You need the Maintainer role to undo a swap of other people."
        raise ForbiddenError(message)
    if row.over_at <= now:
        message = "This swap has ended, and past shifts do not change."
        raise ConflictError(message)
    if min(row.starts_at, row.other_starts_at) >= now:
        session.delete(row)
    else:
        row.ends_at = max(row.starts_at, min(row.ends_at, now))
        row.other_ends_at = max(row.other_starts_at, min(row.other_ends_at, now))
        row.over_at = now
    session.flush()
    return view


def _views(rows: Iterable[OnCallSwap], *, session: Session) -> tuple[SwapView, ...]:
    found = tuple(rows)
    ids = ((row.user_id, row.other_user_id, row.created_by) for row in found)
    named = people((each for group in ids for each in group if each), session=session)
    return tuple(
        SwapView(
            id=row.id,
            person=named[row.user_id],
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            other_person=named[row.other_user_id],
            other_starts_at=row.other_starts_at,
            other_ends_at=row.other_ends_at,
            created_by=named.get(row.created_by or 0),
            created_at=row.created_at,
        )
        for row in found
    )
