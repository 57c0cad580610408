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
        return _WORDS[self][0]

    @property
    def explanation(self) -> str:
        """When it happens."""
        return _WORDS[self][1]

    @property
    def is_of_alerts(self) -> bool:
        """Whether it is about an alert, else about an incident."""
        return self.startswith("alert.")


_WORDS = {
    WebhookEvent.ALERT_OPENED: ("Alert opened", "A report opened a new alert."),
    WebhookEvent.ALERT_ACKNOWLEDGED: ("Alert acknowledged", "Somebody is working on it."),
    WebhookEvent.ALERT_IGNORED: ("Alert ignored", "Somebody ignored it."),
    WebhookEvent.ALERT_RESOLVED: ("Alert resolved", "By a report, by somebody, or by an incident."),
    WebhookEvent.ALERT_REOPENED: ("Alert reopened", "It is triggered again."),
    WebhookEvent.ALERT_RAISED: ("Alert raised", "A report gave it a higher severity."),
    WebhookEvent.INCIDENT_OPENED: ("Incident opened", "By somebody or by a rule."),
    WebhookEvent.INCIDENT_ACKNOWLEDGED: ("Incident acknowledged", "Somebody is working on it."),
    WebhookEvent.INCIDENT_RESOLVED: ("Incident resolved", "By somebody, or with its alerts."),
    WebhookEvent.INCIDENT_REOPENED: ("Incident reopened", "It is triggered again."),
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
