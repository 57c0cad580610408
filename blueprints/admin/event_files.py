"""Downloads of the filtered audit log."""

from flask import Response

from domain.audit import log
from domain.audit.log import EventFilter
from web.extensions import db
from web.http.text_files import text_file
from web.services import now

_KINDS = {"jsonl": log.as_json_lines, "csv": log.as_csv}


def event_file(wanted: EventFilter, *, kind: str) -> Response:
    """Return the events as a download; `kind` is "jsonl" or "csv"."""
    lines = _KINDS[kind](wanted, session=db.session())
    return text_file(lines, f"audit-events-{now():%Y-%m-%d}.{kind}")
