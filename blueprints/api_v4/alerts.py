"""/api/v4/…/alert_management_alerts: alerts of a project, a group, or all projects."""

from flask import Blueprint, Response

from blueprints.alerts.receiving import alert_file, payload_file
from domain.alerts.handling import actions
from domain.alerts.handling.alert_detail import get_payload
from domain.alerts.handling.batch_actions import change_several
from domain.alerts.listing.queries import LARGEST_IID, list_alerts
from domain.alerts.listing.types import (
    AlertExportQuery,
    ProjectAlert,
    ProjectsAlertExportQuery,
    ProjectsAlertQuery,
    part_of,
    shown_alert,
)
from domain.alerts.listing.watched_projects import (
    SelectedProjects,
    projects_of_group,
    projects_of_member,
)
from domain.core.types.base import Found
from domain.paging.escalations import manual_actions
from domain.projects.views import GroupView, ProjectView, Viewer
from web.api.description.described import answers_with
from web.api.operations import Resources, operation
from web.extensions import db
from web.services import settings

_OF_PROJECT = "/projects/<path:reference>/alert_management_alerts"
_OF_GROUP = "/groups/<path:reference>/alert_management_alerts"
_MINE = "/alert_management_alerts"
#: Part of a URL for an alert. The converter rejects numbers that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"
_FILE = "/export.<any(json, csv):kind>"

alerts = Resources("alerts", __name__, url_prefix=_OF_PROJECT)
alerts.bind_usual(actions, _ONE)
alerts.bind("PUT", "/status", change_several)
alerts.bind("GET", f"{_ONE}/paging", manual_actions.show_paging)
alerts.bind("POST", f"{_ONE}/escalate", manual_actions.escalate_alert, status=200)
alerts.bind("POST", f"{_ONE}/page", manual_actions.page_person, status=200)
alerts.bind("POST", f"{_ONE}/snooze", manual_actions.snooze_alert, status=200)
alerts.bind("POST", f"{_ONE}/wake", manual_actions.wake_alert, status=200)
alerts.bind("POST", f"{_ONE}/renew", manual_actions.renew_acknowledgement, status=200)


@alerts.get(_FILE)
@answers_with(json="application/json", csv="text/csv")
@operation("alerts.download", query=AlertExportQuery).but(is_heavy=True)
def download(project: ProjectView, query: AlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of a project as JSON or CSV."""
    wanted = query.of_project(project.id)
    return alert_file(wanted, query.order, path=project.path, kind=kind)


@alerts.get(f"{_ONE}/payload")
@answers_with(file="application/octet-stream")
@operation("alerts.payload")
def payload(project: ProjectView, iid: int) -> Response:
    """Return the payload of an alert as it was received."""
    return payload_file(get_payload(project.id, iid, session=db.session()))


alert_activity = Resources("alert_activity", __name__, url_prefix=f"{_OF_PROJECT}{_ONE}")
alert_activity.bind("GET", "/notes", actions.list_alert_notes)
alert_activity.bind("POST", "/notes", actions.create_note)
alert_activity.bind("GET", "/activity", actions.list_alert_activity)
alert_activity.bind("GET", "/occurrences", actions.list_alert_occurrences)

alert_lists = Blueprint("alert_lists", __name__)


@alert_lists.get(_OF_GROUP)
@operation("alert_lists.of_group", query=ProjectsAlertQuery, returns=ProjectAlert).but(
    is_heavy=True
)
def of_group(group: GroupView, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects in a group and its subgroups."""
    return _listed(query, projects_of_group(group.id))


@alert_lists.get(f"{_OF_GROUP}{_FILE}")
@answers_with(json="application/json", csv="text/csv")
@operation("alert_lists.download_of_group", query=ProjectsAlertExportQuery).but(is_heavy=True)
def download_of_group(group: GroupView, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of a group as JSON or CSV."""
    wanted = query.of_projects(projects_of_group(group.id))
    return alert_file(wanted, query.order, path=group.path, kind=kind)


@alert_lists.get(_MINE)
@operation("alert_lists.mine", query=ProjectsAlertQuery, returns=ProjectAlert).but(is_heavy=True)
def mine(viewer: Viewer, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects in which the caller can see alerts."""
    return _listed(query, projects_of_member(viewer, session=db.session()))


@alert_lists.get(f"{_MINE}{_FILE}")
@answers_with(json="application/json", csv="text/csv")
@operation("alert_lists.download_mine", query=ProjectsAlertExportQuery).but(is_heavy=True)
def download_mine(viewer: Viewer, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of all projects as JSON or CSV."""
    wanted = query.of_projects(projects_of_member(viewer, session=db.session()))
    return alert_file(wanted, query.order, path="all-projects", kind=kind)


def _listed(query: ProjectsAlertQuery, projects: SelectedProjects) -> Found[ProjectAlert]:
    part, base_url = part_of(query), settings().base_url
    page = list_alerts(query.of_projects(projects), part, session=db.session())
    return Found.of_page(page, lambda row: shown_alert(ProjectAlert, row, base_url))
