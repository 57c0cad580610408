"""Rules for recognizing and reading messages from Healthchecks."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Healthchecks",
    kind=ToolKind.UPTIME,
    guide="healthchecks",
    marks="name status n_pings last_ping",
    fields={
        "title": "name slug",
        "description": "desc",
        "service": "slug",
        "fingerprint": "uuid unique_key",
    },
    resolved=(("status", IS, "up"),),
    dropped=(("status", IS, "new, paused"),),
    hint="Add an integration of the type Webhook with the body $JSON for down and up.",
)
