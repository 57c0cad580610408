"""Responses with a filtered audit log as a file, streamed in constant memory."""

from flask import Response, stream_with_context

from domain.audit import log
from domain.audit.log import EventFilter
from web.extensions import db
from web.services import now

_KINDS = {
    "jsonl": (log.as_json_lines, "application/jsonl; charset=utf-8"),
    "csv": (log.as_csv, "text/csv; charset=utf-8; header=present"),
}


def event_file(wanted: EventFilter, *, kind: str) -> Response:
    """Return the events as a download; `kind` is jsonl or csv."""
    write, media_type = _KINDS[kind]
    lines = write(wanted, session=db.session())
    response = Response(stream_with_context(lines), content_type=media_type)
    name = f"audit-events-{now():%Y-%m-%d}.{kind}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "private, no-store"
    return response
