"""Rules for recognizing and reading messages from Checkmk with Keep's notification script."""

from domain.alerts.tools.base import (
    CONTAINS,
    CRITICAL,
    IS,
    LOW,
    MEDIUM,
    MappedTool,
    ToolKind,
)

TOOL = MappedTool(
    name="Checkmk (script of Keep)",
    kind=ToolKind.NETWORK,
    marks="notification_type what site check_command summary host",
    fields={
        "title": "host",
        "description": "output long_output",
        "severity": "severity",
        "service": "service",
        "hosts": "host address",
        "fingerprint": "site",
    },
    joins={"title": "service output", "fingerprint": "host service"},
    # The script reports the severity OK for every host that is down or unreachable.
    words={
        **dict.fromkeys(("critical", "crit", "ok"), CRITICAL),
        "unknown": MEDIUM,
        "warning": LOW,
    },
    resolved=(("notification_type", IS, "recovery"),),
    dropped=(
        ("notification_type", IS, "acknowledgement, custom, flappingstart, flappingstop"),
        ("notification_type", CONTAINS, "downtime"),
    ),
    hint="Add a notification rule with the script webhook-keep.py, the URL and the key.",
)
