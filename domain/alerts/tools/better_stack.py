"""Rules for recognizing and reading messages from Better Stack."""

from domain.alerts.tools.base import IS, IS_NOT, MappedTool, ToolKind

TOOL = MappedTool(
    name="Better Stack",
    uses_key_in_url=True,
    kind=ToolKind.UPTIME,
    marks="data.id data.type data.attributes.cause data.attributes.started_at",
    fields={
        "title": "data.attributes.name",
        "description": "data.attributes.response_content",
        "start_time": "data.attributes.started_at",
        "end_time": "data.attributes.resolved_at",
        "hosts": "data.attributes.url",
        "fingerprint": "data.id",
    },
    joins={"title": "data.attributes.cause"},
    # Other types report changes to monitors and contacts.
    dropped=(
        ("data.type", IS_NOT, "incident"),
        ("data.attributes.status", IS, "acknowledged"),
    ),
    hint="Add an outgoing webhook of the type Incident, with the key in the URL.",
)
