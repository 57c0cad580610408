"""Actions on absences of users, and on calendars of absences and holidays."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.clock import format_api_time
from domain.core.database.locks import commit_to_release_locks
from domain.core.database.pagination import MAX_ID, fetch_list_page
from domain.core.errors import InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.time_zones import get_zone
from domain.core.types.pagination import ListPage, OffsetQuery
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.paging.on_call.absences.imported_calendars import (
    FILE_PERIOD,
    read_calendar_events,
    store_calendar_events,
)
from domain.paging.on_call.absences.types import (
    AbsenceQuery,
    ImportedCalendar,
    NewAbsence,
    NewImportedCalendar,
    OnCallAbsence,
    OnCallHoliday,
)
from domain.paging.on_call.schedules import get_schedule_row
from domain.paging.on_call.types import check_period, check_period_not_over
from domain.projects.views import ProjectOrGroup
from models import OnCallAbsence as AbsenceRow
from models import OnCallHoliday as HolidayRow
from models import OnCallImportedCalendar as CalendarRow
from models import OnCallSchedule, User

_MAX_ABSENCES, _MAX_CALENDARS = 200, 10


@read_action("own_absences.index")
def list_absences(work: UnitOfWork, query: AbsenceQuery) -> ListPage[OnCallAbsence]:
    """List your current and future absences."""
    here = select(AbsenceRow).where(
        AbsenceRow.user_id == work.actor.id, AbsenceRow.ends_at > work.now
    )
    orders = {"id": AbsenceRow.id, "starts_at": AbsenceRow.starts_at}
    found = fetch_list_page(here, orders, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, lambda row: OnCallAbsence.model_validate(row[0]))


@action("own_absences.create")
def create_absence(work: UnitOfWork, new: NewAbsence) -> OnCallAbsence:
    """Create an absence.

    If you are on call during the absence, you are still paged, and the conflict is shown. Raise
    InvalidError if the period is over or not valid.
    """
    during = check_period(new.starts_at, new.ends_at, fields=("starts_at", "ends_at"))
    check_period_not_over(during, field="ends_at", now=work.now)
    mine = (AbsenceRow.user_id == work.actor.id, AbsenceRow.calendar_id.is_(None))
    _check_maximum_count(work, AbsenceRow, _MAX_ABSENCES, *mine, AbsenceRow.ends_at > work.now)
    row = AbsenceRow(
        user_id=work.actor.id,
        starts_at=during.start,
        ends_at=during.end,
        note=new.note,
        created_at=work.now,
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    _record_absence_event(work, "created", row)
    return OnCallAbsence.model_validate(row)


@action("own_absences.delete")
def delete_absence(work: UnitOfWork, absence_id: int) -> OnCallAbsence:
    """Delete an absence that you entered.

    Raise NotFoundError if there is no such absence, or InvalidError if the absence comes from a
    calendar.
    """
    row = work.session.get(AbsenceRow, min(absence_id, MAX_ID))
    if row is None or row.user_id != work.actor.id:
        raise NotFoundError("Absence not found.")
    if row.calendar_id is not None:
        raise InvalidError("Delete this absence in its calendar.", field="absence_id")
    shown = OnCallAbsence.model_validate(row)
    work.session.delete(row)
    _record_absence_event(work, "deleted", row)
    return shown


@read_action("own_absence_calendars.index")
def list_own_calendars(work: UnitOfWork, query: OffsetQuery) -> ListPage[ImportedCalendar]:
    """List your absence calendars."""
    return _list_calendars(work, _get_user_calendar_owner(work), query)


@action("own_absence_calendars.create")
def create_own_calendar(work: UnitOfWork, new: NewImportedCalendar) -> ImportedCalendar:
    """Add an absence calendar.

    A file is read immediately. Raise InvalidError if the file cannot be read or the URL is not
    valid.
    """
    return _create_calendar(work, new, lambda: _get_user_calendar_owner(work))


@action("own_absence_calendars.refresh")
def refresh_own_calendar(work: UnitOfWork, calendar_id: int) -> ImportedCalendar:
    """Refresh an absence calendar.

    The calendar is refreshed within a minute. Raise NotFoundError if there is no such calendar, or
    InvalidError if it was added as a file.
    """
    return _request_refresh(work, _get_user_calendar_owner(work), calendar_id)


@action("own_absence_calendars.delete")
def delete_own_calendar(work: UnitOfWork, calendar_id: int) -> ImportedCalendar:
    """Remove an absence calendar and its absences.

    Raise NotFoundError if there is no such calendar.
    """
    return _delete_calendar(work, _get_user_calendar_owner(work), calendar_id)


@read_action("on_call_holiday_calendars.index")
def list_holiday_calendars(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: OffsetQuery
) -> ListPage[ImportedCalendar]:
    """List the holiday calendars of a schedule."""
    return _list_calendars(work, _get_schedule_calendar_owner(work, holder, schedule_id), query)


@action("on_call_holiday_calendars.create")
def create_holiday_calendar(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, new: NewImportedCalendar
) -> ImportedCalendar:
    """Add a holiday calendar to a schedule.

    A file is read immediately. Raise InvalidError if the file cannot be read or the URL is not
    valid.
    """
    return _create_calendar(
        work, new, lambda: _get_schedule_calendar_owner(work, holder, schedule_id)
    )


@action("on_call_holiday_calendars.refresh")
def refresh_holiday_calendar(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, calendar_id: int
) -> ImportedCalendar:
    """Refresh a holiday calendar.

    The calendar is refreshed within a minute. Raise NotFoundError if there is no such calendar, or
    InvalidError if it was added as a file.
    """
    return _request_refresh(
        work, _get_schedule_calendar_owner(work, holder, schedule_id), calendar_id
    )


@action("on_call_holiday_calendars.delete")
def delete_holiday_calendar(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, calendar_id: int
) -> ImportedCalendar:
    """Remove a holiday calendar from a schedule.

    Raise NotFoundError if there is no such calendar.
    """
    return _delete_calendar(
        work, _get_schedule_calendar_owner(work, holder, schedule_id), calendar_id
    )


@read_action("on_call_holidays.index")
def list_holidays(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int, query: OffsetQuery
) -> ListPage[OnCallHoliday]:
    """List the current and future holidays of a schedule."""
    schedule = get_schedule_row(work, holder, schedule_id)
    today = work.now.astimezone(get_zone(schedule.time_zone)).date()
    found = find_holidays(schedule.id, today, date.max, session=work.session)
    return query.build_page(found)


def find_holidays(
    schedule_id: int, first_day: date, last_day: date, *, session: Session
) -> Sequence[OnCallHoliday]:
    """Return the holidays of a schedule from the first to the last day."""
    rows = session.scalars(
        select(HolidayRow)
        .join(CalendarRow, CalendarRow.id == HolidayRow.calendar_id)
        .where(
            CalendarRow.schedule_id == schedule_id,
            HolidayRow.last_day >= first_day,
            HolidayRow.first_day <= last_day,
        )
        .order_by(HolidayRow.first_day, HolidayRow.name, HolidayRow.id)
    )
    # Several calendars may contain the same holiday.
    return tuple(dict.fromkeys(OnCallHoliday.model_validate(row) for row in rows))


class _CalendarOwner(NamedTuple):
    """The user or schedule to which calendars belong."""

    #: Column that refers to the owner, with its ID.
    key: Mapping[str, int | None]
    time_zone: str
    #: Kind of the calendars in the audit log.
    title: str
    holder: ProjectOrGroup | None = None
    schedule: OnCallSchedule | None = None


def _get_user_calendar_owner(work: UnitOfWork) -> _CalendarOwner:
    zone = work.session.scalars(select(User.time_zone).where(User.id == work.actor.id)).one()
    return _CalendarOwner({"user_id": work.actor.id}, zone, "absence calendar")


def _get_schedule_calendar_owner(
    work: UnitOfWork, holder: ProjectOrGroup, schedule_id: int
) -> _CalendarOwner:
    row = get_schedule_row(work, holder, schedule_id)
    return _CalendarOwner({"schedule_id": row.id}, row.time_zone, "holiday calendar", holder, row)


def _list_calendars(
    work: UnitOfWork, owner: _CalendarOwner, query: OffsetQuery
) -> ListPage[ImportedCalendar]:
    found = select(CalendarRow).filter_by(**owner.key).order_by(CalendarRow.id)
    rows = work.session.scalars(found)
    return query.build_page([ImportedCalendar.model_validate(row) for row in rows])


def _lock_calendar(work: UnitOfWork, owner: _CalendarOwner, calendar_id: int) -> CalendarRow:
    found = select(CalendarRow).filter_by(id=min(calendar_id, MAX_ID), **owner.key)
    row: CalendarRow | None = work.session.scalar(found.with_for_update())
    if row is None:
        raise NotFoundError("Calendar not found.")
    return row


def _create_calendar(
    work: UnitOfWork, new: NewImportedCalendar, find_owner: Callable[[], _CalendarOwner]
) -> ImportedCalendar:
    owner, content = find_owner(), None
    if new.content:
        is_of_user, until = owner.schedule is None, work.now + FILE_PERIOD
        commit_to_release_locks(work.session)  # Reading a file can take several seconds.
        content = read_calendar_events(
            new.content.encode(), owner.time_zone, until, is_of_user=is_of_user, now=work.now
        )
        # The schedule may have been deleted in the meantime.
        owner = find_owner()._replace(time_zone=owner.time_zone)
    url, host = _parse_calendar_url(new.url) if new.url else ("", None)
    here = select(CalendarRow).filter_by(**owner.key).whereclause
    _check_maximum_count(work, CalendarRow, _MAX_CALENDARS, here)
    row = CalendarRow(
        **owner.key,
        name=new.name,
        host=host,
        url_ciphertext=work.policy(Keyring).encrypt(url) if url else None,
        created_at=work.now,
        refreshed_at=None if url else work.now,
        next_refresh_at=work.now if url else None,
    )
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    if content:
        store_calendar_events(row, content, owner.time_zone, session=work.session, now=work.now)
    _record_calendar_or_absence_event(work, f"{owner.title} added", {"calendar": row.name}, owner)
    return ImportedCalendar.model_validate(row)


def _parse_calendar_url(text: str) -> tuple[str, str]:
    """Convert a webcal:// or https:// URL to an https URL, and return it with its host."""
    scheme, _, rest = text.partition("://")
    text = f"https://{rest}" if scheme.lower() in {"webcal", "webcals"} else text
    url = parse_outgoing_url(text)
    if not url.is_encrypted:
        raise InvalidError("The URL must begin with https://, because it is secret.", field="url")
    return text, url.host


def _check_maximum_count(
    work: UnitOfWork, table: type[Any], maximum: int, *conditions: Any
) -> None:
    counted = select(func.count()).select_from(table).where(*conditions)
    if (work.session.scalar(counted) or 0) >= maximum:
        things = "current and future absences" if table is AbsenceRow else "calendars"
        raise InvalidError(f"There can be at most {maximum} {things}.")


def _request_refresh(work: UnitOfWork, owner: _CalendarOwner, calendar_id: int) -> ImportedCalendar:
    row = _lock_calendar(work, owner, calendar_id)
    if row.url_ciphertext is None:
        raise InvalidError(
            "An uploaded file cannot be refreshed. Add the new file.", field="calendar_id"
        )
    row.next_refresh_at = work.now
    work.session.flush()
    return ImportedCalendar.model_validate(row)


def _delete_calendar(work: UnitOfWork, owner: _CalendarOwner, calendar_id: int) -> ImportedCalendar:
    row = _lock_calendar(work, owner, calendar_id)
    _record_calendar_or_absence_event(work, f"{owner.title} removed", {"calendar": row.name}, owner)
    shown = ImportedCalendar.model_validate(row)
    work.session.execute(delete(CalendarRow).where(CalendarRow.id == row.id))
    return shown


def _record_absence_event(work: UnitOfWork, change: str, row: AbsenceRow) -> None:
    times = {each: format_api_time(getattr(row, each)) for each in ("starts_at", "ends_at")}
    _record_calendar_or_absence_event(work, change, times)


def _record_calendar_or_absence_event(
    work: UnitOfWork, change: str, details: Mapping[str, str], owner: _CalendarOwner | None = None
) -> None:
    """Record an audit event about an absence, or about a calendar of the actor or a schedule."""
    details = {"change": change, **details}
    if owner and owner.holder and owner.schedule:
        details[owner.holder.namespace.resource_type] = owner.holder.path
        kind = EventKind.ON_CALL_SCHEDULE_CHANGED
        work.record_audit_event(kind, subject=owner.schedule.name, details=details)
    else:
        kind, user_id = EventKind.ON_CALL_ABSENCE_CHANGED, work.actor.id
        work.record_audit_event(kind, user_id=user_id, details=details)
