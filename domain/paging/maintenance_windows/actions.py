"""Actions on maintenance windows."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.matching.conditions import parse_conditions
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.audit.events import EventKind
from domain.core.database.pagination import (
    KeysetPage,
    KeysetRange,
    PageRequest,
    fetch_list_page,
    fetch_page,
)
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.time_zones import normalize_zone_name
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.paging.maintenance_windows.occurrences import (
    WindowTimes,
    build_window_times,
    convert_to_wall_time,
)
from domain.paging.maintenance_windows.recurrence import (
    Frequency,
    Recurrence,
    parse_recurrence_rule,
)
from domain.paging.maintenance_windows.types import (
    MAX_WINDOW_NAME_LENGTH,
    MaintenanceWindow,
    NewWindow,
    WindowChange,
    WindowOccurrence,
    WindowQuery,
)
from domain.projects.row_ownership import (
    build_owner_columns,
    build_owner_match_condition,
    is_owned_by_ancestor,
    is_owned_by_self_or_ancestor,
)
from domain.projects.views import ProjectOrGroup
from models import Group, User
from models import MaintenanceWindow as WindowRow

#: Maximum number of unexpired windows in a project or group. All of these windows are checked
#: before an alert pages anyone.
MAX_UNEXPIRED_WINDOWS = 200
_MAX_SHOWN_OCCURRENCES = 5
_MINUTE = timedelta(minutes=1)


@read_action("maintenance_windows.index")
def list_windows(
    work: UnitOfWork, holder: ProjectOrGroup, query: WindowQuery
) -> ListPage[MaintenanceWindow]:
    """List maintenance windows."""
    part = PageRequest(size=query.page_size, offset=query.offset, is_descending=True)
    here = is_owned_by_self_or_ancestor(
        WindowRow, holder, with_groups_above=query.include_ancestor_groups, session=work.session
    )
    found = fetch_list_page(_select_windows(here), {"id": WindowRow.id}, part, session=work.session)
    return ListPage.from_page_result(found, lambda row: _build_window(row, work.now))


@read_action("maintenance_windows.index")
def fetch_window_page(
    work: UnitOfWork, holder: ProjectOrGroup, part: KeysetRange
) -> KeysetPage[MaintenanceWindow]:
    """Return one page of the list of windows, newest first."""
    return fetch_page(
        _select_windows(build_owner_match_condition(WindowRow, holder)),
        WindowRow.id,
        part,
        session=work.session,
        view=lambda row: _build_window(row, work.now),
    )


@read_action("maintenance_windows.index")
def list_inherited_windows(work: UnitOfWork, holder: ProjectOrGroup) -> Sequence[MaintenanceWindow]:
    """Return the unexpired windows of ancestor groups, ordered by name."""
    has_not_ended = or_(WindowRow.last_ends_at.is_(None), WindowRow.last_ends_at > work.now)
    here = is_owned_by_ancestor(WindowRow, holder, session=work.session)
    rows = _select_windows(here & has_not_ended).order_by(WindowRow.name, WindowRow.id)
    return [_build_window(row, work.now) for row in work.session.execute(rows)]


@read_action("maintenance_windows.show")
def show_window(work: UnitOfWork, holder: ProjectOrGroup, window_id: int) -> MaintenanceWindow:
    """Show a maintenance window.

    Raise NotFoundError if there is no such window.
    """
    row = work.session.execute(
        _select_windows(build_owner_match_condition(WindowRow, holder)).where(
            WindowRow.id == window_id
        )
    ).first()
    if row is None:
        raise _build_not_found_error(holder, window_id)
    return _build_window(row, work.now)


@action("maintenance_windows.create")
def create_window(work: UnitOfWork, holder: ProjectOrGroup, new: NewWindow) -> MaintenanceWindow:
    """Create a maintenance window.

    Raise InvalidError if a field is invalid, or ConflictError if there are too many windows.
    """
    values = _build_row_values(new, _parse_recurrence(new), now=work.now)
    live = select(func.count()).where(
        build_owner_match_condition(WindowRow, holder),
        or_(WindowRow.last_ends_at.is_(None), WindowRow.last_ends_at > work.now),
    )
    if (work.session.scalar(live) or 0) >= MAX_UNEXPIRED_WINDOWS:
        message = (
            f"{holder.path} already has {MAX_UNEXPIRED_WINDOWS} maintenance windows that have not "
            "ended, which "
            "is the maximum. Delete a window first."
        )
        raise ConflictError(message, field="name")
    row = WindowRow(
        **build_owner_columns(holder), created_at=work.now, created_by_id=work.actor.id, **values
    )
    work.session.add(row)
    work.session.flush()
    _record_window_event(work, holder, row, EventKind.MAINTENANCE_WINDOW_CREATED)
    return show_window(work, holder, row.id)


@action("maintenance_windows.edit")
def change_window(
    work: UnitOfWork, holder: ProjectOrGroup, window_id: int, change: WindowChange
) -> MaintenanceWindow:
    """Change a maintenance window.

    Omitted fields are kept. Raise InvalidError if a field is invalid, or NotFoundError if there is
    no such window.
    """
    row = _lock_window(work, holder, window_id)
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
    wanted = NewWindow.model_validate({**present, **change.given_values})
    for name, value in _build_row_values(wanted, _parse_recurrence(wanted), now=work.now).items():
        setattr(row, name, value)
    if work.session.is_modified(row):
        work.session.flush()
        _record_window_event(work, holder, row, EventKind.MAINTENANCE_WINDOW_CHANGED)
    return show_window(work, holder, window_id)


@action("maintenance_windows.delete")
def delete_window(work: UnitOfWork, holder: ProjectOrGroup, window_id: int) -> MaintenanceWindow:
    """Delete a maintenance window.

    Return the deleted window. Raise NotFoundError if there is no such window.
    """
    row = _lock_window(work, holder, window_id)
    window = show_window(work, holder, window_id)
    _record_window_event(work, holder, row, EventKind.MAINTENANCE_WINDOW_DELETED)
    work.session.delete(row)
    work.session.flush()
    return window


def _select_windows(
    owner_condition: ColumnElement[bool],
) -> Select[WindowRow, str | None, str | None]:
    return (
        select(WindowRow, User.username, Group.path)
        .outerjoin(User, User.id == WindowRow.created_by_id)
        .outerjoin(Group, Group.id == WindowRow.group_id)
        .where(owner_condition)
    )


def _build_window(found: Row[*tuple[Any, ...]], now: datetime) -> MaintenanceWindow:
    row, author, group = found
    occurrences = list(
        islice(build_window_times(row).find_occurrences_ending_after(now), _MAX_SHOWN_OCCURRENCES)
    )
    return MaintenanceWindow(
        **get_column_values(row, MaintenanceWindow)
        | {"rule": row.rule or "", **parse_conditions(row.conditions).to_json()},
        group=group,
        starts_at=row.local_start,
        duration=row.minutes * _MINUTE,
        is_active=bool(occurrences) and occurrences[0].starts_at <= now,
        occurrences=[WindowOccurrence.model_validate(each) for each in occurrences],
        created_by=author,
    )


def _build_row_values(
    new_window: NewWindow, recurrence: Recurrence | None, *, now: datetime
) -> Mapping[str, object]:
    """Return the column values of a maintenance window.

    Raise InvalidError if a field is invalid.
    """
    name = replace_unstorable_characters(new_window.name).strip()
    if not name or len(name) > MAX_WINDOW_NAME_LENGTH:
        raise InvalidError(
            f"The name must have 1 to {MAX_WINDOW_NAME_LENGTH} characters.", field="name"
        )
    zone = normalize_zone_name(new_window.time_zone)
    local_start = _parse_local_time(new_window.starts_at, zone)
    times = WindowTimes(
        local_start=local_start.replace(second=0, microsecond=0, tzinfo=None),
        length=new_window.duration,
        time_zone=zone,
        recurrence=recurrence,
    )
    times.check_times()
    if next(times.find_occurrences_ending_after(now), None) is None:
        raise InvalidError("The window has already ended.", field="starts_at")
    return {
        "name": name,
        "local_start": times.local_start.isoformat(timespec="minutes"),
        "time_zone": times.time_zone,
        "minutes": times.length // _MINUTE,
        "rule": recurrence.rule if recurrence else None,
        "conditions": new_window.build_conditions().to_json(),
        "first_starts_at": times.first_starts_at,
        "last_ends_at": times.last_ends_at,
    }


def _parse_recurrence(new_window: NewWindow) -> Recurrence | None:
    if new_window.rule and new_window.repeat:
        raise InvalidError("`repeat` and `rule` cannot be combined. Use one.", field="rule")
    if new_window.rule:
        return parse_recurrence_rule(new_window.rule)
    return Recurrence(frequency=Frequency(new_window.repeat.upper())) if new_window.repeat else None


def _parse_local_time(text: str, time_zone: str) -> datetime:
    """Parse a local time, or a time with an offset.

    Raise InvalidError if the text is not a valid time.
    """
    try:
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is None else convert_to_wall_time(found, time_zone)
    except (ValueError, OverflowError) as error:
        message = (
            "`starts_at` must be a local time such as 2026-12-06T02:00, or a time with an offset "
            "such as 2026-12-06T01:00Z."
        )
        raise InvalidError(message, field="starts_at") from error


def _lock_window(work: UnitOfWork, holder: ProjectOrGroup, window_id: int) -> WindowRow:
    row = work.session.scalar(
        select(WindowRow)
        .where(build_owner_match_condition(WindowRow, holder), WindowRow.id == window_id)
        .with_for_update()
    )
    if row is None:
        raise _build_not_found_error(holder, window_id)
    return row


def _build_not_found_error(holder: ProjectOrGroup, window_id: int) -> NotFoundError:
    word = holder.namespace.resource_type
    return NotFoundError(f"Maintenance window {window_id} not found in this {word}.")


def _record_window_event(
    work: UnitOfWork, holder: ProjectOrGroup, row: WindowRow, kind: EventKind
) -> None:
    details = {
        holder.namespace.resource_type: holder.path,
        "window": row.id,
        "starts_at": row.local_start,
        "time_zone": row.time_zone,
        "minutes": row.minutes,
        "rule": row.rule or "",
        **parse_conditions(row.conditions).to_json(),
    }
    work.record_audit_event(kind, subject=row.name, details=details)
