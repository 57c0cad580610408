"""Rules for recognizing and reading messages from Honeycomb."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Honeycomb",
    uses_key_in_url=True,
    kind=ToolKind.METRICS,
    marks="id name status trigger_url result_groups",
    fields={
        "title": "name",
        "description": "description summary",
        "source_url": "result_url trigger_url",
        "fingerprint": "id",
    },
    resolved=(("status", IS, "ok"),),
    hint="Add an integration of the type Webhook with the key in the URL, and choose it as a "
    "recipient of triggers.",
)
