"""Rules for recognizing and reading messages from Statuspage."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Statuspage",
    uses_key_in_url=True,
    kind=ToolKind.INCIDENTS,
    marks="page.status_indicator incident.status",
    fields={
        "title": "incident.name",
        "description": "incident.incident_updates.0.body",
        "start_time": "incident.created_at",
        "end_time": "incident.resolved_at",
        "severity": "incident.impact",
        "source_url": "incident.shortlink",
        "fingerprint": "incident.id",
    },
    words={
        "critical": CRITICAL,
        "major": HIGH,
        "minor": LOW,
        "none": INFO,
        "maintenance": INFO,
    },
    resolved=(("incident.status", IS, "resolved, completed, postmortem"),),
    hint="Subscribe to the status page by webhook, with the key in the URL.",
)
