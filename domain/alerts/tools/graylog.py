"""Rules for recognizing and reading messages from Graylog."""

from domain.alerts.tools.base import CRITICAL, HIGH, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Graylog",
    kind=ToolKind.LOGS,
    marks="event_definition_id event_definition_title event.key_tuple event.priority",
    fields={
        "title": "event_definition_title",
        "description": "event.message event_definition_description",
        "start_time": "event.timestamp",
        "severity": "event.priority",
        # These fields contain the name of the server that sent the log messages.
        "hosts": "event.group_by_fields.source event.fields.source",
        "fingerprint": "event_definition_id",
    },
    joins={"title": "event.key", "fingerprint": "event.key event.group_by_fields"},
    words={"4": CRITICAL, "3": HIGH, "2": MEDIUM, "1": LOW},
    dropped=(("event.event_definition_type", IS, "notification-test-v1"),),
    hint="Add an HTTP notification to the event definitions, and resolve their alerts manually "
    "or after a time.",
)
