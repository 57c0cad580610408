"""Rules for recognizing and reading messages from Sentry's webhooks plugin."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Sentry (webhooks plugin)",
    kind=ToolKind.ERRORS,
    guide="sentry",
    marks="project culprit level event url",
    fields={
        "title": "message event.title",
        "description": "culprit",
        "severity": "level",
        "service": "project_name project",
        "platform_environment_name": "event.environment",
        "source_url": "url",
        "fingerprint": "project",
    },
    joins={"fingerprint": "id"},
    words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
    hint="This plugin does not report when an issue is resolved.",
)
