"""/api/v4/projects/:id/alert_management_alerts: alerts listed, shown and worked on by scripts."""

from flask import Response

from domain.alerts.handling import actions
from domain.alerts.handling.alert_detail import get_payload
from domain.alerts.handling.batch_actions import change_several
from domain.alerts.listing.queries import LARGEST_IID
from domain.alerts.listing.types import AlertExportQuery
from domain.projects.views import ProjectView
from web.alerts.files import alert_file, payload_file
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.extensions import db

alerts = Resources(
    "alerts", __name__, url_prefix="/projects/<path:reference>/alert_management_alerts"
)
#: The converter refuses numbers that no alert has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
alerts.bind("GET", "", actions.list_alerts)
alerts.bind("GET", _ONE, actions.show_alert)
alerts.bind("PUT", _ONE, actions.change_alert)
alerts.bind("DELETE", _ONE, actions.delete_alert)
alerts.bind("PUT", "/status", change_several)


@alerts.get("/export.<any(json, csv):kind>")
@answers_with(json="application/json", csv="text/csv")
@operation("alerts.download", query=AlertExportQuery)
def download(project: ProjectView, query: AlertExportQuery, kind: str) -> Response:
    """Export the alerts that match the filters, as a file."""
    wanted = query.of_project(project.id)
    return alert_file(wanted, query.order, path=project.path, kind=kind)


@alerts.get(f"{_ONE}/payload")
@answers_with(file="application/octet-stream")
@operation("alerts.payload")
def payload(project: ProjectView, iid: int) -> Response:
    """Return the payload of an alert, as it was received."""
    return payload_file(get_payload(project.id, iid, session=db.session()))
