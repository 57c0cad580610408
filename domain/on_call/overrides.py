"""Overrides: one user is on call for a time, instead of everybody else."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.database.paging import LARGEST_ID, Listed, ListPart, fetch_part
from domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.on_call.change_permissions import Changer
from domain.on_call.final_schedule import spans
from domain.on_call.given_times import check_is_not_over, checked_period
from domain.on_call.people import PersonOnCall, check_can_be_on_call, ids_of, people
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.projects.views import Namespace
from models import OnCallOverride

#: Of a schedule, that are not over.
MOST_OVERRIDES = 200


@dataclass(frozen=True, kw_only=True)
class NewOverride:
    """An override as somebody wants it."""

    username: str
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class OverrideView:
    """A stored override."""

    id: int
    person: PersonOnCall
    starts_at: datetime
    ends_at: datetime
    #: None for an override of a command, or of a deleted account.
    created_by: PersonOnCall | None
    created_at: datetime


#: What a list can be ordered by.
_ORDERS = {"id": OnCallOverride.id, "starts_at": OnCallOverride.starts_at}


def list_overrides(schedule_id: int, part: ListPart, *, session: Session) -> Listed[OverrideView]:
    """Return a part of the overrides of a schedule, those that are over as well."""
    statement = select(OnCallOverride).where(OnCallOverride.schedule_id == schedule_id)
    found = fetch_part(statement, _ORDERS, part, session=session)
    views = _views((row[0] for row in found.items), session=session)
    return Listed(items=views, total=found.total, next_cursor=found.next_cursor)


def overrides_ahead(
    schedule_id: int, *, session: Session, now: datetime
) -> tuple[OverrideView, ...]:
    """Return the overrides of a schedule that are not over, by their start."""
    rows = session.scalars(
        select(OnCallOverride)
        .where(OnCallOverride.schedule_id == schedule_id, OnCallOverride.ends_at > now)
        .order_by(OnCallOverride.starts_at, OnCallOverride.id)
    ).all()
    return _views(rows, session=session)


def get_override(schedule_id: int, override_id: int, *, session: Session) -> OverrideView:
    """Return an override of a schedule, or raise NotFoundError."""
    row = session.scalar(
        select(OnCallOverride).where(
            OnCallOverride.schedule_id == schedule_id,
            OnCallOverride.id == min(override_id, LARGEST_ID),
        )
    )
    if row is None:
        message = "Override not found in this schedule."
        raise NotFoundError(message)
    return _views([row], session=session)[0]


def create_override(
    project: Namespace,
    schedule_id: int,
    new: NewOverride,
    *,
    by: Changer,
    session: Session,
    now: datetime,
) -> OverrideView:
    """Put one user on call for a time; raise InvalidError, or ForbiddenError for others' shifts."""
    (user_id,) = ids_of([new.username], field="user", session=session)
    check_can_be_on_call(
        project, {new.username: user_id}, field="user", session=session, today=now.date()
    )
    during = checked_period(new.starts_at, new.ends_at, fields=("starts_at", "ends_at"))
    check_is_not_over(during, field="ends_at", now=now)
    _check_count(schedule_id, session=session, now=now)
    _check_shifts(schedule_id, during, by, session=session, now=now)
    row = OnCallOverride(
        schedule_id=schedule_id,
        user_id=user_id,
        starts_at=during.start,
        ends_at=during.end,
        created_by=by.user_id,
        created_at=now,
    )
    session.add(row)
    session.flush()  # to learn the id
    return get_override(schedule_id, row.id, session=session)


def _check_count(schedule_id: int, *, session: Session, now: datetime) -> None:
    ahead = (OnCallOverride.schedule_id == schedule_id) & (OnCallOverride.ends_at > now)
    if (session.scalar(select(func.count()).where(ahead)) or 0) >= MOST_OVERRIDES:
        message = f"A schedule can have at most {MOST_OVERRIDES} current and future overrides."
        raise InvalidError(message, field="starts_at")


def _check_shifts(
    schedule_id: int, during: Period, by: Changer, *, session: Session, now: datetime
) -> None:
    """Raise ForbiddenError if a member without the role would change the shifts of others."""
    if by.may_change_all:
        return
    start = max(during.start, now)
    plans = read_plans([schedule_id], Period(start, during.end), session=session, today=now.date())
    for span in spans(plans[schedule_id], start, during.end):
        if any(user_id != by.user_id for user_id in span.user_ids):
            message = (
                "Other people are on call in this time. You need the Maintainer role to change "
                "their shifts."
            )
            raise ForbiddenError(message)


def end_override(
    schedule_id: int, override_id: int, *, by: Changer, session: Session, now: datetime
) -> OverrideView:
    """Delete an override, or end one that has begun, and return what it was.

    Raises NotFoundError, ForbiddenError for one of others, and ConflictError for one that is over.
    """
    view = get_override(schedule_id, override_id, session=session)
    row = session.get_one(OnCallOverride, view.id, with_for_update=True)
    if not (by.may_change_all or by.user_id in (row.user_id, row.created_by)):
        message = "You need the Maintainer role to remove an override of somebody else."
        raise ForbiddenError(message)
    if row.ends_at <= now:
        message = "This override has ended, and past shifts do not change."
        raise ConflictError(message)
    if row.starts_at < now:
        row.ends_at = now
    else:
        session.delete(row)
    session.flush()
    return view


def _views(rows: Iterable[OnCallOverride], *, session: Session) -> tuple[OverrideView, ...]:
    found = tuple(rows)
    named = people(
        (each for row in found for each in (row.user_id, row.created_by) if each), session=session
    )
    return tuple(
        OverrideView(
            id=row.id,
            person=named[row.user_id],
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            created_by=named.get(row.created_by or 0),
            created_at=row.created_at,
        )
        for row in found
    )
