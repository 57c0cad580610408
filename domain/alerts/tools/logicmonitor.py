"""Rules for recognizing and reading messages from LogicMonitor."""

from domain.alerts.tools.base import CRITICAL, HIGH, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="LogicMonitor",
    kind=ToolKind.NETWORK,
    marks="ALERTID ALERTSTATUS LEVEL HOST",
    fields={
        "title": "HOST entity_display_name",
        "description": "state_message MESSAGE",
        "start_time": "STARTEPOCH",
        "service": "DATASOURCE",
        "severity": "LEVEL",
        "hosts": "HOST",
        "source_url": "ALERT_URL",
        "fingerprint": "ALERTID",
    },
    joins={"title": "DATASOURCE DATAPOINT"},
    words={
        "critical": CRITICAL,
        "error": HIGH,
        **dict.fromkeys(("warn", "warning"), MEDIUM),
    },
    resolved=(
        ("message_type", IS, "recovery"),
        ("ALERTSTATUS", IS, "clear"),
    ),
    dropped=(
        ("message_type", IS, "acknowledgement"),
        ("ALERTSTATUS", IS, "ack, test"),
    ),
    hint="Import VictorOps_v1.json from github.com/logicmonitor/alert-integrations as a custom "
    "HTTP delivery, and replace its URLs.",
)
