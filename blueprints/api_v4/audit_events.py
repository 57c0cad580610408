"""GET /api/v4/audit_events: the audit log, for administrators and log collectors."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response

from domain.audit import log as audit_log
from domain.audit.log import EventFilter
from domain.errors import ForbiddenError
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.marks import bearer as with_bearer
from web.api import parameters as read
from web.api.offset_pages import list_query, offset_response, requested_page
from web.extensions import db
from web.http.json_responses import json_response

audit_events = Blueprint("audit_events", __name__)
_READING = ("api", "read_api", "read")


@audit_events.get("/audit_events")
@with_bearer(*_READING)
def index(bearer: Bearer) -> Response:
    """List the events of the whole instance, the newest first."""
    _administrators_only(bearer)
    given = list_query("entity_type", "entity_id", "created_after", "created_before")
    wanted_page = requested_page()
    found = audit_log.list_events(
        _filter(given), offset=wanted_page.offset, limit=wanted_page.size, session=db.session()
    )
    return offset_response([each.as_json() for each in found.items], wanted_page, total=found.total)


@audit_events.get("/audit_events/<int:event_id>")
@with_bearer(*_READING)
def show(bearer: Bearer, event_id: int) -> Response:
    """Show an event."""
    _administrators_only(bearer)
    return json_response(audit_log.get_event(event_id, session=db.session()).as_json())


def _administrators_only(bearer: Bearer) -> None:
    if not bearer.is_admin:
        message = "Only administrators read the audit events."
        raise ForbiddenError(message)


def _filter(given: Mapping[str, Any]) -> EventFilter:
    # The only entity that can be asked for: an event without one concerns the instance.
    read.one_of(given, "entity_type", ("User",))
    return EventFilter(
        user_id=read.whole_number(given, "entity_id"),
        since=read.moment(given, "created_after"),
        until=read.moment(given, "created_before"),
    )
