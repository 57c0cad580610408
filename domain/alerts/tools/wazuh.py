"""Rules for recognizing and reading messages from Wazuh with its integration for Shuffle."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Wazuh",
    kind=ToolKind.LOGS,
    marks="pretext title rule_id all_fields.rule.level",
    fields={
        "title": "title",
        "description": "text",
        "start_time": "timestamp",
        "severity": "all_fields.rule.level",
        "hosts": "all_fields.agent.name all_fields.agent.ip",
        "fingerprint": "rule_id",
    },
    joins={"title": "all_fields.agent.name", "fingerprint": "all_fields.agent.id"},
    words={
        **dict.fromkeys(("16", "15"), CRITICAL),
        **dict.fromkeys(("14", "13", "12"), HIGH),
        **dict.fromkeys(("11", "10", "9", "8", "7"), MEDIUM),
        **dict.fromkeys(("6", "5", "4"), LOW),
        **dict.fromkeys(("3", "2", "1", "0"), INFO),
    },
    hint="In ossec.conf, add the integration shuffle with the key in its hook_url, and resolve its "
    "alerts manually or after a time.",
)
