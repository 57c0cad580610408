"""Rules for recognizing events that programs send to PagerDuty's Events API."""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="PagerDuty Events API",
    kind=ToolKind.INCIDENTS,
    marks="routing_key event_action",
    hint="Send the events to this service, with the key of the integration as the routing key.",
    example={
        "event_action": "trigger",
        "dedup_key": "disk-web-1-var",
        "payload": {
            "summary": "Disk almost full",
            "source": "web-1",
            "severity": "critical",
        },
    },
)
