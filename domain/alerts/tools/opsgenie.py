"""Rules for recognizing and reading messages from Opsgenie's outgoing webhooks."""

from domain.alerts.tools.base import (
    CRITICAL,
    HIGH,
    INFO,
    IS,
    IS_NOT,
    LOW,
    MEDIUM,
    MappedTool,
    ToolKind,
)

TOOL = MappedTool(
    name="Opsgenie",
    kind=ToolKind.INCIDENTS,
    marks="action alert.alertId integrationName",
    fields={
        "title": "alert.message",
        "description": "alert.description",
        "start_time": "alert.createdAt",
        "severity": "alert.priority",
        "hosts": "alert.entity",
        "fingerprint": "alert.alertId",
    },
    words={"p1": CRITICAL, "p2": HIGH, "p3": MEDIUM, "p4": LOW, "p5": INFO},
    resolved=(("action", IS, "close, delete"),),
    # Notes, tags and the names of custom actions do not report a problem.
    dropped=(("action", IS_NOT, "create, unacknowledge, close, delete"),),
    hint="Add an integration of the type Webhook with the custom Authorization header, and "
    "add the alert's description to its payload.",
)
