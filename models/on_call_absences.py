"""Absences of users, holidays of schedules, and the calendars that contain them."""

from datetime import date, datetime

from sqlalchemy import CheckConstraint, Date, String, Text, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from models.base import BaseWithId, build_cascading_foreign_key


class OnCallImportedCalendar(BaseWithId):
    """A calendar with the absences of a user, or with the holidays of a schedule."""

    __tablename__ = "on_call_imported_calendars"
    __table_args__ = (
        CheckConstraint("(user_id IS NULL) <> (schedule_id IS NULL)", name="one_owner"),
    )

    user_id: Mapped[int | None] = build_cascading_foreign_key("users", index=True)
    schedule_id: Mapped[int | None] = build_cascading_foreign_key("on_call_schedules", index=True)
    name: Mapped[str] = mapped_column(String(100))
    #: URL encrypted with SECRET_KEY, because it gives access to the calendar. NULL for a file.
    url_ciphertext: Mapped[str | None] = mapped_column(Text)
    #: Host of the URL, which pages show.
    host: Mapped[str | None] = mapped_column(String(255))
    #: Validators from the last response, for conditional requests (RFC 9110 section 13.1).
    etag: Mapped[str | None] = mapped_column(String(255))
    last_modified: Mapped[str | None] = mapped_column(String(255))
    #: Number of current and future events, and of events that could not be read.
    event_count: Mapped[int] = mapped_column(default=0)
    skipped_count: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    #: Time of the last successful read.
    refreshed_at: Mapped[datetime | None]
    #: Reason for the last failure, and number of consecutive failures. NULL after a success.
    last_error: Mapped[str | None] = mapped_column(Text)
    failures: Mapped[int] = mapped_column(default=0)
    #: Time zone of floating absences: days, and times without a time zone (RFC 5545 section 3.3.5).
    time_zone: Mapped[str | None] = mapped_column(String(64))
    #: Time of the next refresh. NULL for a file, which is read only once.
    next_refresh_at: Mapped[datetime | None] = mapped_column(index=True)


class OnCallAbsence(BaseWithId):
    """A period in which a user is absent."""

    __tablename__ = "on_call_absences"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    #: Calendar that contains the absence. NULL if the user entered the absence.
    calendar_id: Mapped[int | None] = build_cascading_foreign_key(
        "on_call_imported_calendars", index=True
    )
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime] = mapped_column(index=True)
    #: True if the local times stay the same after the user changes the time zone.
    is_floating: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Private note, which only the user sees. Empty for absences from calendars.
    note: Mapped[str] = mapped_column(String(200), default="")
    created_at: Mapped[datetime]


class OnCallHoliday(BaseWithId):
    """A holiday in a calendar of a schedule."""

    __tablename__ = "on_call_holidays"

    calendar_id: Mapped[int] = build_cascading_foreign_key("on_call_imported_calendars", index=True)
    first_day: Mapped[date] = mapped_column(Date)
    last_day: Mapped[date] = mapped_column(Date)
    name: Mapped[str] = mapped_column(String(200))


class OnCallConflictNotice(BaseWithId):
    """A record that notices were sent about a conflict between a shift and an absence."""

    __tablename__ = "on_call_conflict_notices"
    #: Constraint that prevents two workers from storing the same conflict, so that each notice is
    #: sent once.
    __table_args__ = (UniqueConstraint("schedule_id", "user_id", "starts_at"),)

    schedule_id: Mapped[int] = build_cascading_foreign_key("on_call_schedules")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    noticed_at: Mapped[datetime]
    #: Time at which the reminder was sent, a day before the conflict. NULL until then.
    reminded_at: Mapped[datetime | None]
