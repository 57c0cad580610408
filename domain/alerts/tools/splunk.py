"""Rules for recognizing and reading messages from Splunk's webhook alert action."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Splunk",
    uses_key_in_url=True,
    kind=ToolKind.LOGS,
    marks="sid results_link search_name result owner app",
    fields={
        "title": "search_name app",
        "description": "result.message result._raw",
        "severity": "result.severity result.urgency",
        "service": "app",
        "hosts": "result.host",
        "source_url": "results_link",
        "fingerprint": "app",
    },
    joins={"title": "result.host", "fingerprint": "owner search_name result.host"},
    words={
        "critical": CRITICAL,
        "high": HIGH,
        "medium": MEDIUM,
        "low": LOW,
        **dict.fromkeys(("informational", "info"), INFO),
    },
    hint="Add the action Webhook with the key in the URL, and resolve the alerts manually or "
    "after a time.",
)
