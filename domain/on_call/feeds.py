"""Secret addresses under which users subscribe to the calendar of a schedule.

Only the digest of the token in an address is stored. It opens the calendar while its owner may see
the schedule.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import Work
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.database.rows import update_rows
from domain.errors import DomainError, NotFoundError
from domain.keyring import CredentialType, Keyring
from domain.on_call.actions import show_schedule
from domain.on_call.reading import places_of
from domain.on_call.schedules import get_row
from domain.on_call.types import OnCallSchedule as Schedule
from domain.projects.access import get_group, get_project
from domain.projects.views import Holder, Viewer
from models import OnCallFeed, OnCallSchedule, User

#: How often the last use is noted: calendars ask every few minutes.
_NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class FeedView:
    """A user's subscription to a schedule."""

    created_at: datetime
    #: Within an hour; None: never.
    last_read_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class OpenedFeed:
    """What a token opens."""

    user_id: int
    holder: Holder
    schedule: Schedule


def find_feed(schedule_id: int, user_id: int, *, session: Session) -> FeedView | None:
    """Return a user's subscription to a schedule, or None."""
    theirs = (OnCallFeed.schedule_id == schedule_id) & (OnCallFeed.user_id == user_id)
    row = session.scalar(select(OnCallFeed).where(theirs))
    return FeedView(created_at=row.created_at, last_read_at=row.last_read_at) if row else None


@action("on_call_calendars.renew")
def renew_feed(work: Work, holder: Holder, schedule_id: int) -> str:
    """Return the token of a new address of the actor, to be shown once; a former address ends."""
    schedule = get_row(work, holder, schedule_id)
    _end(work, schedule.id)
    made = work.policy(Keyring).issue(CredentialType.CALENDAR_FEED)
    work.session.add(
        OnCallFeed(
            schedule_id=schedule.id,
            user_id=work.actor.id,
            digest=made.digest,
            created_at=work.now,
        )
    )
    work.session.flush()
    _record(work, holder, schedule, "address created")
    return made.clear


@action("on_call_calendars.end")
def end_feed(work: Work, holder: Holder, schedule_id: int) -> None:
    """End the actor's address, if there is one."""
    schedule = get_row(work, holder, schedule_id)
    if _end(work, schedule.id):
        _record(work, holder, schedule, "address ended")


def _end(work: Work, schedule_id: int) -> bool:
    mine = (OnCallFeed.schedule_id == schedule_id) & (OnCallFeed.user_id == work.actor.id)
    gone = work.session.scalars(delete(OnCallFeed).where(mine).returning(OnCallFeed.id)).all()
    return bool(gone)


def _record(work: Work, holder: Holder, schedule: OnCallSchedule, change: str) -> None:
    details = {"change": change, holder.namespace.resource_type: holder.path}
    work.record(EventKind.ON_CALL_CALENDAR_CHANGED, subject=schedule.name, details=details)


def open_feed(work: Work, token: str) -> OpenedFeed:
    """Return what a token opens, or raise NotFoundError, whatever the reason is."""
    digests = work.policy(Keyring).credential_digests(token, CredentialType.CALENDAR_FEED)
    row = work.session.execute(
        select(OnCallFeed, User.is_admin)
        .join(User, User.id == OnCallFeed.user_id)
        .where(OnCallFeed.digest.in_(digests), User.state == ACTIVE)
    ).first()
    if row is None:
        raise _unknown()
    feed = row.OnCallFeed
    place = places_of([feed.schedule_id], session=work.session).get(feed.schedule_id)
    if place is None:
        raise _unknown()
    find = get_group if place.is_group else get_project
    viewer = Viewer(user_id=feed.user_id, is_admin=row.is_admin, today=work.now.date())
    try:
        holder = find(place.path, viewer, session=work.session)
        schedule = show_schedule(work, holder, feed.schedule_id)
    except DomainError as error:
        raise _unknown() from error
    _note_use(work, feed, token)
    return OpenedFeed(user_id=feed.user_id, holder=holder, schedule=schedule)


def _unknown() -> NotFoundError:
    return NotFoundError("This calendar does not exist, or you no longer have access.")


def _note_use(work: Work, feed: OnCallFeed, token: str) -> None:
    """Note when a feed was read, and hash its token with the newest key."""
    renewed = work.policy(Keyring).rehashed(token, feed.digest)
    values = {"digest": renewed, "keyed_at": work.now} if renewed else {}
    last = feed.last_read_at
    if values or last is None or last < work.now - _NOTED_EVERY:
        work.session.execute(
            update_rows(OnCallFeed)
            .where(OnCallFeed.id == feed.id, OnCallFeed.digest == feed.digest)
            .values(last_read_at=work.now, **values)
        )
