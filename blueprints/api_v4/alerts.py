"""/api/v4/projects/:id/alert_management_alerts: alerts listed, shown and worked on by scripts."""

from typing import Any

from flask import Blueprint, Response, request, url_for

from domain.accounts.roles import Role
from domain.alerts.handling.alert_detail import get_alert
from domain.alerts.handling.status import StatusChange, change_status
from domain.alerts.listing.queries import LARGEST_IID, AlertRow, AlertSlice, list_alerts
from domain.alerts.listing.sort_orders import read_cursor
from domain.clock import written
from domain.database.list_queries import check_known
from domain.oauth.presented_tokens.bearer import Bearer
from forms.alert_query import PARAMETERS, read_query
from web.access.bearer_token import QUERY_TOKENS
from web.access.marks import bearer as with_bearer
from web.alerts.files import alert_file
from web.api import parameters as read
from web.api.cursor_pages import cursor_response, list_query
from web.api.links import page_size
from web.api.projects import actor_of, project_of
from web.extensions import db
from web.http.json_responses import json_response
from web.http.public_urls import public_url
from web.services import now, reading

alerts = Blueprint(
    "alerts", __name__, url_prefix="/projects/<path:reference>/alert_management_alerts"
)
_ONE = f"/<int(max={LARGEST_IID}):iid>"
_READING = ("api", "read_api", "read", "read_alerts", "write_alerts")
_WRITING = ("api", "write_alerts")


@alerts.get("")
@with_bearer(*_READING)
def index(bearer: Bearer, reference: str) -> Response:
    """List alerts, with the filters and orders of the page."""
    project = project_of(reference, bearer, at_least=Role.DEVELOPER)
    given = list_query(*PARAMETERS, order_by="started_at")
    query = read_query(given, project_id=project.id)
    part = AlertSlice(
        size=page_size(),
        order=query.order,
        following=read_cursor(given.get("cursor"), query.order),
    )
    page = list_alerts(query.wanted, part, session=db.session())
    next_cursor = None if page.next_before is None else str(page.next_before)
    return cursor_response([_as_json(row) for row in page.items], next_cursor)


@alerts.get("/export.<any(json, csv):kind>")
@with_bearer(*_READING)
def download(bearer: Bearer, reference: str, kind: str) -> Response:
    """Write all alerts of the list, with its filters, as a file."""
    project = project_of(reference, bearer, at_least=Role.DEVELOPER)
    check_known(request.args.lists(), PARAMETERS, QUERY_TOKENS)
    query = read_query(request.args, project_id=project.id)
    return alert_file(query.wanted, query.order, project_path=project.path, kind=kind)


@alerts.get(_ONE)
@with_bearer(*_READING)
def show(bearer: Bearer, reference: str, iid: int) -> Response:
    """Show an alert."""
    project = project_of(reference, bearer, at_least=Role.DEVELOPER)
    return json_response(_shown(project.id, iid))


@alerts.put(_ONE)
@with_bearer(*_WRITING)
def change(bearer: Bearer, reference: str, iid: int) -> Response:
    """Change the status of an alert."""
    project = project_of(reference, bearer, at_least=Role.DEVELOPER)
    wanted = StatusChange(status=read.text(read.all_parameters(), "status"), by=actor_of(bearer))
    change_status(project.id, iid, wanted, session=db.session(), now=now())
    return json_response(_shown(project.id, iid))


def _shown(project_id: int, iid: int) -> dict[str, Any]:
    alert = get_alert(project_id, iid, session=db.session(), reading=reading())
    said = {"description": alert.description, "runbook": alert.runbook, "query": alert.query}
    return {**_as_json(alert), **said, "details": dict(alert.payload_fields)}


def _as_json(row: AlertRow) -> dict[str, Any]:
    path = url_for("alerts.show", project_path=row.project_path, iid=row.iid)
    return {
        "id": row.id,
        "iid": row.iid,
        "title": row.title,
        "severity": row.severity,
        "raised_from": row.raised_from,
        "status": row.status,
        "events": row.events,
        "started_at": written(row.started_at),
        "ended_at": written(row.ended_at) if row.ended_at else None,
        "last_event_at": written(row.last_event_at),
        "service": row.service,
        "environment": row.environment,
        "monitoring_tool": row.monitoring_tool,
        "hosts": list(row.hosts),
        "integration": row.integration_name,
        "assignee": row.assignee,
        "web_url": public_url(path),
    }
