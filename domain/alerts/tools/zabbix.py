"""Rules for recognizing and reading messages from Zabbix."""

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Zabbix",
    kind=ToolKind.NETWORK,
    guide="zabbix",
    marks="event_id event_value",
    fields={
        "title": "event_name alert_subject",
        "description": "trigger_description alert_message",
        "severity": "event_severity event_nseverity",
        "hosts": "host_name host_ip",
        "fingerprint": "event_id",
    },
    words={
        **dict.fromkeys(("disaster", "5"), CRITICAL),
        **dict.fromkeys(("high", "4"), HIGH),
        **dict.fromkeys(("average", "3"), MEDIUM),
        **dict.fromkeys(("warning", "2"), LOW),
        **dict.fromkeys(("information", "1"), INFO),
        **dict.fromkeys(("not classified", "0"), Severity.UNKNOWN),
    },
    resolved=(("event_value", IS, "0"),),
    hint="Add a media type of the type Webhook that posts its parameters as JSON.",
)
