"""Rules for recognizing and reading messages from HCP Terraform and Terraform Enterprise."""

from domain.alerts.tools.base import HIGH, INFO, IS, IS_NOT, MappedTool, ToolKind

TOOL = MappedTool(
    name="HCP Terraform",
    uses_key_in_url=True,
    kind=ToolKind.DELIVERY,
    marks="payload_version run_id workspace_id notifications.0.trigger",
    fields={
        "title": "workspace_name",
        "description": "run_message",
        "start_time": "notifications.0.run_updated_at",
        "severity": "notifications.0.trigger",
        "service": "workspace_name",
        "source_url": "run_url",
        "fingerprint": "workspace_id",
    },
    joins={"title": "notifications.0.message"},
    words={"run:errored": HIGH, "run:completed": INFO},
    resolved=(("notifications.0.trigger", IS, "run:completed"),),
    dropped=(
        ("notifications.0.trigger", IS_NOT, "run:errored, run:completed"),
        # Canceled runs also have the trigger run:errored.
        ("notifications.0.run_status", IS, "canceled, discarded"),
    ),
    hint="Add a webhook to the workspace for completed and errored runs, with the key in the URL.",
)
