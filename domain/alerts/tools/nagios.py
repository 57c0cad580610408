"""Rules for recognizing and reading messages from Nagios and Icinga."""

from domain.alerts.tools.base import (
    CONTAINS,
    CRITICAL,
    HIGH,
    INFO,
    IS,
    LOW,
    MEDIUM,
    MappedTool,
    ToolKind,
)

TOOL = MappedTool(
    name="Nagios or Icinga",
    kind=ToolKind.NETWORK,
    guide="nagios",
    marks="NOTIFICATIONTYPE HOSTNAME",
    fields={
        "title": "HOSTNAME",
        "description": "SERVICEOUTPUT HOSTOUTPUT",
        "severity": "SERVICESTATE HOSTSTATE",
        "service": "SERVICEDESC",
        "hosts": "HOSTNAME HOSTADDRESS",
        "fingerprint": "HOSTNAME",
    },
    joins={"title": "SERVICEDESC", "fingerprint": "SERVICEDESC"},
    words={
        **dict.fromkeys(("critical", "down"), CRITICAL),
        "unreachable": HIGH,
        "unknown": MEDIUM,
        "warning": LOW,
        **dict.fromkeys(("ok", "up"), INFO),
    },
    resolved=(("NOTIFICATIONTYPE", IS, "recovery"),),
    dropped=(
        ("NOTIFICATIONTYPE", IS, "acknowledgement, custom, flappingstart, flappingstop"),
        ("NOTIFICATIONTYPE", CONTAINS, "downtime"),
    ),
    hint="Post the macros as JSON from a notification command.",
)
