"""Rules for recognizing and reading messages from Rollbar."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Rollbar",
    uses_key_in_url=True,
    kind=ToolKind.ERRORS,
    marks="event_name data.item.id data.item.title data.item.project_id",
    fields={
        "title": "data.item.title",
        "start_time": "data.item.last_activated_timestamp",
        "severity": "data.item.level data.item.last_occurrence.level",
        "hosts": "data.item.last_occurrence.server.host data.occurrence.server.host",
        "platform_environment_name": "data.item.environment",
        "fingerprint": "data.item.id",
    },
    words={
        **dict.fromkeys(("50", "critical"), CRITICAL),
        **dict.fromkeys(("40", "error"), HIGH),
        **dict.fromkeys(("30", "warning"), MEDIUM),
        **dict.fromkeys(("20", "info", "10", "debug"), INFO),
    },
    resolved=(("event_name", IS, "resolved_item"),),
    dropped=(("event_name", IS, "deploy"),),
    hint="Enable the notification channel Webhook with the key in the URL, and add a rule for "
    "resolved items.",
)
