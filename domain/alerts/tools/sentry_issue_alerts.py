"""Rules for recognizing and reading messages from Sentry's issue alerts."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Sentry (issue alerts)",
    kind=ToolKind.ERRORS,
    guide="sentry",
    marks="action data.event",
    fields={
        "title": "data.event.title",
        "description": "data.event.message data.event.culprit",
        "severity": "data.event.level",
        "service": "data.event.project_name data.event.project",
        "platform_environment_name": "data.event.environment",
        "source_url": "data.event.web_url",
        "fingerprint": "data.event.issue_id data.event.issue_url",
    },
    words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
    hint="This webhook does not report when an issue is resolved. Add the resource “issue”.",
)
