"""Rules for recognizing and reading Checkmk notification variables that a script posts."""

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
    name="Checkmk",
    kind=ToolKind.NETWORK,
    marks="NOTIFY_NOTIFICATIONTYPE NOTIFY_WHAT NOTIFY_HOSTNAME",
    fields={
        "title": "NOTIFY_SERVICEDESC NOTIFY_HOSTOUTPUT",
        "description": "NOTIFY_SERVICEOUTPUT NOTIFY_HOSTOUTPUT",
        "severity": "NOTIFY_SERVICESTATE NOTIFY_HOSTSTATE",
        "service": "NOTIFY_SERVICEDESC",
        "hosts": "NOTIFY_HOSTNAME NOTIFY_HOSTADDRESS",
        "fingerprint": "NOTIFY_HOSTNAME",
    },
    joins={
        "title": "NOTIFY_HOSTNAME NOTIFY_SERVICEOUTPUT",
        "fingerprint": "OMD_SITE NOTIFY_SERVICEDESC",
    },
    words={
        **dict.fromkeys(("critical", "down"), CRITICAL),
        "unreachable": HIGH,
        "unknown": MEDIUM,
        "warning": LOW,
        **dict.fromkeys(("ok", "up"), INFO),
    },
    resolved=(("NOTIFY_NOTIFICATIONTYPE", IS, "recovery"),),
    dropped=(
        ("NOTIFY_NOTIFICATIONTYPE", IS, "acknowledgement, custom, flappingstart, flappingstop"),
        ("NOTIFY_NOTIFICATIONTYPE", CONTAINS, "downtime"),
    ),
    hint="Post the environment variables as JSON from a notification script in "
    "local/share/check_mk/notifications.",
)
