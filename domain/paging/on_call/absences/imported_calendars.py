"""Reads imported calendars in the worker, and stores their absences and holidays.

If a calendar cannot be read, its known absences and holidays are kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import InvalidError, OverloadedError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.time_zones import get_zone
from domain.delivery.outgoing.errors import OutgoingError, describe_status_problem
from domain.delivery.outgoing.urls import OutgoingUrl, parse_outgoing_url
from domain.delivery.queue import Backoff, DeliveryQueue
from domain.paging.on_call.absences.calendar_files import CalendarContent, read_calendar
from domain.paging.on_call.schedule_plans import Period
from models import OnCallAbsence, OnCallHoliday, OnCallImportedCalendar, OnCallSchedule, User

#: Minimum length of an absence. Shorter events in a calendar are considered meetings.
MIN_ABSENCE_LENGTH = timedelta(hours=4)
#: Periods that are read from a URL, and from a file, which is read only once.
_URL_PERIOD, FILE_PERIOD = timedelta(days=90), timedelta(days=1_096)
_DAY = timedelta(days=1)
#: Calendars of schedules and of active users, which are read regularly. Successful reads are an
#: hour apart. The pauses vary randomly, so that calendars are not read at the same time.
_QUEUE = DeliveryQueue(
    due_at=OnCallImportedCalendar.next_refresh_at,
    claim_lifetime=timedelta(minutes=10),
    backoff=Backoff(first=timedelta(hours=1), longest=timedelta(days=1), jitter=0.1),
    condition=or_(
        OnCallImportedCalendar.schedule_id.is_not(None),
        OnCallImportedCalendar.user_id.in_(select(User.id).where(IS_ACTIVE_HUMAN)),
    ),
)
_MAX_VALIDATOR_LENGTH = 255
_NOT_MODIFIED = 304


@dataclass(frozen=True)
class FetchedFile:
    """The response to a request for a file, with its cache validators."""

    status: int
    content: bytes = field(repr=False)
    etag: str | None
    last_modified: str | None


#: Function that requests a URL with headers. It raises OutgoingError if there is no response.
FetchFunction = Callable[[OutgoingUrl, Mapping[str, str]], FetchedFile]


def refresh_next_calendar(
    fetch: FetchFunction, *, session: Session, keyring: Keyring, share: float, now: datetime
) -> bool:
    """Read the calendar that is due first, and return False if no calendar is due.

    `share` is a random number from 0 to 1 that varies the time of the next refresh.
    """
    row: OnCallImportedCalendar | None = _QUEUE.claim_due_rows(
        OnCallImportedCalendar, session=session, now=now
    ).scalar()
    if row is None:
        return False
    row_id, is_of_user = row.id, row.user_id is not None
    zone, url_ciphertext = _find_time_zone(row, session=session), row.url_ciphertext or ""
    headers, problem = _build_headers(row, now), ""
    commit_to_release_locks(session)  # The other server may be slow.
    fetched, content = None, None
    try:
        fetched = fetch(parse_outgoing_url(keyring.decrypt(url_ciphertext)), headers)
        # A response to an unconditional request has content.
        if fetched.status != _NOT_MODIFIED or not headers:
            problem, until = describe_status_problem(fetched.status) or "", now + _URL_PERIOD
            if not problem:
                content = read_calendar_events(
                    fetched.content, zone, until, is_of_user=is_of_user, now=now
                )
    except UndecryptableError:
        problem = "the URL cannot be decrypted, so add the calendar again"
    except (OutgoingError, InvalidError, OverloadedError) as error:
        problem = str(error).removesuffix(".")
    # The calendar may have been deleted in the meantime.
    found = select(OnCallImportedCalendar).where(OnCallImportedCalendar.id == row_id)
    locked = session.scalar(found.with_for_update().execution_options(populate_existing=True))
    if locked is not None:
        if fetched and not problem:
            _store_response(locked, fetched, content, zone, session=session, now=now)
        else:
            locked.failures += 1
            locked.last_error = f"{problem[:1].upper()}{problem[1:]}."
        locked.next_refresh_at = now + _QUEUE.backoff.compute_pause(locked.failures, share=share)
    commit_to_release_locks(session)
    return True


def move_floating_absences(*, session: Session) -> None:
    """Move the floating absences of calendars if users have changed their time zones.

    All-day absences, and absences without a time zone, keep their local times.
    """
    rows = session.execute(
        select(OnCallImportedCalendar, User.time_zone)
        .join(User, User.id == OnCallImportedCalendar.user_id)
        .where(OnCallImportedCalendar.time_zone != User.time_zone)
        .order_by(OnCallImportedCalendar.id)
        .with_for_update(of=OnCallImportedCalendar, skip_locked=True)
    )
    for row, name in rows.all():
        old, new = get_zone(row.time_zone or ""), get_zone(name)
        row.time_zone = name
        floating = select(OnCallAbsence).filter_by(calendar_id=row.id, is_floating=True)
        for each in session.scalars(floating):
            each.starts_at, each.ends_at = (
                at.astimezone(old).replace(tzinfo=new).astimezone(UTC)
                for at in (each.starts_at, each.ends_at)
            )
    commit_to_release_locks(session)


def _find_time_zone(row: OnCallImportedCalendar, *, session: Session) -> str:
    of_user = select(User.time_zone).where(User.id == row.user_id)
    of_schedule = select(OnCallSchedule.time_zone).where(OnCallSchedule.id == row.schedule_id)
    return session.scalars(of_user if row.user_id else of_schedule).one()


def _build_headers(row: OnCallImportedCalendar, now: datetime) -> dict[str, str]:
    """Return the headers of a conditional request.

    The first request of a day is unconditional, since the period to read moves forward each day.
    """
    if row.last_error or row.refreshed_at is None or row.refreshed_at.date() != now.date():
        return {}
    validators = {"If-None-Match": row.etag, "If-Modified-Since": row.last_modified}
    return {name: value for name, value in validators.items() if value}


def _store_response(
    row: OnCallImportedCalendar,
    fetched: FetchedFile,
    content: CalendarContent | None,
    time_zone: str,
    *,
    session: Session,
    now: datetime,
) -> None:
    row.refreshed_at, row.last_error, row.failures = now, None, 0
    if content is not None:
        row.etag, row.last_modified = (
            each if each and len(each) <= _MAX_VALIDATOR_LENGTH and each.isprintable() else None
            for each in (fetched.etag, fetched.last_modified)
        )
        store_calendar_events(row, content, time_zone, session=session, now=now)


def read_calendar_events(
    content: bytes, time_zone: str, until: datetime, *, is_of_user: bool, now: datetime
) -> CalendarContent:
    """Return the absences of a user or the holidays of a schedule, starting with yesterday.

    Raise InvalidError for the `content` field if the calendar cannot be read.
    """
    return read_calendar(
        content,
        Period(now - _DAY, until),
        time_zone,
        min_length=MIN_ABSENCE_LENGTH if is_of_user else timedelta(0),
        # Most holiday calendars mark holidays as free.
        includes_free=not is_of_user,
    )


def store_calendar_events(
    row: OnCallImportedCalendar,
    content: CalendarContent,
    time_zone: str,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Update the stored absences or holidays of a calendar. Unchanged rows are kept."""
    row.time_zone = time_zone
    table: type[Any] = OnCallAbsence if row.user_id else OnCallHoliday
    more = {"user_id": row.user_id, "created_at": now, "note": ""} if row.user_id else {}
    fields = "starts_at ends_at is_floating" if row.user_id else "first_day last_day name"
    names = fields.split()
    zone = get_zone(time_zone)
    wanted: set[tuple[Any, ...]] = set()
    for start, end, title, is_floating in content.events:
        last = max(start, end - timedelta(microseconds=1))
        days = (start.astimezone(zone).date(), last.astimezone(zone).date(), title or row.name)
        wanted.add((start, end, is_floating) if row.user_id else days)
    row.event_count, row.skipped_count = len(wanted), content.skipped_count
    for each in session.scalars(select(table).where(table.calendar_id == row.id)).all():
        key = tuple(getattr(each, name) for name in names)
        if key in wanted:
            wanted.remove(key)
        else:
            session.delete(each)
    session.add_all(
        table(calendar_id=row.id, **dict(zip(names, each, strict=True)), **more)
        for each in sorted(wanted)
    )
