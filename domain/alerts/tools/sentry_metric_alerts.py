"""Rules for recognizing and reading messages from Sentry's metric alerts."""

from domain.alerts.tools.base import INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Sentry (metric alerts)",
    kind=ToolKind.ERRORS,
    guide="sentry",
    marks="action data.metric_alert",
    fields={
        "title": "data.description_title data.metric_alert.title",
        "description": "data.description_text",
        "severity": "action",
        "service": "data.metric_alert.projects.0",
        "source_url": "data.web_url",
        "fingerprint": "data.metric_alert.id",
    },
    words={"warning": MEDIUM, "resolved": INFO},
    resolved=(("action", IS, "resolved"),),
    hint="Add an internal integration and choose it as an action of the alert rule.",
)
