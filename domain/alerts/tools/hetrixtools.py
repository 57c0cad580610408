"""HetrixTools."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="HetrixTools",
    kind=ToolKind.UPTIME,
    marks="monitor_id monitor_name monitor_target monitor_status",
    fields={
        "title": "monitor_name",
        "description": "monitor_errors",
        "start_time": "timestamp",
        "service": "monitor_category",
        "hosts": "monitor_target",
        "fingerprint": "monitor_id",
    },
    resolved=(("monitor_status", IS, "online"),),
    hint="Add the URL with the key as the webhook URL of a contact list.",
)
