"""Programs that send events to PagerDuty's Events API."""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="PagerDuty Events API",
    kind=ToolKind.INCIDENTS,
    marks="routing_key event_action",
    hint="Events are read without a mapping.",
)
