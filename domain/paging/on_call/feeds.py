"""Secret addresses of calendars, for a schedule or for one's own shifts in all schedules.

Only the digest of the token in an address is stored. The calendar of a schedule is available while
the owner has access to the schedule. The calendar of the owner's shifts covers the schedules that
the owner can see.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.access.authorizations import has_not_ended, held_authorization
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.database.rows import update_rows
from domain.core.errors import DomainError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.paging.on_call.actions import show_schedule
from domain.paging.on_call.own_types import NewOwnCalendar, OwnCalendar
from domain.paging.on_call.schedule_owners import places_of
from domain.paging.on_call.schedules import get_row
from domain.paging.on_call.shifts import schedules_of_user
from domain.paging.on_call.types import OnCallSchedule as Schedule
from domain.projects.access import get_group, get_project
from domain.projects.views import Holder, Viewer
from models import OnCallFeed, OnCallSchedule, User

#: Precision of the time of the last use, since calendars poll every few minutes.
_NOTED_EVERY = timedelta(hours=1)
#: Period of past shifts in calendars.
PAST = timedelta(days=30)
_NO_ADDRESS = "You have no calendar address."


@dataclass(frozen=True, kw_only=True)
class OpenedFeed:
    """The calendar that a token gives access to."""

    user_id: int
    #: True if the calendar contains only the shifts of the user, in all schedules.
    is_own: bool
    schedules: tuple[tuple[Holder, Schedule], ...]


def find_feed(
    schedule_id: int | None, user_id: int, *, session: Session, now: datetime
) -> OwnCalendar | None:
    """Return a user's calendar address of a schedule, or None.

    Without `schedule_id`, return the address of the user's own shifts.
    """
    is_live = has_not_ended(OnCallFeed.authorization_id, now)
    row = session.scalar(select(OnCallFeed).where(*_of(schedule_id, user_id), is_live))
    return OwnCalendar.model_validate(row) if row else None


@action("on_call_calendars.renew")
def renew_feed(work: Work, holder: Holder, schedule_id: int) -> str:
    """Create a secret calendar address of a schedule and revoke the former address.

    Return the token of the actor's new address, which is shown only once.
    """
    schedule = get_row(work, holder, schedule_id)
    token = _renew(work, schedule.id)
    _record(work, "address created", holder=holder, schedule=schedule)
    return token


@action("on_call_calendars.end")
def end_feed(work: Work, holder: Holder, schedule_id: int) -> None:
    """Revoke your calendar address of a schedule.

    Nothing changes if there is no address.
    """
    schedule = get_row(work, holder, schedule_id)
    if _end(work, schedule.id):
        _record(work, "address ended", holder=holder, schedule=schedule)


@question("own_on_call.show_calendar")
def show_own_calendar(work: Work) -> OwnCalendar:
    """Show the address of your on-call calendar."""
    found = find_feed(None, work.actor.id or 0, session=work.session, now=work.now)
    if found is None:
        raise NotFoundError(_NO_ADDRESS)
    return found


@action("own_on_call.renew_calendar")
def renew_own_calendar(work: Work) -> NewOwnCalendar:
    """Create a secret address of your on-call calendar and revoke the former address.

    The calendar contains your shifts in all schedules.
    """
    token = _renew(work, None)
    _record(work, "address created")
    url = f"{work.settings.base_url}/-/on_call/{token}.ics"
    return NewOwnCalendar(created_at=work.now, last_read_at=None, url=url)


@action("own_on_call.end_calendar")
def end_own_calendar(work: Work) -> None:
    """Revoke the address of your on-call calendar."""
    if not _end(work, None):
        raise NotFoundError(_NO_ADDRESS)
    _record(work, "address ended")


def _of(schedule_id: int | None, user_id: int | None) -> tuple[ColumnElement[bool], ...]:
    # SQLAlchemy renders `==` with None as `IS NULL`.
    return OnCallFeed.user_id == user_id, OnCallFeed.schedule_id == schedule_id


def _renew(work: Work, schedule_id: int | None) -> str:
    _end(work, schedule_id)
    made = work.policy(Keyring).issue(CredentialType.CALENDAR_FEED)
    work.session.add(
        OnCallFeed(
            schedule_id=schedule_id,
            user_id=work.actor.id,
            digest=made.digest,
            created_at=work.now,
            authorization_id=held_authorization(work),
        )
    )
    work.session.flush()
    return made.clear


def _end(work: Work, schedule_id: int | None) -> bool:
    mine = _of(schedule_id, work.actor.id)
    gone = work.session.scalars(delete(OnCallFeed).where(*mine).returning(OnCallFeed.id)).all()
    return bool(gone)


def _record(
    work: Work, change: str, *, holder: Holder | None = None, schedule: OnCallSchedule | None = None
) -> None:
    details = {"change": change}
    if holder:
        details[holder.namespace.resource_type] = holder.path
    subject = schedule.name if schedule else "all schedules"
    work.record(
        EventKind.ON_CALL_CALENDAR_CHANGED,
        user_id=work.actor.id,
        subject=subject,
        details=details,
    )


def open_feed(work: Work, token: str) -> OpenedFeed:
    """Return the calendar of a token.

    The calendar of the owner's shifts also covers schedules that the owner left within the shown
    period. Raise NotFoundError for any failure, without a reason.
    """
    digests = work.policy(Keyring).digests(token, CredentialType.CALENDAR_FEED)
    row = work.session.execute(
        select(OnCallFeed, User.is_admin)
        .join(User, User.id == OnCallFeed.user_id)
        .where(
            OnCallFeed.digest.in_(digests),
            User.state == ACTIVE,
            has_not_ended(OnCallFeed.authorization_id, work.now),
        )
    ).first()
    if row is None:
        raise _unknown()
    feed: OnCallFeed = row.OnCallFeed
    viewer = Viewer(user_id=feed.user_id, is_admin=row.is_admin, today=work.now.date())
    is_own = feed.schedule_id is None
    since = work.now - PAST
    ids = (
        [each.id for each in schedules_of_user(feed.user_id, session=work.session, now=since)]
        if feed.schedule_id is None
        else [feed.schedule_id]
    )
    found = tuple(_visible(work, viewer, ids))
    if not (found or is_own):
        raise _unknown()
    _note_use(work, feed, token)
    return OpenedFeed(user_id=feed.user_id, is_own=is_own, schedules=found)


def _visible(
    work: Work, viewer: Viewer, schedule_ids: Sequence[int]
) -> Iterator[tuple[Holder, Schedule]]:
    """Yield the schedules that a viewer may see."""
    places = places_of(schedule_ids, session=work.session)
    for each in schedule_ids:
        if place := places.get(each):
            find = get_group if place.is_group else get_project
            with suppress(DomainError):
                holder = find(place.path, viewer, session=work.session)
                yield holder, show_schedule(work, holder, each)


def _unknown() -> NotFoundError:
    return NotFoundError("This calendar does not exist, or you no longer have access.")


def _note_use(work: Work, feed: OnCallFeed, token: str) -> None:
    """Record the time of the use of a feed, and rehash its token with the newest key."""
    renewed = work.policy(Keyring).rehashed(token, feed.digest)
    values = {"digest": renewed, "keyed_at": work.now} if renewed else {}
    last = feed.last_read_at
    if values or last is None or last < work.now - _NOTED_EVERY:
        work.session.execute(
            update_rows(OnCallFeed)
            .where(OnCallFeed.id == feed.id, OnCallFeed.digest == feed.digest)
            .values(last_read_at=work.now, **values)
        )
