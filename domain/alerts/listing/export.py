"""A filtered list of alerts as a file: written row by row, however many there are."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from typing import Any

from sqlalchemy.orm import Session

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import AlertRow, AlertSlice, list_alerts
from domain.alerts.listing.sort_orders import NEWEST, SortOrder, read_cursor
from domain.clock import written

#: So many rows are in memory at once.
_CHUNK = 500
_COLUMNS = (
    *("iid", "title", "severity", "status", "events", "started_at", "ended_at", "last_event_at"),
    *("service", "environment", "monitoring_tool", "hosts", "integration", "assignee"),
    "raised_from",
)
#: A spreadsheet takes a cell that begins like this for a formula and runs it; those of East Asia
#: know the wide forms as well.
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
#: A cell is cut here by some that read the file.
_BREAKS = frozenset("\t\r\n")


def as_json(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[str]:
    """Write the alerts as a JSON array, the newest first where the order has no index."""
    before = "[\n"
    for row in _all_rows(wanted, order, session=session):
        yield before + json.dumps(_values(row), ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def as_csv(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[str]:
    """Write the alerts as CSV (RFC 4180); no cell is a formula."""
    yield _line(_COLUMNS)
    for row in _all_rows(wanted, order, session=session):
        values = _values(row) | {"hosts": " ".join(row.hosts)}
        yield _line([_harmless(value) for value in values.values()])


def _all_rows(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[AlertRow]:
    order = NEWEST if order.is_among_newest else order
    place = None
    while True:
        part = AlertSlice(size=_CHUNK, order=order, following=place)
        try:
            page = list_alerts(wanted, part, session=session)
        finally:
            # Whoever reads slowly, or hangs up, must not keep a connection; nobody else ends it.
            session.close()
        yield from page.items
        if page.next_before is None:
            return
        place = read_cursor(str(page.next_before), order)


def _values(row: AlertRow) -> dict[str, Any]:
    return {
        "iid": row.iid,
        "title": row.title,
        "severity": row.severity,
        "status": row.status,
        "events": row.events,
        "started_at": _time(row.started_at),
        "ended_at": _time(row.ended_at),
        "last_event_at": _time(row.last_event_at),
        "service": row.service,
        "environment": row.environment,
        "monitoring_tool": row.monitoring_tool,
        "hosts": row.hosts,
        "integration": row.integration_name,
        "assignee": row.assignee,
        "raised_from": row.raised_from,
    }


def _time(moment: datetime | None) -> str | None:
    return written(moment) if moment else None


def _harmless(value: Any) -> Any:
    """Return a cell with an apostrophe before what a spreadsheet would run."""
    if isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return "" if value is None else value


def _is_formula(text: str) -> bool:
    """Tell whether the first character that can be seen begins a formula."""
    seen = (each for each in text if each.isprintable() and not each.isspace())
    return text[:1] in _BREAKS or next(seen, "") in _FORMULA


def _line(values: Any) -> str:
    line = StringIO()
    # All in quotes: in some countries a spreadsheet ends a cell at each semicolon.
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(values)
    return line.getvalue()
