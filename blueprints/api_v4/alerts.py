"""/api/v4/…/alert_management_alerts: alerts of a project, a group, or all projects."""

from flask import Blueprint, Response

from blueprints.alerts.receivers import build_alert_export, build_payload_response
from domain.alerts.handling import actions
from domain.alerts.handling.alert_detail import get_payload
from domain.alerts.handling.batch_actions import change_alerts_in_batch
from domain.alerts.listing.project_selection import (
    ProjectSelection,
    build_group_projects_query,
    build_member_projects_query,
)
from domain.alerts.listing.queries import MAX_IID, list_alerts
from domain.alerts.listing.types import (
    AlertExportQuery,
    ProjectAlert,
    ProjectsAlertExportQuery,
    ProjectsAlertQuery,
    build_alert_resource,
    parse_alert_slice,
)
from domain.core.types.pagination import ListPage
from domain.paging.escalations import manual_actions
from domain.projects.views import GroupView, ProjectView, Viewer
from web.api.openapi.view_descriptions import declare_media_types
from web.api.operations import ResourceBlueprint, declare_operation
from web.extensions import db
from web.services import get_settings

_PROJECT_PATH = "/projects/<path:reference>/alert_management_alerts"
_GROUP_PATH = "/groups/<path:reference>/alert_management_alerts"
_OWN_PATH = "/alert_management_alerts"
#: URL path of an alert. The converter rejects numbers that are too large for a database column.
_ITEM_PATH = f"/<int(max={MAX_IID}):iid>"
_EXPORT_PATH = "/export.<any(json, csv):kind>"

alerts = ResourceBlueprint("alerts", __name__, url_prefix=_PROJECT_PATH)
alerts.bind_crud_actions(actions, _ITEM_PATH)
alerts.bind_action("PUT", "/status", change_alerts_in_batch)
alerts.bind_action("GET", f"{_ITEM_PATH}/paging", manual_actions.show_paging)
alerts.bind_action("POST", f"{_ITEM_PATH}/escalate", manual_actions.escalate_alert, status=200)
alerts.bind_action("POST", f"{_ITEM_PATH}/page", manual_actions.page_user, status=200)
alerts.bind_action("POST", f"{_ITEM_PATH}/snooze", manual_actions.snooze_alert, status=200)
alerts.bind_action("POST", f"{_ITEM_PATH}/wake", manual_actions.end_snooze, status=200)
alerts.bind_action("POST", f"{_ITEM_PATH}/renew", manual_actions.renew_acknowledgement, status=200)


@alerts.get(_EXPORT_PATH)
@declare_media_types(json="application/json", csv="text/csv")
@declare_operation("alerts.download", query=AlertExportQuery).with_changes(is_heavy=True)
def download(project: ProjectView, query: AlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of a project as JSON or CSV."""
    wanted = query.build_filter(project.id)
    return build_alert_export(wanted, query.order, path=project.path, kind=kind)


@alerts.get(f"{_ITEM_PATH}/payload")
@declare_media_types(file="application/octet-stream")
@declare_operation("alerts.payload")
def payload(project: ProjectView, iid: int) -> Response:
    """Return the payload of an alert as it was received."""
    return build_payload_response(get_payload(project.id, iid, session=db.session()))


alert_activity = ResourceBlueprint(
    "alert_activity", __name__, url_prefix=f"{_PROJECT_PATH}{_ITEM_PATH}"
)
alert_activity.bind_action("GET", "/notes", actions.list_alert_notes)
alert_activity.bind_action("POST", "/notes", actions.create_note)
alert_activity.bind_action("GET", "/activity", actions.list_alert_activity)
alert_activity.bind_action("GET", "/occurrences", actions.list_alert_occurrences)

alert_lists = Blueprint("alert_lists", __name__)


@alert_lists.get(_GROUP_PATH)
@declare_operation(
    "alert_lists.of_group", query=ProjectsAlertQuery, returns=ProjectAlert
).with_changes(is_heavy=True)
def of_group(group: GroupView, query: ProjectsAlertQuery) -> ListPage[ProjectAlert]:
    """List the alerts of all projects in a group and its subgroups."""
    return _list_alerts(query, build_group_projects_query(group.id))


@alert_lists.get(f"{_GROUP_PATH}{_EXPORT_PATH}")
@declare_media_types(json="application/json", csv="text/csv")
@declare_operation("alert_lists.download_of_group", query=ProjectsAlertExportQuery).with_changes(
    is_heavy=True
)
def download_of_group(group: GroupView, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of a group as JSON or CSV."""
    wanted = query.build_filter_across_projects(build_group_projects_query(group.id))
    return build_alert_export(wanted, query.order, path=group.path, kind=kind)


@alert_lists.get(_OWN_PATH)
@declare_operation("alert_lists.mine", query=ProjectsAlertQuery, returns=ProjectAlert).with_changes(
    is_heavy=True
)
def mine(viewer: Viewer, query: ProjectsAlertQuery) -> ListPage[ProjectAlert]:
    """List the alerts of all projects in which the caller can see alerts."""
    return _list_alerts(query, build_member_projects_query(viewer, session=db.session()))


@alert_lists.get(f"{_OWN_PATH}{_EXPORT_PATH}")
@declare_media_types(json="application/json", csv="text/csv")
@declare_operation("alert_lists.download_mine", query=ProjectsAlertExportQuery).with_changes(
    is_heavy=True
)
def download_mine(viewer: Viewer, query: ProjectsAlertExportQuery, kind: str) -> Response:
    """Export the matching alerts of all projects as JSON or CSV."""
    wanted = query.build_filter_across_projects(
        build_member_projects_query(viewer, session=db.session())
    )
    return build_alert_export(wanted, query.order, path="all-projects", kind=kind)


def _list_alerts(query: ProjectsAlertQuery, projects: ProjectSelection) -> ListPage[ProjectAlert]:
    part, base_url = parse_alert_slice(query), get_settings().base_url
    page = list_alerts(query.build_filter_across_projects(projects), part, session=db.session())
    return ListPage.from_keyset_page(
        page, lambda row: build_alert_resource(ProjectAlert, row, base_url)
    )
