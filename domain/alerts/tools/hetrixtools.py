"""Rules for recognizing and reading messages from HetrixTools."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="HetrixTools",
    uses_key_in_url=True,
    kind=ToolKind.UPTIME,
    marks="monitor_id monitor_name monitor_target monitor_status",
    # Messages about blacklists use the second path.
    fields={
        "title": "monitor_name monitor",
        "description": "monitor_errors blacklisted_on",
        "start_time": "timestamp",
        "service": "monitor_category label",
        "hosts": "monitor_target monitor",
        "source_url": "links.report_link",
        "fingerprint": "monitor_id monitor",
    },
    # Messages about resource usage also contain the ID of the monitor.
    joins=dict.fromkeys(("title", "fingerprint"), "resource_usage.resource_type"),
    resolved=(
        ("monitor_status", IS, "online"),
        ("blacklisted_now", IS, "0"),
    ),
    hint="Add a webhook with the key in the URL to a contact list.",
)
