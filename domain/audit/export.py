"""Exports a filtered audit log as CSV or JSON lines, in chunks of constant memory."""

import json
from collections.abc import Iterator

from sqlalchemy.orm import Session

from domain.audit.log import EventFilter, EventView, page_of_events
from domain.clock import written
from domain.csv_lines import csv_line
from domain.database.paging import Slice

#: The number of events in memory at once.
_CHUNK = 500
_COLUMNS = (
    *("id", "created_at", "event_name", "title", "author_id", "author_name", "entity_id"),
    *("entity_path", "target_details", "ip_address", "user_agent", "correlation_id", "details"),
)


def as_json_lines(wanted: EventFilter, *, session: Session) -> Iterator[str]:
    """Yield a line of JSON for each event, as the API shows it, the newest first."""
    for event in _all_events(wanted, session=session):
        yield json.dumps(event.as_json(), ensure_ascii=False) + "\n"


def as_csv(wanted: EventFilter, *, session: Session) -> Iterator[str]:
    """Yield the events as CSV (RFC 4180) in which no cell is a formula, the newest first."""
    yield csv_line(_COLUMNS)
    for event in _all_events(wanted, session=session):
        yield csv_line(_cells(event))


def _cells(event: EventView) -> tuple[object, ...]:
    return (
        event.id,
        written(event.created_at),
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


def _all_events(wanted: EventFilter, *, session: Session) -> Iterator[EventView]:
    before: int | None = None
    while True:
        try:
            page = page_of_events(wanted, Slice(size=_CHUNK, before=before), session=session)
        finally:
            # Free the connection: a slow client, or one that hangs up, must not keep it.
            session.close()
        yield from page.items
        if page.next_before is None:
            return
        before = int(page.next_before)
