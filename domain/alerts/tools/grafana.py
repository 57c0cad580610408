"""Rules for recognizing messages from Grafana, which uses the format of Alertmanager."""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="Grafana",
    kind=ToolKind.METRICS,
    marks="alerts groupKey receiver orgId",
    hint="Add a contact point of the type Webhook.",
    guide="grafana",
)
