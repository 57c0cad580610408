"""Rules for recognizing and reading messages from Sentry's issue webhooks."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Sentry (issues)",
    kind=ToolKind.ERRORS,
    guide="sentry",
    marks="action data.issue",
    fields={
        "title": "data.issue.title",
        "description": "data.issue.culprit",
        "severity": "data.issue.level",
        "service": "data.issue.project.slug",
        "source_url": "data.issue.web_url data.issue.permalink",
        "fingerprint": "data.issue.id",
    },
    words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
    resolved=(("action", IS, "resolved, archived, ignored"),),
    dropped=(("action", IS, "assigned"),),
    hint="Add an internal integration with the webhook resource “issue”.",
)
