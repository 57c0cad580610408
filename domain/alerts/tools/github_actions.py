"""Rules for recognizing and reading messages from GitHub Actions."""

from domain.alerts.tools.base import INFO, IS, IS_MISSING, IS_NOT, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="GitHub Actions",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="action repository.full_name workflow_run.workflow_id workflow_run.conclusion",
    fields={
        "title": "repository.full_name",
        "description": "workflow_run.display_title workflow_run.head_commit.message",
        "start_time": "workflow_run.updated_at",
        "severity": "workflow_run.conclusion",
        "service": "repository.full_name",
        "source_url": "workflow_run.html_url",
        "fingerprint": "workflow_run.workflow_id",
    },
    joins={
        "title": "workflow.name workflow_run.head_branch workflow_run.conclusion",
        # Branches of forks can have the same name as branches of the repository.
        "fingerprint": "workflow_run.head_repository.full_name workflow_run.head_branch",
    },
    words={**dict.fromkeys(("failure", "timed_out", "startup_failure"), MEDIUM), "success": INFO},
    resolved=(("workflow_run.conclusion", IS, "success"),),
    dropped=(
        ("workflow_run.conclusion", IS_MISSING, "yes"),
        ("workflow_run.conclusion", IS_NOT, "failure, timed_out, startup_failure, success"),
    ),
    hint="Add a webhook for “Workflow runs” with the content type application/json and the key "
    "in the URL.",
)
