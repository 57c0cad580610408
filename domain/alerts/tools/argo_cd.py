"""Rules for recognizing and reading messages from Argo CD."""

from domain.alerts.tools.base import HIGH, INFO, IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Argo CD",
    kind=ToolKind.KUBERNETES,
    marks="context state target_url",
    beginning=("context", "continuous-delivery/"),
    fields={
        "title": "context",
        "severity": "state",
        "source_url": "target_url",
        "fingerprint": "target_url",
    },
    joins={"title": "state"},
    words={"error": HIGH, "success": INFO},
    resolved=(("state", IS, "success"),),
    dropped=(("state", IS, "pending"),),
    hint="Send the documented template of GitHub commit statuses to a webhook when a sync fails "
    "and when it succeeds.",
)
