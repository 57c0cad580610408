"""Rules for recognizing and reading messages from Pingdom."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Pingdom",
    uses_key_in_url=True,
    kind=ToolKind.UPTIME,
    marks="check_id check_name current_state",
    fields={
        "title": "check_name",
        "description": "long_description description",
        "start_time": "state_changed_timestamp",
        "severity": "importance_level",
        "hosts": "check_params.hostname",
        "fingerprint": "check_id",
    },
    resolved=(("current_state", IS, "up, success"),),
    hint="Add an integration of the type Webhook, with the key in the URL.",
)
