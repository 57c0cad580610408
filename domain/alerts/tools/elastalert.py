"""Rules for recognizing and reading messages from ElastAlert 2.

Fields that a rule names have dotted keys. Other fields are nested.
"""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="ElastAlert 2",
    kind=ToolKind.LOGS,
    marks="num_hits num_matches",
    fields={
        "title": "rule_name message",
        "description": "message",
        "severity": "severity",
        "hosts": r"host\.name host.name",
        "fingerprint": "rule_name message",
    },
    joins={
        "title": r"host\.name host.name",
        "fingerprint": r"host\.name host.name kubernetes\.pod\.name",
    },
    words={
        **dict.fromkeys(("critical", "fatal"), CRITICAL),
        **dict.fromkeys(("high", "error"), HIGH),
        "medium": MEDIUM,
        **dict.fromkeys(("low", "warning"), LOW),
        "info": INFO,
    },
    hint="Add http_post_static_payload with rule_name and severity to rules with the alerter "
    "post, and resolve the alerts manually or after a time.",
)
