"""Exports a filtered list of alerts as JSON or CSV, in chunks of constant memory.

Rows of several projects say of which one they are: numbers of alerts are those of a project.
"""

import json
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import AlertRow, AlertSlice, list_alerts
from domain.alerts.listing.sort_orders import NEWEST, SortOrder, read_cursor
from domain.clock import written
from domain.csv_lines import csv_line

#: The number of rows in memory at once.
_CHUNK = 500
_COLUMNS = (
    *("iid", "title", "severity", "status", "events", "started_at", "ended_at", "last_event_at"),
    *("service", "environment", "monitoring_tool", "hosts", "integration", "assignee"),
    "raised_from",
)


def as_json(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[str]:
    """Yield a JSON array of the alerts, the newest first if the order has no index."""
    before = "[\n"
    for row in _all_rows(wanted, order, session=session):
        yield before + json.dumps(_project(wanted, row) | _values(row), ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def as_csv(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[str]:
    """Yield the alerts as CSV (RFC 4180) in which no cell is a formula."""
    yield csv_line(_COLUMNS if wanted.projects is None else ("project_path", *_COLUMNS))
    for row in _all_rows(wanted, order, session=session):
        values = _project(wanted, row) | _values(row) | {"hosts": " ".join(row.hosts)}
        yield csv_line(values.values())


def _all_rows(wanted: AlertFilter, order: SortOrder, *, session: Session) -> Iterator[AlertRow]:
    order = NEWEST if order.is_among_newest else order
    position = None
    while True:
        part = AlertSlice(size=_CHUNK, order=order, following=position)
        try:
            page = list_alerts(wanted, part, session=session)
        finally:
            # Free the connection: a slow client, or one that hangs up, must not keep it.
            session.close()
        yield from page.items
        if page.next_before is None:
            return
        position = read_cursor(str(page.next_before), order)


def _project(wanted: AlertFilter, row: AlertRow) -> dict[str, object]:
    return {} if wanted.projects is None else {"project_path": row.project_path}


def _values(row: AlertRow) -> dict[str, object]:
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
