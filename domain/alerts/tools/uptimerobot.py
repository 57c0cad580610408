"""Rules for recognizing and reading messages from UptimeRobot."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="UptimeRobot",
    uses_key_in_url=True,
    kind=ToolKind.UPTIME,
    marks="monitor_url monitor_friendly_name alert_type",
    fields={
        "title": "monitor_friendly_name monitor_url",
        "description": "alert_details",
        "hosts": "monitor_url",
        "fingerprint": "monitor_url",
    },
    joins={"fingerprint": "monitor_friendly_name"},
    resolved=(("alert_type", IS, "2"),),
    # Messages about expiring certificates and domains have no recovery.
    dropped=(("alert_type", IS, "3"),),
    hint="Send monitor_url (*monitorURL*), monitor_friendly_name (*monitorFriendlyName*), "
    "alert_type (*alertType*) and alert_details (*alertDetails*) as JSON, with the key "
    "in the URL.",
)
