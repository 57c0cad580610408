"""/api/v4/projects/:id/alert_management_alerts/:iid: notes, activity and reports of an alert."""

from domain.alerts.handling import actions
from domain.alerts.listing.queries import LARGEST_IID
from web.api.operations import Resources

alert_activity = Resources(
    "alert_activity",
    __name__,
    url_prefix=f"/projects/<path:reference>/alert_management_alerts/<int(max={LARGEST_IID}):iid>",
)
alert_activity.bind("GET", "/notes", actions.list_alert_notes)
alert_activity.bind("POST", "/notes", actions.create_note)
alert_activity.bind("GET", "/activity", actions.list_alert_activity)
alert_activity.bind("GET", "/occurrences", actions.list_alert_occurrences)
