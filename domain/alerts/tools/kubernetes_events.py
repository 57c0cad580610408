"""Rules for recognizing and reading messages from kubernetes-event-exporter."""

from domain.alerts.tools.base import INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Kubernetes event exporter",
    kind=ToolKind.KUBERNETES,
    marks="involvedObject.kind involvedObject.name reason type metadata.name",
    fields={
        "title": "involvedObject.name",
        "description": "message",
        "start_time": "firstTimestamp eventTime",
        "severity": "type",
        "service": "involvedObject.namespace",
        "hosts": "source.host",
        "fingerprint": "involvedObject.uid",
    },
    joins={
        "title": "reason message",
        "fingerprint": "clusterName involvedObject.namespace involvedObject.name reason",
    },
    words={"warning": MEDIUM, "normal": INFO},
    dropped=(("type", IS, "normal"),),
    hint="Add a webhook receiver and drop events of the type Normal, and resolve the alerts "
    "manually or after a time.",
)
