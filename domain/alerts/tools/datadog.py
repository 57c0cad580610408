"""Rules for recognizing and reading messages from Datadog."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Datadog",
    kind=ToolKind.METRICS,
    marks="alert_transition title",
    fields={
        "title": "alert_title title",
        "description": "body",
        "severity": "alert_type priority",
        "hosts": "hostname",
        "source_url": "link",
        "fingerprint": "aggreg_key alert_id",
    },
    words={"error": CRITICAL, "warning": MEDIUM, "info": INFO, "success": INFO},
    resolved=(("alert_transition", IS, "recovered, ok"),),
    hint="Keep alert_transition, alert_type, aggreg_key and link in the webhook's payload.",
)
