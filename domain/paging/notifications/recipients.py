"""Recipients of pages (users and channels) and their paging preferences."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import bindparam, case, or_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update, build_session_insert
from domain.core.errors import InvalidError
from domain.core.time_zones import get_zone, normalize_zone_name
from models import Contact, Page, PageRecipient, User

_MINUTES_PER_DAY = 24 * 60
#: Duration of the batching pause. Pages that become due during the pause are sent together.
BATCHING_PAUSE = timedelta(seconds=1)
#: Pause after a page, during which further pages to the same recipient are combined.
PAUSE_BETWEEN_PAGES = timedelta(seconds=30)
#: Severity rank below all severities.
BELOW_ALL_SEVERITIES = 6
DEFAULT_ZONE = "UTC"
#: User ID and contact ID of a recipient; one of the IDs is None.
RecipientKey = tuple[int | None, int | None]
_DEFAULT_PREFERENCES = {"time_zone": "UTC", "critical_breaks_quiet": True, "wants_follow_ups": True}


@dataclass(frozen=True, kw_only=True)
class QuietHours:
    """A daily period in a given time zone. It may end on the next day."""

    time_zone: str
    #: Start and end in minutes after midnight.
    starts: int
    ends: int
    #: True if pages about critical alerts are sent during quiet hours.
    lets_critical_through: bool = True

    def __post_init__(self) -> None:
        """Check that the times are valid and differ.

        Raise InvalidError otherwise.
        """
        if not (0 <= self.starts < _MINUTES_PER_DAY and 0 <= self.ends < _MINUTES_PER_DAY):
            raise InvalidError("Enter a time of day such as 22:00.", field="quiet_from")
        if self.starts == self.ends:
            message = "Quiet hours cannot start and end at the same time."
            raise InvalidError(message, field="quiet_until")

    def find_end(self, moment: datetime) -> datetime | None:
        """Return the end of the quiet hours that apply at a given time, or None."""
        zone = get_zone(self.time_zone)
        local = moment.astimezone(zone)
        if not self._covers_minute(local.hour * 60 + local.minute):
            return None
        at = time(self.ends // 60, self.ends % 60)
        for day in (local.date(), local.date() + timedelta(days=1)):
            # If the end occurs twice because of a clock change, the second time applies once the
            # first has passed.
            for fold in (0, 1):
                end = datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC)
                if end > moment:
                    return end
        return None

    def _covers_minute(self, minute: int) -> bool:
        if self.starts < self.ends:
            return self.starts <= minute < self.ends
        return minute >= self.starts or minute < self.ends


def parse_minutes_of_day(text: str, *, field: str) -> int:
    """Convert a time such as 22:00 to minutes after midnight.

    Raise InvalidError if the text is not a time.
    """
    hours, colon, minutes = text.strip().partition(":")
    digits = hours.isdecimal() and minutes.isdecimal() and (hours + minutes).isascii()
    if not (colon and digits and len(minutes) == 2 and len(hours) <= 2):  # noqa: PLR2004 - digits
        raise InvalidError("Enter a time of day such as 22:00.", field=field)
    found = int(hours) * 60 + int(minutes)
    if int(minutes) >= 60 or found >= _MINUTES_PER_DAY:  # noqa: PLR2004 - minutes of an hour
        raise InvalidError("Enter a time of day between 00:00 and 23:59.", field=field)
    return found


def format_minutes_of_day(minutes: int) -> str:
    """Convert minutes after midnight to a time such as 22:00."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


@dataclass(frozen=True, kw_only=True)
class PagingPreferences:
    """The quiet hours and the follow-up setting of a user."""

    #: Quiet hours. None if the user can be paged at any time.
    quiet_hours: QuietHours | None = None
    #: True if the user is notified when another user acknowledges an alert, or when an alert ends.
    wants_follow_ups: bool = True


def get_preferences(user_id: int, *, session: Session) -> PagingPreferences:
    """Return the paging preferences of a user, or the defaults if none are stored."""
    row = session.scalar(select(PageRecipient).where(PageRecipient.user_id == user_id))
    if row is None:
        return PagingPreferences()
    return PagingPreferences(
        quiet_hours=get_quiet_hours(row), wants_follow_ups=row.wants_follow_ups
    )


def store_preferences(
    user_id: int, paging_preferences: PagingPreferences, *, session: Session, now: datetime
) -> None:
    """Store the paging preferences of a user, and reschedule pages that quiet hours hold back."""
    quiet = paging_preferences.quiet_hours
    row = get_or_create_recipients([user_id], [], session=session)[user_id, None]
    row.time_zone = normalize_zone_name(quiet.time_zone) if quiet else row.time_zone
    row.quiet_from = quiet.starts if quiet else None
    row.quiet_until = quiet.ends if quiet else None
    row.critical_breaks_quiet = quiet is None or quiet.lets_critical_through
    row.wants_follow_ups = paging_preferences.wants_follow_ups
    session.flush()  # The following statements bypass the session's objects.
    _reschedule_held_pages(row, session=session, now=now)


def _reschedule_held_pages(row: PageRecipient, *, session: Session, now: datetime) -> None:
    waiting = (
        Page.recipient_id == row.id,
        Page.batch_id.is_(None),
        Page.withdrawn_at.is_(None),
        Page.due_at > now + PAUSE_BETWEEN_PAGES,
    )
    quiet = get_quiet_hours(row)
    for is_critical in (False, True):
        due_at = find_hold_end(quiet, is_critical=is_critical, now=now) or now
        found = session.execute(
            build_bulk_update(Page)
            .where(*waiting, Page.is_critical.is_(is_critical))
            .values(due_at=due_at)
            .returning(Page.id)
        ).first()
        if found is not None:
            schedule_recipient_batching({row.id: due_at}, session=session)


def get_quiet_hours(row: PageRecipient) -> QuietHours | None:
    """Return the quiet hours of a recipient, or None."""
    if row.quiet_from is None or row.quiet_until is None:
        return None
    return QuietHours(
        time_zone=row.time_zone,
        starts=row.quiet_from,
        ends=row.quiet_until,
        lets_critical_through=row.critical_breaks_quiet,
    )


def get_user_time_zone(user_id: int, *, session: Session) -> str:
    """Return the time zone of a user.

    If the time zone in the profile is UTC, which is the default, use the time zone of the quiet
    hours.
    """
    own = session.scalar(select(User.time_zone).where(User.id == user_id)) or DEFAULT_ZONE
    of_quiet_hours = select(PageRecipient.time_zone).where(
        PageRecipient.user_id == user_id, PageRecipient.quiet_from.is_not(None)
    )
    return own if own != DEFAULT_ZONE else session.scalar(of_quiet_hours) or DEFAULT_ZONE


def find_hold_end(quiet: QuietHours | None, *, is_critical: bool, now: datetime) -> datetime | None:
    """Return the time until which quiet hours hold a page back, or None if it may be sent now."""
    if quiet is None or (is_critical and quiet.lets_critical_through):
        return None
    return quiet.find_end(now)


def get_or_create_recipients(
    user_ids: Collection[int], contact_ids: Collection[int], *, session: Session
) -> Mapping[RecipientKey, PageRecipient]:
    """Return the database rows of recipients, creating missing rows.

    Users and contacts that no longer exist are left out.
    """
    users = session.scalars(select(User.id).where(User.id.in_(user_ids)).order_by(User.id)).all()
    channels = session.scalars(
        select(Contact.id)
        .where(Contact.id.in_(contact_ids), Contact.user_id.is_(None))
        .order_by(Contact.id)
    ).all()
    values = [{"user_id": each, "contact_id": None, **_DEFAULT_PREFERENCES} for each in users]
    values += [{"user_id": None, "contact_id": each, **_DEFAULT_PREFERENCES} for each in channels]
    if not values:
        return {}
    insert = build_session_insert(PageRecipient, session=session).on_conflict_do_nothing()
    session.connection().execute(insert, values)
    rows = session.scalars(
        select(PageRecipient).where(
            or_(PageRecipient.user_id.in_(users), PageRecipient.contact_id.in_(channels))
        )
    )
    return {(row.user_id, row.contact_id): row for row in rows}


_DUE_TIME = bindparam("moment", type_=PageRecipient.due_at.type)
_IS_DUE_LATER = or_(PageRecipient.due_at.is_(None), PageRecipient.due_at > _DUE_TIME)
#: Statement that always locks the row. Without the lock, a worker that batches pages at the same
#: time would miss the new pages.
_SCHEDULE_RECIPIENT = (
    build_bulk_update(PageRecipient)
    .where(PageRecipient.id == bindparam("recipient"))
    .values(due_at=case((_IS_DUE_LATER, _DUE_TIME), else_=PageRecipient.due_at))
)


def schedule_recipient_batching(moments: Mapping[int, datetime], *, session: Session) -> None:
    """Schedule the batching of each recipient's pages for a given time, or keep an earlier time.

    Rows are locked in a fixed order, which prevents deadlocks between two transactions.
    """
    rows = [{"recipient": each, "moment": moments[each]} for each in sorted(moments)]
    if rows:
        session.connection().execute(_SCHEDULE_RECIPIENT, rows)
