"""Secret calendar URLs, for a schedule or for a user's own shifts in all schedules.

Only the digest of the token in a URL is stored. The calendar of a schedule is available while the
URL's owner has access to the schedule. The calendar of the owner's shifts covers the schedules that
the owner can see.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.authorizations import has_live_access, lock_authorization
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import DomainError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.paging.on_call.actions import show_schedule
from domain.paging.on_call.my_on_call_types import NewOwnCalendar, OwnCalendar
from domain.paging.on_call.schedule_owners import find_schedule_owners
from domain.paging.on_call.schedules import get_schedule_row
from domain.paging.on_call.shifts import find_user_schedules
from domain.paging.on_call.types import OnCallSchedule as Schedule
from domain.projects.access import get_group, get_project
from domain.projects.views import ProjectOrGroup, Viewer
from models import OnCallFeed, OnCallSchedule, User

#: Minimum interval between updates of the last use. Calendar applications poll every few minutes.
_USE_RECORD_INTERVAL = timedelta(hours=1)
#: Length of the past period that calendars contain.
CALENDAR_PAST_PERIOD = timedelta(days=30)
_NO_URL_MESSAGE = "You have no calendar URL."


@dataclass(frozen=True, kw_only=True)
class CalendarFeed:
    """The calendar that a token gives access to."""

    user_id: int
    #: True if the calendar contains only the shifts of the user, in all schedules.
    is_own: bool
    schedules: tuple[tuple[ProjectOrGroup, Schedule], ...]


def find_feed(
    schedule_id: int | None, user_id: int, *, session: Session, now: datetime
) -> OwnCalendar | None:
    """Return a user's calendar for a schedule, or None.

    If `schedule_id` is None, return the calendar of the user's own shifts.
    """
    is_live = has_live_access(OnCallFeed.authorization_id, now)
    row = session.scalar(
        select(OnCallFeed).where(*_build_feed_owner_condition(schedule_id, user_id), is_live)
    )
    return OwnCalendar.model_validate(row) if row else None


@action("on_call_calendars.renew")
def renew_feed(work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int) -> str:
    """Create a secret calendar URL for a schedule and revoke the previous URL.

    Return the token in the actor's new URL. The token is shown only once.
    """
    schedule = get_schedule_row(work, holder, schedule_id)
    token = _create_feed(work, schedule.id)
    _record_calendar_event(work, "URL created", holder=holder, schedule=schedule)
    return token


@action("on_call_calendars.end")
def revoke_feed(work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int) -> None:
    """Revoke your calendar URL for a schedule.

    Nothing changes if there is no URL.
    """
    schedule = get_schedule_row(work, holder, schedule_id)
    if _delete_feed(work, schedule.id):
        _record_calendar_event(work, "URL revoked", holder=holder, schedule=schedule)


@read_action("own_on_call.show_calendar")
def show_own_calendar(work: UnitOfWork) -> OwnCalendar:
    """Show when the URL of your on-call calendar was created and last used.

    Raise NotFoundError if there is no URL.
    """
    found = find_feed(None, work.actor.id or 0, session=work.session, now=work.now)
    if found is None:
        raise NotFoundError(_NO_URL_MESSAGE)
    return found


@action("own_on_call.renew_calendar")
def renew_own_calendar(work: UnitOfWork) -> NewOwnCalendar:
    """Create a secret URL for your on-call calendar and revoke the previous URL.

    The calendar contains your shifts in all schedules.
    """
    token = _create_feed(work, None)
    _record_calendar_event(work, "URL created")
    url = f"{work.settings.base_url}/-/on_call/{token}.ics"
    return NewOwnCalendar(created_at=work.now, last_read_at=None, url=url)


@action("own_on_call.end_calendar")
def revoke_own_calendar(work: UnitOfWork) -> None:
    """Revoke the URL of your on-call calendar.

    Raise NotFoundError if there is no URL.
    """
    if not _delete_feed(work, None):
        raise NotFoundError(_NO_URL_MESSAGE)
    _record_calendar_event(work, "URL revoked")


def _build_feed_owner_condition(
    schedule_id: int | None, user_id: int | None
) -> tuple[ColumnElement[bool], ...]:
    # SQLAlchemy renders `==` with None as `IS NULL`.
    return OnCallFeed.user_id == user_id, OnCallFeed.schedule_id == schedule_id


def _create_feed(work: UnitOfWork, schedule_id: int | None) -> str:
    _delete_feed(work, schedule_id)
    made = work.policy(Keyring).issue_credential(CredentialType.CALENDAR_FEED)
    work.session.add(
        OnCallFeed(
            schedule_id=schedule_id,
            user_id=work.actor.id,
            digest=made.digest,
            created_at=work.now,
            authorization_id=lock_authorization(work),
        )
    )
    work.session.flush()
    return made.clear


def _delete_feed(work: UnitOfWork, schedule_id: int | None) -> bool:
    mine = _build_feed_owner_condition(schedule_id, work.actor.id)
    gone = work.session.scalars(delete(OnCallFeed).where(*mine).returning(OnCallFeed.id)).all()
    return bool(gone)


def _record_calendar_event(
    work: UnitOfWork,
    change: str,
    *,
    holder: ProjectOrGroup | None = None,
    schedule: OnCallSchedule | None = None,
) -> None:
    details = {"change": change}
    if holder:
        details[holder.namespace.resource_type] = holder.path
    subject = schedule.name if schedule else "all schedules"
    work.record_audit_event(
        EventKind.ON_CALL_CALENDAR_CHANGED,
        user_id=work.actor.id,
        subject=subject,
        details=details,
    )


def find_feed_by_token(work: UnitOfWork, token: str) -> CalendarFeed:
    """Return the calendar that a token gives access to.

    The calendar of the owner's shifts includes past shifts, so it also covers schedules that the
    owner left recently. Raise NotFoundError for any failure, without a reason.
    """
    digests = work.policy(Keyring).compute_digests(token, CredentialType.CALENDAR_FEED)
    row = work.session.execute(
        select(OnCallFeed, User.is_admin)
        .join(User, User.id == OnCallFeed.user_id)
        .where(
            OnCallFeed.digest.in_(digests),
            User.state == ACTIVE,
            has_live_access(OnCallFeed.authorization_id, work.now),
        )
    ).first()
    if row is None:
        raise _build_not_found_error()
    feed: OnCallFeed = row.OnCallFeed
    viewer = Viewer(user_id=feed.user_id, is_admin=row.is_admin, today=work.now.date())
    is_own = feed.schedule_id is None
    since = work.now - CALENDAR_PAST_PERIOD
    ids = (
        [each.id for each in find_user_schedules(feed.user_id, session=work.session, now=since)]
        if feed.schedule_id is None
        else [feed.schedule_id]
    )
    found = tuple(_find_visible_schedules(work, viewer, ids))
    if not (found or is_own):
        raise _build_not_found_error()
    _record_feed_use(work, feed, token)
    return CalendarFeed(user_id=feed.user_id, is_own=is_own, schedules=found)


def _find_visible_schedules(
    work: UnitOfWork, viewer: Viewer, schedule_ids: Sequence[int]
) -> Iterator[tuple[ProjectOrGroup, Schedule]]:
    """Yield the schedules that a viewer may see."""
    places = find_schedule_owners(schedule_ids, session=work.session)
    for each in schedule_ids:
        if place := places.get(each):
            find = get_group if place.is_group else get_project
            with suppress(DomainError):
                holder = find(place.path, viewer, session=work.session)
                yield holder, show_schedule(work, holder, each)


def _build_not_found_error() -> NotFoundError:
    return NotFoundError("This calendar does not exist, or you no longer have access.")


def _record_feed_use(work: UnitOfWork, feed: OnCallFeed, token: str) -> None:
    """Record the use of a calendar URL, and rehash its token if the key is outdated."""
    renewed = work.policy(Keyring).rehash_if_outdated(token, feed.digest)
    values = {"digest": renewed, "keyed_at": work.now} if renewed else {}
    last = feed.last_read_at
    if values or last is None or last < work.now - _USE_RECORD_INTERVAL:
        work.session.execute(
            build_bulk_update(OnCallFeed)
            .where(OnCallFeed.id == feed.id, OnCallFeed.digest == feed.digest)
            .values(last_read_at=work.now, **values)
        )
