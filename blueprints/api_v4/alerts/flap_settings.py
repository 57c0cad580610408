"""/api/v4/projects/:id/flap_settings: what becomes of alerts that open again and again."""

from domain.silences import actions
from web.api.operations import Resources

flap_settings = Resources(
    "flap_settings", __name__, url_prefix="/projects/<path:reference>/flap_settings"
)
flap_settings.bind("GET", "", actions.show_flap_settings)
flap_settings.bind("PUT", "", actions.change_flap_settings)
