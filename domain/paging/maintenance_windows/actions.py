"""Actions on maintenance windows."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.matching.conditions import conditions_from
from domain.alerts.reading.text import storable
from domain.audit.events import EventKind
from domain.core.database.paging import ListPart, Page, Slice, fetch_page, fetch_part
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.time_zones import check_zone
from domain.core.types.base import Found, columns_of
from domain.paging.maintenance_windows.recurrence import Frequency, Recurrence, parse_rule
from domain.paging.maintenance_windows.types import (
    LONGEST_NAME,
    MaintenanceWindow,
    NewWindow,
    WindowChange,
    WindowOccurrence,
    WindowQuery,
)
from domain.paging.maintenance_windows.windows import WindowTimes, times_of, wall_time_of
from domain.projects.owners import belongs_to, is_above, is_listed_by, owner_columns
from domain.projects.views import Holder
from models import Group, User
from models import MaintenanceWindow as WindowRow

#: Maximum number of unexpired windows of a project or group. Each is checked before alerts page.
MOST_LIVE = 200
_NEXT_SHOWN = 5
_MINUTE = timedelta(minutes=1)


@question("maintenance_windows.index")
def list_windows(work: Work, holder: Holder, query: WindowQuery) -> Found[MaintenanceWindow]:
    """List maintenance windows."""
    part = ListPart(size=query.size, offset=query.offset, is_descending=True)
    here = is_listed_by(
        WindowRow, holder, with_groups_above=query.include_ancestor_groups, session=work.session
    )
    found = fetch_part(_rows(here), {"id": WindowRow.id}, part, session=work.session)
    return Found.of(found, lambda row: _window(row, work.now))


@question("maintenance_windows.index")
def show_page(work: Work, holder: Holder, part: Slice) -> Page[MaintenanceWindow]:
    """Return a page of windows, the newest first."""
    return fetch_page(
        _rows(belongs_to(WindowRow, holder)),
        WindowRow.id,
        part,
        session=work.session,
        view=lambda row: _window(row, work.now),
    )


@question("maintenance_windows.index")
def show_above(work: Work, holder: Holder) -> Sequence[MaintenanceWindow]:
    """Return the windows of the groups above that have not ended, by name."""
    has_not_ended = or_(WindowRow.last_ends_at.is_(None), WindowRow.last_ends_at > work.now)
    here = is_above(WindowRow, holder, session=work.session)
    rows = _rows(here & has_not_ended).order_by(WindowRow.name, WindowRow.id)
    return [_window(row, work.now) for row in work.session.execute(rows)]


@question("maintenance_windows.show")
def show_window(work: Work, holder: Holder, window_id: int) -> MaintenanceWindow:
    """Show a maintenance window.

    Raise NotFoundError if there is no such window.
    """
    row = work.session.execute(
        _rows(belongs_to(WindowRow, holder)).where(WindowRow.id == window_id)
    ).first()
    if row is None:
        raise _not_found(holder, window_id)
    return _window(row, work.now)


@action("maintenance_windows.create")
def create_window(work: Work, holder: Holder, new: NewWindow) -> MaintenanceWindow:
    """Create a maintenance window.

    Raise InvalidError if a field is invalid, or ConflictError if there are too many windows.
    """
    values = _checked(new, _recurrence(new), now=work.now)
    live = select(func.count()).where(
        belongs_to(WindowRow, holder),
        or_(WindowRow.last_ends_at.is_(None), WindowRow.last_ends_at > work.now),
    )
    if (work.session.scalar(live) or 0) >= MOST_LIVE:
        message = (
            f"{holder.path} already has {MOST_LIVE} maintenance windows that have not ended, which "
            "is the maximum. Delete a window first."
        )
        raise ConflictError(message, field="name")
    row = WindowRow(
        **owner_columns(holder), created_at=work.now, created_by_id=work.actor.id, **values
    )
    work.session.add(row)
    work.session.flush()
    _record(work, holder, row, EventKind.MAINTENANCE_WINDOW_CREATED)
    return show_window(work, holder, row.id)


@action("maintenance_windows.edit")
def change_window(
    work: Work, holder: Holder, window_id: int, change: WindowChange
) -> MaintenanceWindow:
    """Change a maintenance window.

    Omitted fields are kept. Raise InvalidError if a field is invalid, or NotFoundError if there is
    no such window.
    """
    row = _lock(work, holder, window_id)
    present = {
        "name": row.name,
        "starts_at": row.local_start,
        "duration": row.minutes * _MINUTE,
        "time_zone": row.time_zone,
        "rule": row.rule or "",
        **row.conditions,
    }
    if change.repeat is not None:
        present["rule"] = ""
    wanted = NewWindow.model_validate({**present, **change.given})
    for name, value in _checked(wanted, _recurrence(wanted), now=work.now).items():
        setattr(row, name, value)
    if work.session.is_modified(row):
        work.session.flush()
        _record(work, holder, row, EventKind.MAINTENANCE_WINDOW_CHANGED)
    return show_window(work, holder, window_id)


@action("maintenance_windows.delete")
def delete_window(work: Work, holder: Holder, window_id: int) -> MaintenanceWindow:
    """Delete a maintenance window.

    Return the deleted window. Raise NotFoundError if there is no such window.
    """
    row = _lock(work, holder, window_id)
    window = show_window(work, holder, window_id)
    _record(work, holder, row, EventKind.MAINTENANCE_WINDOW_DELETED)
    work.session.delete(row)
    work.session.flush()
    return window


def _rows(here: ColumnElement[bool]) -> Select[WindowRow, str | None, str | None]:
    return (
        select(WindowRow, User.username, Group.path)
        .outerjoin(User, User.id == WindowRow.created_by_id)
        .outerjoin(Group, Group.id == WindowRow.group_id)
        .where(here)
    )


def _window(found: Row[*tuple[Any, ...]], now: datetime) -> MaintenanceWindow:
    row, author, group = found
    occurrences = list(islice(times_of(row).ending_after(now), _NEXT_SHOWN))
    return MaintenanceWindow(
        **columns_of(row, MaintenanceWindow)
        | {"rule": row.rule or "", **conditions_from(row.conditions).to_json()},
        group=group,
        starts_at=row.local_start,
        duration=row.minutes * _MINUTE,
        is_active=bool(occurrences) and occurrences[0].starts_at <= now,
        occurrences=[WindowOccurrence.model_validate(each) for each in occurrences],
        created_by=author,
    )


def _checked(
    wanted: NewWindow, recurrence: Recurrence | None, *, now: datetime
) -> Mapping[str, object]:
    """Return the values of a row.

    Raise InvalidError if a field is invalid.
    """
    name = storable(wanted.name).strip()
    if not name or len(name) > LONGEST_NAME:
        raise InvalidError(f"The name must have 1 to {LONGEST_NAME} characters.", field="name")
    zone = check_zone(wanted.time_zone)
    local_start = _read_local_time(wanted.starts_at, zone)
    times = WindowTimes(
        local_start=local_start.replace(second=0, microsecond=0, tzinfo=None),
        length=wanted.duration,
        time_zone=zone,
        recurrence=recurrence,
    )
    times.check()
    if next(times.ending_after(now), None) is None:
        raise InvalidError("The window has already ended.", field="starts_at")
    return {
        "name": name,
        "local_start": times.local_start.isoformat(timespec="minutes"),
        "time_zone": times.time_zone,
        "minutes": times.length // _MINUTE,
        "rule": recurrence.rule if recurrence else None,
        "conditions": wanted.conditions().to_json(),
        "first_starts_at": times.first_starts_at,
        "last_ends_at": times.last_ends_at,
    }


def _recurrence(wanted: NewWindow) -> Recurrence | None:
    if wanted.rule and wanted.repeat:
        raise InvalidError("`repeat` and `rule` cannot be combined. Use one.", field="rule")
    if wanted.rule:
        return parse_rule(wanted.rule)
    return Recurrence(frequency=Frequency(wanted.repeat.upper())) if wanted.repeat else None


def _read_local_time(text: str, time_zone: str) -> datetime:
    """Return the local time for a text.

    Raise InvalidError if the text is not a time.
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is None else wall_time_of(found, time_zone)
    except (ValueError, OverflowError) as error:
        message = (
            "`starts_at` must be a local time such as 2026-12-06T02:00, or a time with an offset "
            "such as 2026-12-06T01:00Z."
        )
        raise InvalidError(message, field="starts_at") from error


def _lock(work: Work, holder: Holder, window_id: int) -> WindowRow:
    row = work.session.scalar(
        select(WindowRow)
        .where(belongs_to(WindowRow, holder), WindowRow.id == window_id)
        .with_for_update()
    )
    if row is None:
        raise _not_found(holder, window_id)
    return row


def _not_found(holder: Holder, window_id: int) -> NotFoundError:
    word = holder.namespace.resource_type
    return NotFoundError(f"Maintenance window {window_id} not found in this {word}.")


def _record(work: Work, holder: Holder, row: WindowRow, kind: EventKind) -> None:
    details = {
        holder.namespace.resource_type: holder.path,
        "window": row.id,
        "starts_at": row.local_start,
        "time_zone": row.time_zone,
        "minutes": row.minutes,
        "rule": row.rule or "",
        **conditions_from(row.conditions).to_json(),
    }
    work.record(kind, subject=row.name, details=details)
