"""Rules for recognizing messages from Prometheus Alertmanager."""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="Prometheus Alertmanager",
    kind=ToolKind.METRICS,
    marks="alerts groupKey receiver",
    hint="Add a receiver with webhook_configs.",
    guide="alertmanager",
)
