"""Rules for recognizing and reading messages from Cloudflare."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Cloudflare",
    uses_key_in_url=True,
    kind=ToolKind.CLOUD,
    marks="text data ts policy_name alert_event alert_correlation_id",
    fields={
        "title": "policy_name name",
        "description": "text",
        "start_time": "data.start_time ts",
        "hosts": "data.target_hostname data.target_ip",
        "source_url": "data.dashboard_link",
        "fingerprint": "alert_correlation_id",
    },
    joins={"title": "data.target_hostname data.target_ip data.health_check_name"},
    resolved=(("alert_event", IS, "ALERT_STATE_EVENT_END"),),
    hint="Add a webhook destination with the key in the URL, and select it in the notifications.",
)
