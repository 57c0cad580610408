"""/api/v4/alert_management_alerts, also below groups: alerts of several projects together."""

from flask import Blueprint

from domain.alerts.listing.queries import AlertRow, list_across
from domain.alerts.listing.watched_projects import projects_of_group, projects_of_member
from domain.database.paging import Page
from domain.projects.views import GroupView, Viewer
from web.alerts.urls import AlertUrls
from web.api.operations import Found, operation
from web.api.schemas.alerts import ProjectAlert, ProjectsAlertQuery
from web.extensions import db

alert_lists = Blueprint("alert_lists", __name__)


@alert_lists.get("/groups/<path:reference>/alert_management_alerts")
@operation("alert_lists.of_group", query=ProjectsAlertQuery, returns=ProjectAlert)
def of_group(group: GroupView, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects in a group and in the groups below it."""
    wanted, projects = query.wanted, projects_of_group(group.id)
    return _presented(list_across(wanted, projects, query.part, session=db.session()))


@alert_lists.get("/alert_management_alerts")
@operation("alert_lists.mine", query=ProjectsAlertQuery, returns=ProjectAlert)
def mine(viewer: Viewer, query: ProjectsAlertQuery) -> Found[ProjectAlert]:
    """List the alerts of all projects where the user is a member who may see them."""
    wanted, projects = query.wanted, projects_of_member(viewer, session=db.session())
    return _presented(list_across(wanted, projects, query.part, session=db.session()))


def _presented(page: Page[AlertRow]) -> Found[ProjectAlert]:
    urls = AlertUrls()
    return Found.of_page(page, lambda row: ProjectAlert.of(row, urls.of(row.project_path, row.iid)))
