"""Rules for recognizing and reading messages from LibreNMS."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="LibreNMS",
    kind=ToolKind.NETWORK,
    marks="hostname device_id rule_id name state severity",
    fields={
        "title": "hostname",
        "description": "msg",
        "severity": "severity",
        "service": "name",
        "hosts": "hostname ip",
        # The ID of an alert changes when the alert gets worse or better.
        "fingerprint": "device_id",
    },
    joins={"title": "name", "fingerprint": "rule_id"},
    words={"critical": CRITICAL, "warning": LOW, "ok": INFO},
    resolved=(("state", IS, "0"),),
    dropped=(("state", IS, "2"),),
    hint="Add an API transport that posts hostname, device_id, rule_id, name, state, severity and "
    "msg with the Content-Type application/json.",
)
