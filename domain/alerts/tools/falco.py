"""Rules for recognizing and reading messages from Falco and Falcosidekick."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Falco",
    kind=ToolKind.KUBERNETES,
    marks="rule priority output output_fields time",
    fields={
        "title": "rule",
        "description": "output",
        "start_time": "time",
        "severity": "priority",
        "service": "source",
        "hosts": "hostname",
        "fingerprint": "rule",
    },
    joins={"title": "hostname", "fingerprint": "hostname"},
    words={
        **dict.fromkeys(("emergency", "alert", "critical"), CRITICAL),
        "error": HIGH,
        "warning": MEDIUM,
        "notice": LOW,
        **dict.fromkeys(("informational", "debug"), INFO),
    },
    dropped=(("rule", IS, "Falco internal: metrics snapshot"),),
    hint="Turn on json_output and http_output, or the webhook of Falcosidekick, and resolve its "
    "alerts manually or after a time.",
)
