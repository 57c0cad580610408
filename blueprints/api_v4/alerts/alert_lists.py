"""/api/v4/alert_management_alerts, also below groups: alerts of several projects together."""

from flask import Blueprint, Response

from domain.alerts.listing.queries import list_alerts
from domain.alerts.listing.types import (
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
from domain.projects.views import GroupView, Viewer
from domain.types.base import Found
from web.alerts.files import alert_file
from web.api.description.described import answers_with
from web.api.operations import operation
from web.extensions import db
from web.services import settings

alert_lists = Blueprint("alert_lists", __name__)
_OF_GROUP = "/groups/<path:reference>/alert_management_alerts"
_MINE = "/alert_management_alerts"
_FILE = "/export.<any(json, csv):kind>"


@alert_lists.get(_OF_GROUP)
@operation("alert_lists.of_group", query=ProjectsAlertQuery, returns=ProjectAlert)
def of_group(group: GroupView, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects in a group and in the groups below it."""
    return _listed(query, projects_of_group(group.id))


@alert_lists.get(f"{_OF_GROUP}{_FILE}")
@answers_with(json="application/json", csv="text/csv")
@operation("alert_lists.download_of_group", query=ProjectsAlertExportQuery)
def download_of_group(group: GroupView, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the alerts of a group that match the filters, as a file."""
    wanted = query.of_projects(projects_of_group(group.id))
    return alert_file(wanted, query.order, path=group.path, kind=kind)


@alert_lists.get(_MINE)
@operation("alert_lists.mine", query=ProjectsAlertQuery, returns=ProjectAlert)
def mine(viewer: Viewer, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects in which the user can see alerts."""
    return _listed(query, projects_of_member(viewer, session=db.session()))


@alert_lists.get(f"{_MINE}{_FILE}")
@answers_with(json="application/json", csv="text/csv")
@operation("alert_lists.download_mine", query=ProjectsAlertExportQuery)
def download_mine(viewer: Viewer, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the alerts of all projects that match the filters, as a file."""
    wanted = query.of_projects(projects_of_member(viewer, session=db.session()))
    return alert_file(wanted, query.order, path="all-projects", kind=kind)


def _listed(query: ProjectsAlertQuery, projects: SelectedProjects) -> Found[ProjectAlert]:
    part, base_url = part_of(query), settings().base_url
    page = list_alerts(query.of_projects(projects), part, session=db.session())
    return Found.of_page(page, lambda row: shown_alert(ProjectAlert, row, base_url))
