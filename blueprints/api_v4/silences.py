"""/api/v4/projects/:id/silences, flap_settings, alerts/:iid/mute: what pages nobody."""

from domain.alerts.listing.queries import LARGEST_IID
from domain.silences import actions
from web.api.operations import Resources

silences = Resources("silences", __name__, url_prefix="/projects/<path:reference>/silences")
silences.bind("GET", "", actions.list_silences)
silences.bind("GET", "/preview", actions.preview_silence)
silences.bind("GET", "/<int:silence_id>", actions.show_silence)
silences.bind("POST", "", actions.create_silence)
silences.bind("PUT", "/<int:silence_id>", actions.change_silence)
silences.bind("DELETE", "/<int:silence_id>", actions.expire_silence)

flap_settings = Resources(
    "flap_settings", __name__, url_prefix="/projects/<path:reference>/flap_settings"
)
flap_settings.bind("GET", "", actions.show_flap_settings)
flap_settings.bind("PUT", "", actions.change_flap_settings)

alert_mutes = Resources("alert_mutes", __name__, url_prefix="/projects/<path:reference>/alerts")
alert_mutes.bind("GET", f"/<int(max={LARGEST_IID}):iid>/mute", actions.show_mute)
