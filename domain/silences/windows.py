"""Maintenance windows: times, once or recurring, in which alerts page nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.orm import Session

from domain.alerts.matching.conditions import Conditions, conditions_from
from domain.alerts.reading.text import storable
from domain.audit.events import Actor
from domain.database.paging import Listed, ListPart, Page, Slice, fetch_page, fetch_part
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.silences.recurrence import Recurrence, parse_rule
from domain.silences.recurrence_words import in_words
from domain.silences.times import Occurrence, WindowTimes
from domain.time_zones import check_zone
from models import MaintenanceWindow, User

LONGEST_NAME = 255
#: In a project: each is looked at when an alert could page somebody.
MOST_LIVE = 200
_NEXT_SHOWN = 5
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class NewWindow:
    """What a window is to be."""

    name: str
    #: Local time without a zone, to the minute.
    local_start: datetime
    length: timedelta
    time_zone: str
    recurrence: Recurrence | None = None
    conditions: Conditions = field(default_factory=Conditions)


@dataclass(frozen=True, kw_only=True)
class WindowView:
    """A window as pages, the API and commands see it."""

    id: int
    project_id: int
    name: str
    times: WindowTimes
    conditions: Conditions
    created_at: datetime
    #: A user name; empty for the command line.
    created_by: str

    def next_occurrences(self, now: datetime) -> tuple[Occurrence, ...]:
        """Return the first occurrences that have not ended, the present one included."""
        return tuple(islice(self.times.ending_after(now), _NEXT_SHOWN))

    @property
    def repeats(self) -> str:
        """When it recurs, in words, or an empty text for once."""
        return in_words(self.times.recurrence) if self.times.recurrence else ""

    @property
    def rule(self) -> str:
        """The recurrence rule, or an empty text for once."""
        return self.times.recurrence.rule if self.times.recurrence else ""


_ROWS: Select[MaintenanceWindow, str | None] = select(MaintenanceWindow, User.username).outerjoin(
    User, User.id == MaintenanceWindow.created_by_id
)


def _view(row: Row[*tuple[Any, ...]]) -> WindowView:
    window: MaintenanceWindow = row[0]
    return WindowView(
        id=window.id,
        project_id=window.project_id,
        name=window.name,
        times=WindowTimes(
            local_start=datetime.fromisoformat(window.local_start),
            length=window.minutes * _MINUTE,
            time_zone=window.time_zone,
            recurrence=parse_rule(window.rule) if window.rule else None,
        ),
        conditions=conditions_from(window.conditions),
        created_at=window.created_at,
        created_by=row[1] or "",
    )


def create_window(
    project_id: int, wanted: NewWindow, *, by: Actor | None, session: Session, now: datetime
) -> WindowView:
    """Store a window, or raise InvalidError or ConflictError."""
    values = _checked(wanted, now=now)
    live = select(func.count()).where(*_live(project_id, now))
    if (session.scalar(live) or 0) >= MOST_LIVE:
        message = f"This project has {MOST_LIVE} maintenance windows: delete some first."
        raise ConflictError(message, field="name")
    made = MaintenanceWindow(
        project_id=project_id, created_at=now, created_by_id=by.id if by else None, **values
    )
    session.add(made)
    session.flush()
    return get_window(project_id, made.id, session=session)


def _live(project_id: int, now: datetime) -> list[ColumnElement[bool]]:
    return [
        MaintenanceWindow.project_id == project_id,
        or_(MaintenanceWindow.last_ends_at.is_(None), MaintenanceWindow.last_ends_at > now),
    ]


def _checked(wanted: NewWindow, *, now: datetime) -> Mapping[str, object]:
    """Return the values of a row, or raise InvalidError."""
    name = storable(wanted.name).strip()
    if not name or len(name) > LONGEST_NAME:
        message = f"A name has 1 to {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    times = WindowTimes(
        local_start=wanted.local_start.replace(second=0, microsecond=0, tzinfo=None),
        length=wanted.length,
        time_zone=check_zone(wanted.time_zone),
        recurrence=wanted.recurrence,
    )
    times.check()
    if next(times.ending_after(now), None) is None:
        message = "The window has already ended."
        raise InvalidError(message, field="starts_at")
    return {
        "name": name,
        "local_start": times.local_start.isoformat(timespec="minutes"),
        "time_zone": times.time_zone,
        "minutes": times.length // _MINUTE,
        "rule": wanted.recurrence.rule if wanted.recurrence else None,
        "conditions": wanted.conditions.to_json(),
        "first_starts_at": times.first_starts_at,
        "last_ends_at": times.last_ends_at,
    }


def change_window(
    project_id: int, window_id: int, wanted: NewWindow, *, session: Session, now: datetime
) -> WindowView:
    """Make a window what is wanted, or raise InvalidError."""
    row = _lock(project_id, window_id, session=session)
    for name, value in _checked(wanted, now=now).items():
        setattr(row, name, value)
    session.flush()
    return get_window(project_id, window_id, session=session)


def delete_window(project_id: int, window_id: int, *, session: Session) -> str:
    """Delete a window and return its name."""
    row = _lock(project_id, window_id, session=session)
    session.delete(row)
    session.flush()
    return row.name


def _lock(project_id: int, window_id: int, *, session: Session) -> MaintenanceWindow:
    row = session.scalar(
        select(MaintenanceWindow)
        .where(MaintenanceWindow.project_id == project_id, MaintenanceWindow.id == window_id)
        .with_for_update()
    )
    if row is None:
        raise _not_found(window_id)
    return row


def get_window(project_id: int, window_id: int, *, session: Session) -> WindowView:
    """Return a window, or raise NotFoundError."""
    row = session.execute(
        _ROWS.where(MaintenanceWindow.project_id == project_id, MaintenanceWindow.id == window_id)
    ).first()
    if row is None:
        raise _not_found(window_id)
    return _view(row)


def _not_found(window_id: int) -> NotFoundError:
    return NotFoundError(f"Maintenance window {window_id} not found in this project.")


def list_windows(project_id: int, part: Slice, *, session: Session) -> Page[WindowView]:
    """Return a page of windows, the newest first."""
    statement = _ROWS.where(MaintenanceWindow.project_id == project_id)
    return fetch_page(statement, MaintenanceWindow.id, part, session=session, view=_view)


def numbered_windows(project_id: int, part: ListPart, *, session: Session) -> Listed[WindowView]:
    """Return a part of the windows for the API."""
    statement = _ROWS.where(MaintenanceWindow.project_id == project_id)
    found = fetch_part(statement, {"id": MaintenanceWindow.id}, part, session=session)
    items = tuple(_view(row) for row in found.items)
    return Listed(items=items, total=found.total, next_cursor=found.next_cursor)


def find_current(
    project_ids: Sequence[int], *, at: datetime, session: Session
) -> Mapping[int, Sequence[tuple[WindowView, Occurrence]]]:
    """Return the windows that take place at a moment by project, with their occurrences."""
    rows = session.execute(
        _ROWS.where(
            MaintenanceWindow.project_id.in_(project_ids),
            MaintenanceWindow.first_starts_at <= at,
            or_(MaintenanceWindow.last_ends_at.is_(None), MaintenanceWindow.last_ends_at > at),
        ).order_by(MaintenanceWindow.id)
    )
    found: dict[int, list[tuple[WindowView, Occurrence]]] = {}
    for row in rows:
        window = _view(row)
        occurrence = window.times.at(at)
        if occurrence is not None:
            found.setdefault(window.project_id, []).append((window, occurrence))
    return found
