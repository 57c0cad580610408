"""Rules for recognizing and reading messages from Dynatrace."""

from domain.alerts.tools.base import CRITICAL, HIGH, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Dynatrace",
    kind=ToolKind.METRICS,
    marks="ProblemID ProblemTitle State",
    fields={
        "title": "ProblemTitle",
        "description": "ProblemDetailsText",
        "severity": "ProblemSeverity",
        "hosts": "ImpactedEntities.0.name",
        "source_url": "ProblemURL",
        "fingerprint": "PID ProblemID",
    },
    joins={"title": "ImpactedEntity"},
    words={
        **dict.fromkeys(("availability", "monitoring_unavailable"), CRITICAL),
        "error": HIGH,
        **dict.fromkeys(("performance", "custom_alert"), MEDIUM),
        "resource_contention": LOW,
    },
    resolved=(("State", IS, "resolved"),),
    dropped=(("ProblemTitle", IS, "Dynatrace problem notification test run"),),
    hint="Add a custom integration with ProblemSeverity and ProblemURL in its payload, and call "
    "the webhook for closed problems.",
)
