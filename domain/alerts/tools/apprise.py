"""Rules for recognizing and reading messages from Apprise."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Apprise",
    kind=ToolKind.OTHER,
    marks="version title message type attachments",
    fields={"description": "message", "severity": "type", "fingerprint": "title"},
    words={"failure": CRITICAL, "warning": LOW, "info": INFO, "success": INFO},
    resolved=(("type", IS, "success"),),
    hint="Use a URL that starts with jsons:// and contains +Authorization=Bearer%20KEY.",
)
