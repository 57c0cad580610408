"""GET /api/v4/audit_events: the audit log, for administrators and log collectors."""

from flask import Blueprint, Response

from domain.audit import log
from domain.types.base import Found
from web.api.description.described import answers_with
from web.api.operations import operation
from web.api.schemas.instance.audit_events import AuditEvent, AuditEventFilters, AuditEventQuery
from web.audit.files import event_file
from web.extensions import db

audit_events = Blueprint("audit_events", __name__, url_prefix="/audit_events")


@audit_events.get("")
@operation("audit_events.index", query=AuditEventQuery, returns=AuditEvent)
def index(query: AuditEventQuery) -> Found[AuditEvent]:
    """List the events of the instance, newest first."""
    found = log.list_events(query.wanted, query.part, session=db.session())
    return Found(
        items=[AuditEvent.of(each) for each in found.items],
        total=found.total,
        next_cursor=found.next_cursor,
    )


@audit_events.get("/export.<any(csv, jsonl):extension>")
@answers_with(csv="text/csv", jsonl="application/jsonl")
@operation("audit_events.download", query=AuditEventFilters)
def download(query: AuditEventFilters, extension: str) -> Response:
    """Export the events that match the filters, as a file."""
    return event_file(query.wanted, kind=extension)


@audit_events.get("/<int:event_id>")
@operation("audit_events.show", returns=AuditEvent)
def show(event_id: int) -> AuditEvent:
    """Show an event."""
    return AuditEvent.of(log.get_event(event_id, session=db.session()))
