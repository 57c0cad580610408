"""Rules for recognizing and reading messages from Kapacitor."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Kapacitor",
    kind=ToolKind.METRICS,
    marks="id message level previousLevel data.series",
    fields={
        "title": "message id",
        "description": "details",
        "start_time": "time",
        "severity": "level",
        "hosts": "data.series.0.tags.host",
        "fingerprint": "id",
    },
    # The default ID of an alert without groups is the same for all hosts.
    joins={"fingerprint": "data.series.0.tags.host"},
    words={"critical": CRITICAL, "warning": LOW, **dict.fromkeys(("info", "ok"), INFO)},
    resolved=(("level", IS, "ok"),),
    hint="Add the handler post with the URL and the Authorization header to the alert node.",
)
