"""Rules for recognizing and reading messages from Vercel."""

from domain.alerts.tools.base import HIGH, INFO, IS, IS_MISSING, IS_NOT, MappedTool, ToolKind

TOOL = MappedTool(
    name="Vercel",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="type createdAt payload.deployment.id payload.project.id",
    fields={
        "title": "payload.deployment.name",
        "start_time": "createdAt",
        "severity": "type",
        "service": "payload.deployment.name",
        "platform_environment_name": "payload.target",
        "source_url": "payload.links.deployment",
        "fingerprint": "payload.project.id",
    },
    joins={"title": "payload.target type", "fingerprint": "payload.target"},
    words={"deployment.error": HIGH, "deployment.succeeded": INFO},
    resolved=(("type", IS, "deployment.succeeded"),),
    dropped=(
        ("type", IS_NOT, "deployment.error, deployment.succeeded"),
        # Preview deployments have no target. None of the documented keys contains their branch.
        ("payload.target", IS_MISSING, "yes"),
    ),
    hint="Add a webhook for “Deployment Error” and “Deployment Succeeded” with the key in the URL.",
)
