"""Rules for recognizing and reading messages from Uptime Kuma."""

from domain.alerts.tools.base import IS, IS_MISSING, MappedTool, ToolKind

TOOL = MappedTool(
    name="Uptime Kuma",
    kind=ToolKind.UPTIME,
    guide="uptime-kuma",
    marks="heartbeat monitor msg",
    fields={
        "title": "monitor.name msg",
        "description": "heartbeat.msg msg",
        "hosts": "monitor.hostname monitor.url",
        "fingerprint": "monitor.name msg",
    },
    joins={"fingerprint": "monitor.id"},
    # Messages without a heartbeat are tests or warnings about expiring certificates, which have no
    # recovery.
    resolved=(
        ("heartbeat.status", IS, "1"),
        ("heartbeat", IS_MISSING, "yes"),
    ),
    dropped=(("heartbeat.status", IS, "2, 3"),),
    hint="Add a notification of the type Webhook with the body application/json.",
)
