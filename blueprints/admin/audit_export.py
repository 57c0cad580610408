"""Downloads of the filtered audit log."""

from flask import Response

from domain.audit.exports import export_csv, export_json_lines
from domain.audit.log import EventFilter
from web.extensions import db
from web.http.text_files import build_text_file_response
from web.services import get_current_time

_FORMATTERS = {"jsonl": export_json_lines, "csv": export_csv}


def build_audit_export(event_filter: EventFilter, *, kind: str) -> Response:
    """Return a download of the audit events that match a filter.

    `kind` is "jsonl" or "csv".
    """
    lines = _FORMATTERS[kind](event_filter, session=db.session())
    return build_text_file_response(lines, f"audit-events-{get_current_time():%Y-%m-%d}.{kind}")
