"""/api/v4/projects/:id/silences, flap_settings, alerts/:iid/mute: what pages nobody."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.silences import actions
from web.api.operations import Resources

silences = Resources("silences", __name__, url_prefix="/projects/<path:reference>/silences")
silences.bind_usual(actions, "/<int:silence_id>")
silences.bind("GET", "/preview", actions.preview_silence)

flap_settings = Resources(
    "flap_settings", __name__, url_prefix="/projects/<path:reference>/flap_settings"
)
flap_settings.bind("GET", "", actions.show_flap_settings)
flap_settings.bind("PUT", "", actions.change_flap_settings)

alert_mutes = Resources("alert_mutes", __name__, url_prefix="/projects/<path:reference>/alerts")
alert_mutes.bind("GET", f"/<int(max={LARGEST_IID}):iid>/mute", actions.show_mute)
