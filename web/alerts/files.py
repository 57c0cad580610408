"""Responses that are files: lists of alerts, streamed in constant memory, and bodies of senders."""

from flask import Response, stream_with_context

from domain.alerts.listing import queries
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.sort_orders import SortOrder
from web.extensions import db
from web.services import now

_KINDS = {
    "json": (queries.as_json, "application/json"),
    "csv": (queries.as_csv, "text/csv; charset=utf-8; header=present"),
}


def alert_file(wanted: AlertFilter, order: SortOrder, *, path: str, kind: str) -> Response:
    """Return the alerts as a download; `kind` is json or csv.

    The file is named after the last part of `path`.
    """
    write, media_type = _KINDS[kind]
    rows = write(wanted, order, session=db.session())
    file_name = f"alerts-{path.rpartition('/')[2]}-{now():%Y-%m-%d}.{kind}"
    response = Response(stream_with_context(rows), content_type=media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


def payload_file(body: bytes) -> Response:
    """Return the body of a delivery, byte for byte as it was received."""
    # Not as JSON: a body that was refused can be anything.
    response = Response(body, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = "attachment"
    return response
