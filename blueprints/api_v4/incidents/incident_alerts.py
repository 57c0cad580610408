"""/api/v4/projects/:id/incidents/:iid/alerts: the alerts of an incident."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.database.paging import Slice, read_cursor
from domain.incidents import actions
from domain.incidents.types import IncidentAlertsQuery
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.alerts.urls import AlertUrls
from web.api.operations import Resources, operation
from web.api.schemas.alerts.alerts import Alert
from web.http.work import work

incident_alerts = Resources(
    "incident_alerts",
    __name__,
    url_prefix=f"/projects/<path:reference>/incidents/<int(max={LARGEST_IID}):iid>/alerts",
)
incident_alerts.bind("POST", "", actions.link_alerts)
incident_alerts.bind("DELETE", f"/<int(max={LARGEST_IID}):alert_iid>", actions.unlink_alert)


@incident_alerts.get("")
@operation("incident_alerts.index", query=IncidentAlertsQuery, returns=Alert)
def index(project: ProjectView, iid: int, query: IncidentAlertsQuery) -> Found[Alert]:
    """List the alerts of an incident, newest first."""
    part = Slice(size=query.size, before=read_cursor(query.cursor))
    page, urls = actions.show_alerts(work(), project, iid, part), AlertUrls()
    return Found.of_page(page, lambda row: Alert.of(row, urls.of(project.path, row.iid)))
