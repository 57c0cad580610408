"""Rules for recognizing and reading messages from Sensu Go."""

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
    name="Sensu Go",
    kind=ToolKind.METRICS,
    marks="check.metadata.name check.status entity.metadata.name",
    fields={
        "title": "entity.metadata.name",
        "description": "check.output",
        "start_time": "timestamp",
        "severity": "check.status",
        "service": "check.metadata.name",
        "hosts": "entity.metadata.name",
        "fingerprint": "entity.metadata.namespace",
    },
    joins={
        "title": "check.metadata.name",
        "fingerprint": "entity.metadata.name check.metadata.name",
    },
    # Numbers other than 0, 1 and 2 mean that the check itself failed.
    words={"2": CRITICAL, "1": LOW, "0": INFO, **dict.fromkeys(("3", "126", "127"), MEDIUM)},
    resolved=(("check.status", IS, "0"),),
    dropped=(("check.status", IS_MISSING, "yes"),),
    hint="Add a pipe handler that posts events with curl, and has the filters is_incident and "
    "not_silenced.",
)
