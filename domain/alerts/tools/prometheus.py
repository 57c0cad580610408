"""Rules for recognizing alerts from programs that use Alertmanager's API, such as Prometheus."""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="Prometheus or vmalert",
    kind=ToolKind.METRICS,
    marks="labels.alertname startsAt endsAt",
    hint="Enter the URL without .json as an Alertmanager. The path /api/v2/alerts is appended.",
    example={
        "labels": {"alertname": "InstanceDown", "instance": "web-1:9100", "severity": "page"},
        "annotations": {"summary": "web-1 does not answer"},
        "startsAt": "",
        "endsAt": "",
    },
)
