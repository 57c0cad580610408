"""Rules for recognizing and reading messages from Grafana's legacy alerting."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Grafana (legacy alerting)",
    kind=ToolKind.METRICS,
    marks="ruleId ruleName ruleUrl state",
    fields={
        "title": "ruleName title",
        "description": "message",
        "source_url": "ruleUrl",
        "fingerprint": "ruleUrl ruleId",
    },
    joins={"fingerprint": "ruleId"},
    resolved=(("state", IS, "ok"),),
    dropped=(("state", IS, "paused, pending"),),
    hint="Add a notification channel of the type webhook, with the key as its password.",
)
