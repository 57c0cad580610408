"""The events that endpoints can choose."""

from collections.abc import Iterable
from enum import StrEnum

from domain.errors import InvalidError


class WebhookEvent(StrEnum):
    """An event; the value is the `type` of its message."""

    ALERT_OPENED = "alert.opened"
    ALERT_ACKNOWLEDGED = "alert.acknowledged"
    ALERT_IGNORED = "alert.ignored"
    ALERT_RESOLVED = "alert.resolved"
    ALERT_REOPENED = "alert.reopened"
    ALERT_RAISED = "alert.raised"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_ACKNOWLEDGED = "incident.acknowledged"
    INCIDENT_RESOLVED = "incident.resolved"
    INCIDENT_REOPENED = "incident.reopened"

    @property
    def label(self) -> str:
        """The event in words, for forms."""
        return _LABELS[self]

    @property
    def is_of_alerts(self) -> bool:
        """Whether it is about an alert, else about an incident."""
        return self.startswith("alert.")


_LABELS = {
    WebhookEvent.ALERT_OPENED: "Alert opened",
    WebhookEvent.ALERT_ACKNOWLEDGED: "Alert acknowledged",
    WebhookEvent.ALERT_IGNORED: "Alert ignored",
    WebhookEvent.ALERT_RESOLVED: "Alert resolved",
    WebhookEvent.ALERT_REOPENED: "Alert reopened",
    WebhookEvent.ALERT_RAISED: "Alert raised to a higher severity",
    WebhookEvent.INCIDENT_OPENED: "Incident opened",
    WebhookEvent.INCIDENT_ACKNOWLEDGED: "Incident acknowledged",
    WebhookEvent.INCIDENT_RESOLVED: "Incident resolved",
    WebhookEvent.INCIDENT_REOPENED: "Incident reopened",
}
#: The `type` of a test message, which no endpoint chooses.
TESTED = "webhook.tested"
#: Stands for all events, also for those of later versions.
ALL = "*"


def read_events(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of events in their order, or raise InvalidError; `*` stands for all."""
    given = set(names)
    if not given:
        raise InvalidError("Choose at least one event.", field="events")
    if unknown := sorted(given - {*WebhookEvent, ALL}):
        known = ", ".join((ALL, *WebhookEvent))
        raise InvalidError(f"“{unknown[0][:50]}” is not one of {known}.", field="events")
    return (ALL,) if ALL in given else tuple(each.value for each in WebhookEvent if each in given)


def takes(chosen: Iterable[str], event: WebhookEvent) -> bool:
    """Return whether an endpoint that chose these events gets one."""
    return any(each in (ALL, event.value) for each in chosen)


def takes_alerts(chosen: Iterable[str]) -> bool:
    """Return whether an endpoint that chose these events gets any event of alerts."""
    return any(each == ALL or each.startswith("alert.") for each in chosen)
