"""Rules for recognizing and reading Statuspage messages about components."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Statuspage (components)",
    uses_key_in_url=True,
    kind=ToolKind.INCIDENTS,
    marks="page.id component.id component_update.new_status",
    fields={
        "title": "component.name",
        "description": "page.status_description",
        "severity": "component_update.new_status",
        "service": "component.name",
        "fingerprint": "component.id",
    },
    words={
        "major_outage": CRITICAL,
        "partial_outage": HIGH,
        "degraded_performance": LOW,
        **dict.fromkeys(("under_maintenance", "operational"), INFO),
    },
    resolved=(("component_update.new_status", IS, "operational"),),
    hint="Subscribe to the status page by webhook, with the key in the URL.",
)
