"""Rules for recognizing and reading messages from Azure Pipelines."""

from domain.alerts.tools.base import INFO, IS, IS_NOT, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Azure Pipelines",
    kind=ToolKind.DELIVERY,
    marks="eventType resource.result resource.sourceBranch resource.definition.name",
    fields={
        "title": "resource.definition.name",
        "description": "message.text",
        "start_time": "resource.finishTime",
        "severity": "resource.result",
        "service": "resource.project.name",
        "source_url": "resource._links.web.href",
        "fingerprint": "resource.project.id",
    },
    joins={
        "title": "resource.sourceBranch resource.result",
        "fingerprint": "resource.definition.id resource.sourceBranch",
    },
    words={"failed": MEDIUM, "succeeded": INFO},
    resolved=(("resource.result", IS, "succeeded"),),
    dropped=(
        ("eventType", IS_NOT, "build.complete"),
        ("resource.result", IS_NOT, "failed, succeeded"),
    ),
    hint="Add a service hook of the type Web Hooks for “Build completed” with the "
    "Authorization header and resource version 2.0.",
)
