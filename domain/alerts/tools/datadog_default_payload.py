"""Rules for recognizing and reading messages from Datadog with its default payload."""

from domain.alerts.tools.base import CONTAINS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Datadog (default payload)",
    kind=ToolKind.METRICS,
    marks="event_type title last_updated org.id",
    fields={"title": "title", "description": "body", "fingerprint": "title"},
    # The titles of a problem and of its recovery differ, so a recovery cannot be matched with its
    # alert.
    dropped=(("title", CONTAINS, "[recovered"),),
    hint="Add $ALERT_TRANSITION and $AGGREG_KEY to the webhook's payload. Without them, "
    "recoveries do not resolve alerts.",
)
