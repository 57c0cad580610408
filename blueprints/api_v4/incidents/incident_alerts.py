"""/api/v4/projects/:id/incidents/:iid/alerts: the alerts of an incident."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.incidents import actions
from web.api.operations import Resources

incident_alerts = Resources(
    "incident_alerts",
    __name__,
    url_prefix=f"/projects/<path:reference>/incidents/<int(max={LARGEST_IID}):iid>/alerts",
)
incident_alerts.bind("GET", "", actions.list_alerts)
incident_alerts.bind("POST", "", actions.link_alerts)
incident_alerts.bind("DELETE", f"/<int(max={LARGEST_IID}):alert_iid>", actions.unlink_alert)
