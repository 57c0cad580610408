"""Rules for recognizing and reading messages from Google Cloud Monitoring."""

from domain.alerts.tools.base import CRITICAL, HIGH, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Google Cloud Monitoring",
    kind=ToolKind.CLOUD,
    marks="incident.incident_id incident.state",
    fields={
        "title": "incident.policy_name incident.condition_name",
        "description": "incident.summary",
        "start_time": "incident.started_at",
        "end_time": "incident.ended_at",
        "severity": "incident.severity",
        "hosts": "incident.resource_name",
        "source_url": "incident.url",
        "fingerprint": "incident.incident_id",
    },
    words={"error": HIGH, "warning": LOW, "no severity": CRITICAL},
    resolved=(("incident.state", IS, "closed"),),
    hint="Add a notification channel of the type Webhook with basic authentication.",
)
