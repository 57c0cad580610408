"""/api/v4/projects/:id/alert_management_alerts: alerts listed, shown and worked on by scripts."""

from flask import Blueprint, Response

from domain.alerts.handling.alert_detail import get_alert, get_payload
from domain.alerts.handling.assignments import assign, username_of
from domain.alerts.handling.removal import delete_alert
from domain.alerts.handling.status import (
    StatusChange,
    change_matching,
    change_status,
    change_statuses,
)
from domain.alerts.listing.filters import NOBODY
from domain.alerts.listing.queries import LARGEST_IID, list_alerts
from domain.alerts.listing.sort_orders import NEWEST, read_cursor
from domain.audit.events import Actor
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.alerts.alert_audit import record_deletion
from web.alerts.files import alert_file, payload_file
from web.alerts.urls import AlertUrls
from web.api.description.described import answers_with
from web.api.operations import operation
from web.api.schemas.alerts.alerts import (
    Alert,
    AlertBody,
    AlertDetail,
    AlertExportQuery,
    AlertQuery,
    AlertStatusBody,
    StatusReport,
)
from web.extensions import db
from web.services import now, reading

alerts = Blueprint(
    "alerts", __name__, url_prefix="/projects/<path:reference>/alert_management_alerts"
)
#: The converter refuses numbers that no alert has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@alerts.get("")
@operation("alerts.index", query=AlertQuery, returns=Alert)
def index(project: ProjectView, query: AlertQuery) -> Found[Alert]:
    """List alerts, with the same filters and sort orders as the page."""
    page = list_alerts(query.of_project(project.id), query.part, session=db.session())
    urls = AlertUrls()
    return Found.of_page(page, lambda row: Alert.of(row, urls.of(project.path, row.iid)))


@alerts.get("/export.<any(json, csv):kind>")
@answers_with(json="application/json", csv="text/csv")
@operation("alerts.download", query=AlertExportQuery)
def download(project: ProjectView, query: AlertExportQuery, kind: str) -> Response:
    """Export the alerts that match the filters, as a file."""
    wanted = query.of_project(project.id)
    return alert_file(wanted, query.order, path=project.path, kind=kind)


@alerts.get(_ONE)
@operation("alerts.show", returns=AlertDetail)
def show(project: ProjectView, iid: int) -> AlertDetail:
    """Show an alert with all its fields."""
    return _shown(project, iid)


@alerts.get(f"{_ONE}/payload")
@answers_with(file="application/octet-stream")
@operation("alerts.payload")
def payload(project: ProjectView, iid: int) -> Response:
    """Return the payload of an alert, as it was received."""
    return payload_file(get_payload(project.id, iid, session=db.session()))


@alerts.put(_ONE)
@operation("alerts.change", body=AlertBody, returns=AlertDetail)
def change(project: ProjectView, iid: int, body: AlertBody, actor: Actor) -> AlertDetail:
    """Change the status or the assignee of an alert."""
    assignee = _assignee(body)
    if body.status is not None:
        wanted = StatusChange(status=body.status, by=actor)
        change_status(project.id, iid, wanted, session=db.session(), now=now())
    if assignee is not None:
        assign(project, iid, assignee, by=actor, session=db.session(), now=now())
    return _shown(project, iid)


@alerts.delete(_ONE)
@operation("alerts.delete")
def delete(project: ProjectView, iid: int) -> None:
    """Delete an alert with its activity."""
    record_deletion(project, delete_alert(project.id, iid, session=db.session()))


@alerts.put("/status")
@operation("alerts.change_several", body=AlertStatusBody, returns=StatusReport)
def change_several(project: ProjectView, body: AlertStatusBody, actor: Actor) -> StatusReport:
    """Change the status of several alerts, by their numbers or by the filters of the list."""
    change, session = StatusChange(status=body.status, by=actor), db.session()
    if (body.iids is None) == (body.filter is None):
        message = "Give either iids or filter."
        raise InvalidError(message, field="iids")
    if body.filter is None:
        given = body.iids or ()
        result = change_statuses(project.id, given, change, session=session, now=now())
        return StatusReport.of(body, result)
    wanted, following = body.filter.of_project(project.id), read_cursor(body.cursor, NEWEST)
    result, cursor = change_matching(wanted, following, change, session=session, now=now())
    return StatusReport.of(body, result, cursor)


def _assignee(body: AlertBody) -> str | None:
    """Return the user name to assign, NOBODY, or None to leave it as it is."""
    if {"assignee", "assignee_id"} <= body.model_fields_set:
        message = "assignee, assignee_id are mutually exclusive"
        raise InvalidError(message, field="assignee")
    if "assignee_id" in body.model_fields_set:
        if not body.assignee_id:
            return NOBODY
        return username_of(body.assignee_id, session=db.session())
    return body.assignee or NOBODY if "assignee" in body.model_fields_set else None


def _shown(project: ProjectView, iid: int) -> AlertDetail:
    found = get_alert(project.id, iid, session=db.session(), reading=reading())
    return AlertDetail.of_detail(found, AlertUrls().of(project.path, iid))
