"""Rules for recognizing and reading messages from Azure Monitor."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Azure Monitor",
    kind=ToolKind.CLOUD,
    marks="schemaId data.essentials.monitorCondition",
    fields={
        "title": "data.essentials.alertRule",
        "description": "data.essentials.description",
        "start_time": "data.essentials.firedDateTime",
        "end_time": "data.essentials.resolvedDateTime",
        "severity": "data.essentials.severity",
        "service": "data.essentials.monitoringService",
        "hosts": "data.essentials.configurationItems",
        "fingerprint": "data.essentials.originAlertId data.essentials.alertId",
    },
    words={"sev0": CRITICAL, "sev1": HIGH, "sev2": MEDIUM, "sev3": LOW, "sev4": INFO},
    resolved=(("data.essentials.monitorCondition", IS, "resolved"),),
    hint="Turn on the common alert schema in the action group.",
)
