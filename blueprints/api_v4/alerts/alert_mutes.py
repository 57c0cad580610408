"""/api/v4/projects/:id/alerts/:iid/mute: what holds the pages of an alert back."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.silences import actions
from web.api.operations import Resources

alert_mutes = Resources("alert_mutes", __name__, url_prefix="/projects/<path:reference>/alerts")
alert_mutes.bind("GET", f"/<int(max={LARGEST_IID}):iid>/mute", actions.show_mute)
