"""Exports the audit log as CSV and as lines of JSON."""

import json
from collections.abc import Iterator

from sqlalchemy.orm import Session

from domain.audit.log import EventFilter, EventView, fetch_event_page
from domain.core.clock import format_api_time
from domain.core.csv_lines import format_csv_line
from domain.core.database.pagination import KeysetRange

#: Maximum number of events in memory at the same time.
_BATCH_SIZE = 500
_CSV_COLUMNS = (
    *("id", "created_at", "event_name", "title", "author_id", "author_name", "entity_id"),
    *("entity_path", "target_details", "ip_address", "user_agent", "correlation_id", "details"),
)


def export_json_lines(event_filter: EventFilter, *, session: Session) -> Iterator[str]:
    """Yield a line of JSON for each event, in the format of the API, newest first."""
    for event in _iterate_events(event_filter, session=session):
        yield json.dumps(event.convert_to_json_value(), ensure_ascii=False) + "\n"


def export_csv(event_filter: EventFilter, *, session: Session) -> Iterator[str]:
    """Yield the events as CSV (RFC 4180), newest first. Cells that contain formulas are escaped."""
    yield format_csv_line(_CSV_COLUMNS)
    for event in _iterate_events(event_filter, session=session):
        yield format_csv_line(_build_csv_cells(event))


def _build_csv_cells(event: EventView) -> tuple[object, ...]:
    return (
        event.id,
        format_api_time(event.created_at),
        event.kind,
        event.title,
        event.actor_id,
        event.actor_name,
        event.user_id,
        event.username,
        event.subject,
        event.address,
        event.user_agent,
        event.request_id,
        json.dumps(event.details, ensure_ascii=False) if event.details else "",
    )


def _iterate_events(event_filter: EventFilter, *, session: Session) -> Iterator[EventView]:
    before: int | None = None
    while True:
        try:
            page = fetch_event_page(
                event_filter, KeysetRange(size=_BATCH_SIZE, before=before), session=session
            )
        finally:
            # Release the connection, so that a slow or disconnected client does not occupy it.
            session.close()
        yield from page.items
        if page.next_before is None:
            return
        before = int(page.next_before)
