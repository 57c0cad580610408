"""Rules for recognizing and reading messages from Cronitor."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Cronitor",
    uses_key_in_url=True,
    kind=ToolKind.UPTIME,
    marks="id monitor type rule description",
    fields={
        "title": "monitor",
        "service": "group",
        "platform_environment_name": "environment",
        "source_url": "issue_url monitor_url",
        "fingerprint": "id",
    },
    joins={"fingerprint": "environment"},
    resolved=(("type", IS, "recovery"),),
    hint="Add an integration of the type Webhooks with the key in the URL, and add it to a "
    "notification list.",
)
