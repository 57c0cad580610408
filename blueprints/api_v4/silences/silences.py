"""/api/v4/projects/:id/silences: whose alerts page nobody, and until when."""

from domain.silences import actions
from web.api.operations import Resources

silences = Resources("silences", __name__, url_prefix="/projects/<path:reference>/silences")
silences.bind("GET", "", actions.list_silences)
silences.bind("GET", "/preview", actions.preview_silence)
silences.bind("GET", "/<int:silence_id>", actions.show_silence)
silences.bind("POST", "", actions.create_silence)
silences.bind("PUT", "/<int:silence_id>", actions.change_silence)
silences.bind("DELETE", "/<int:silence_id>", actions.expire_silence)
