"""Exports of the alerts in a list as CSV and JSON.

Exports are written in chunks, so that their memory usage is constant. Exports from several projects
include the project of each row, since alert numbers are unique only within a project.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import AlertListRow, list_alerts
from domain.alerts.listing.sort_orders import (
    NEWEST_FIRST,
    AlertSlice,
    SortOrder,
    parse_sort_cursor,
)
from domain.alerts.listing.status_history import find_status_changes
from domain.core.clock import format_api_time
from domain.core.csv_lines import format_csv_line
from domain.core.database.bulk_statements import fetch_rows_by_key
from models import EscalationPage

#: Number of alerts in each chunk of an export.
_EXPORT_CHUNK_SIZE = 50
_EXPORT_COLUMNS = (
    *("iid", "title", "severity", "status", "events", "started_at", "ended_at", "last_event_at"),
    *("service", "environment", "monitoring_tool", "hosts", "integration", "assignee"),
    *("raised_from", "acknowledged_by", "pages"),
)


def export_alerts_as_json(
    wanted: AlertFilter, order: SortOrder, *, session: Session
) -> Iterator[str]:
    """Yield the alerts as a JSON array.

    The alerts are in the given sort order, or newest first if this order has no index.
    """
    before = "[\n"
    for row, values in _fetch_all_rows(wanted, order, session=session):
        yield before + json.dumps(_format_project(wanted, row) | values, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def export_alerts_as_csv(
    wanted: AlertFilter, order: SortOrder, *, session: Session
) -> Iterator[str]:
    """Yield the alerts as CSV (RFC 4180). Cells that contain formulas are escaped."""
    yield format_csv_line(
        _EXPORT_COLUMNS if wanted.projects is None else ("project_path", *_EXPORT_COLUMNS)
    )
    for row, values in _fetch_all_rows(wanted, order, session=session):
        line = _format_project(wanted, row) | values | {"hosts": " ".join(row.hosts)}
        yield format_csv_line(line.values())


def _fetch_all_rows(
    wanted: AlertFilter, order: SortOrder, *, session: Session
) -> Iterator[tuple[AlertListRow, dict[str, object]]]:
    order = NEWEST_FIRST if order.is_among_newest else order
    position = None
    while True:
        part = AlertSlice(size=_EXPORT_CHUNK_SIZE, order=order, following=position)
        try:
            page = list_alerts(wanted, part, session=session)
            ids = [row.id for row in page.items]
            pages = _count_pages_by_alert(ids, session=session)
            answers = _find_acknowledgers(ids, session=session)
        finally:
            # Closing the session releases the connection, so that a slow or disconnected client
            # does not block it.
            session.close()
        for row in page.items:
            more = {"acknowledged_by": answers.get(row.id) or None, "pages": pages.get(row.id, 0)}
            yield row, _format_values(row, more)
        if page.next_before is None:
            return
        position = parse_sort_cursor(str(page.next_before), order)


def _format_project(wanted: AlertFilter, row: AlertListRow) -> dict[str, object]:
    return {} if wanted.projects is None else {"project_path": row.project_path}


def _count_pages_by_alert(ids: Sequence[int], *, session: Session) -> dict[int, int]:
    of_alert = EscalationPage.alert_id
    rows = fetch_rows_by_key(select(of_alert), of_alert, ids, session=session)
    return Counter(row.alert_id for row in rows)


def _find_acknowledgers(ids: Sequence[int], *, session: Session) -> dict[int, str]:
    """Return the names of the users who first acknowledged alerts, by alert ID."""
    notes = reversed(find_status_changes(ids, session=session))
    return {note.alert_id: note.author for note in notes if note.text == "acknowledged"}


def _format_values(row: AlertListRow, more: Mapping[str, object]) -> dict[str, object]:
    times = {
        name: _format_time(getattr(row, name)) for name in _EXPORT_COLUMNS if name.endswith("_at")
    }
    values = {**vars(row), **times, "integration": row.integration_name, **more}
    return {name: values[name] for name in _EXPORT_COLUMNS}


def _format_time(moment: datetime | None) -> str | None:
    return format_api_time(moment) if moment else None
