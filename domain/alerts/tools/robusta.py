"""Rules for recognizing and reading messages from Robusta."""

from domain.alerts.tools.base import CONTAINS_WORD, HIGH, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Robusta",
    kind=ToolKind.KUBERNETES,
    marks="cluster_name aggregation_key finding_type fingerprint subject.kind",
    fields={
        "title": "title",
        "description": "description",
        "start_time": "starts_at",
        "end_time": "ends_at",
        "severity": "severity",
        "service": "subject.name",
        "hosts": "subject.node",
        "source_url": "investigate",
        "fingerprint": "fingerprint",
    },
    joins={"title": "subject.namespace subject.name", "fingerprint": "cluster_name"},
    words={"high": HIGH, "low": LOW, "info": INFO, "debug": INFO},
    resolved=(("title", CONTAINS_WORD, "[resolved]"),),
    # Reports and changes to resources are not problems.
    dropped=(
        ("failure", IS, "false"),
        ("finding_type", IS, "conf_change, report, ai_analysis"),
    ),
    hint="Add a webhook_sink with format json, and with Bearer and the key as authorization.",
)
