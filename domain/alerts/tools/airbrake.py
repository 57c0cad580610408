"""Rules for recognizing and reading messages from Airbrake."""

from domain.alerts.tools.base import MappedTool, ToolKind

TOOL = MappedTool(
    name="Airbrake",
    uses_key_in_url=True,
    kind=ToolKind.ERRORS,
    marks="error.id error.error_message airbrake_error_url",
    fields={
        "title": "error.error_message error.error_class",
        "description": "error.file",
        "start_time": "error.last_occurred_at",
        "service": "error.project.name",
        "platform_environment_name": "error.environment",
        "source_url": "airbrake_error_url",
        "fingerprint": "error.id",
    },
    hint="Add an integration of the type Webhook with the key in the URL, and resolve its alerts "
    "manually or after a time.",
)
