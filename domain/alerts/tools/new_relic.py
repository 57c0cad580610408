"""Rules for recognizing and reading messages from New Relic workflows."""

from domain.alerts.tools.base import CRITICAL, HIGH, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="New Relic",
    kind=ToolKind.METRICS,
    marks="id issueUrl title priority state trigger",
    fields={
        "title": "title",
        "description": "alertConditionNames.0",
        "start_time": "createdAt",
        "severity": "priority",
        "service": "alertPolicyNames.0",
        "hosts": "impactedEntities",
        "source_url": "issueUrl",
        "fingerprint": "id",
    },
    words={"critical": CRITICAL, "high": HIGH, "medium": MEDIUM, "low": LOW},
    resolved=(("state", IS, "closed, deactivated"),),
    dropped=(("state", IS, "acknowledged"),),
    hint="Add a webhook destination with the key as bearer token to a workflow, and keep id, "
    "state and priority in its payload.",
)
