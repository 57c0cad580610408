"""Rules for recognizing and reading messages from Grafana OnCall."""

from domain.alerts.parsing.severity import METRICS_SEVERITY_WORDS
from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Grafana OnCall",
    kind=ToolKind.INCIDENTS,
    marks="event.type alert_group.id alert_group.state alert_payload",
    fields={
        "title": "alert_group.title",
        "description": "alert_payload.annotations.description",
        "start_time": "alert_group.created_at",
        "end_time": "alert_group.resolved_at",
        "service": "integration.name",
        "severity": "alert_payload.labels.severity alert_payload.commonLabels.severity",
        "hosts": "alert_payload.labels.instance alert_payload.commonLabels.instance",
        "source_url": "alert_group.permalinks.web",
        "fingerprint": "alert_group.id",
    },
    words=METRICS_SEVERITY_WORDS,
    resolved=(("alert_group.state", IS, "resolved"),),
    dropped=(("event.type", IS, "acknowledge, unacknowledge, silence, unsilence"),),
    hint="Add outgoing webhooks for the triggers “Alert Group Created” and “Status Change” that "
    "forward all data.",
)
