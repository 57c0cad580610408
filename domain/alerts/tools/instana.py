"""Rules for recognizing and reading messages from Instana."""

from domain.alerts.tools.base import (
    CRITICAL,
    INFO,
    IS,
    IS_MISSING,
    LOW,
    MEDIUM,
    MappedTool,
    ToolKind,
)

TOOL = MappedTool(
    name="Instana",
    uses_key_in_url=True,
    kind=ToolKind.METRICS,
    marks="issue.id issue.type issue.text issue.severity issue.link",
    fields={
        "title": "issue.entityLabel issue.entity",
        "description": "issue.suggestion",
        "start_time": "issue.start",
        "end_time": "issue.end",
        "severity": "issue.severity",
        "hosts": "issue.fqdn",
        "source_url": "issue.link",
        "fingerprint": "issue.id",
    },
    joins={"title": "issue.text"},
    # Instana uses 10 for critical and 5 for warnings.
    words={
        **dict.fromkeys(("10", "9", "8"), CRITICAL),
        **dict.fromkeys(("7", "6", "5"), MEDIUM),
        **dict.fromkeys(("4", "3", "2", "1"), LOW),
        **dict.fromkeys(("0", "-1"), INFO),
    },
    resolved=(("issue.state", IS, "closed"),),
    # Only issues and incidents have a state and can end.
    dropped=(("issue.state", IS_MISSING, "yes"),),
    hint="Add an alert channel of the type Generic Webhook, with the key in the URL.",
)
