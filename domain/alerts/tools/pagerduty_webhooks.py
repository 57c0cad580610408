"""Rules for recognizing and reading messages from PagerDuty's webhooks, version 3."""

from domain.alerts.tools.base import (
    CRITICAL,
    HIGH,
    INFO,
    IS,
    IS_NOT,
    LOW,
    MEDIUM,
    MappedTool,
    ToolKind,
)

_INCIDENT_EVENTS = (
    "incident.triggered, incident.unacknowledged, incident.reopened, incident.escalated, "
    "incident.priority_updated, incident.resolved"
)

TOOL = MappedTool(
    name="PagerDuty webhooks",
    kind=ToolKind.INCIDENTS,
    marks="event.event_type event.resource_type event.occurred_at event.data.id",
    fields={
        "title": "event.data.title",
        "start_time": "event.data.created_at event.occurred_at",
        "severity": "event.data.priority.summary event.data.urgency",
        "service": "event.data.service.summary",
        "source_url": "event.data.html_url",
        "fingerprint": "event.data.id",
    },
    words={
        "p1": CRITICAL,
        **dict.fromkeys(("p2", "high"), HIGH),
        "p3": MEDIUM,
        **dict.fromkeys(("p4", "low"), LOW),
        "p5": INFO,
    },
    resolved=(("event.event_type", IS, "incident.resolved"),),
    # In events about notes, responders and similar objects, the data is not an incident.
    dropped=(
        (
            "event.event_type",
            IS_NOT,
            _INCIDENT_EVENTS,
        ),
    ),
    hint="Add a webhook subscription for incidents with the custom Authorization header.",
)
