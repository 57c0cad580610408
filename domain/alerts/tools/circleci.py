"""Rules for recognizing and reading messages from CircleCI."""

from domain.alerts.tools.base import INFO, IS, IS_NOT, MEDIUM, MappedTool, ToolKind

_BRANCHES = "pipeline.vcs.branch pipeline.trigger_parameters.git.branch"

TOOL = MappedTool(
    name="CircleCI",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="type happened_at project.slug workflow.name pipeline.number",
    fields={
        "title": "project.name",
        "description": "pipeline.vcs.commit.subject",
        "start_time": "workflow.stopped_at happened_at",
        "severity": "workflow.status",
        "service": "project.name",
        "source_url": "workflow.url",
        "fingerprint": "project.id",
    },
    joins={
        "title": f"workflow.name {_BRANCHES} workflow.status",
        "fingerprint": f"workflow.name {_BRANCHES} pipeline.vcs.tag",
    },
    words={**dict.fromkeys(("failed", "error"), MEDIUM), "success": INFO},
    resolved=(("workflow.status", IS, "success"),),
    dropped=(
        ("type", IS_NOT, "workflow-completed"),
        ("workflow.status", IS_NOT, "failed, error, success"),
    ),
    hint="Add a webhook for “Workflow Completed” with the key in the URL.",
)
