"""Rules for recognizing and reading messages from Proxmox VE."""

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.tools.base import HIGH, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Proxmox VE",
    kind=ToolKind.NETWORK,
    marks="title message severity timestamp fields.type",
    fields={
        "title": "title",
        "description": "message",
        "start_time": "timestamp",
        "severity": "severity",
        "service": "fields.type",
        "hosts": "fields.hostname",
        "fingerprint": "fields.type",
    },
    joins={"fingerprint": "fields.hostname fields.job-id"},
    words={
        "error": HIGH,
        "warning": LOW,
        **dict.fromkeys(("notice", "info"), INFO),
        "unknown": Severity.UNKNOWN,
    },
    resolved=(("severity", IS, "info"),),
    hint="Add a webhook target that posts title, message, severity, timestamp and {{ json fields "
    "}} as JSON.",
)
