"""Parser for events of PagerDuty's Events API v2, which many tools send.

See https://developer.pagerduty.com/docs/events-api-v2-overview. A trigger event is an alert.
Acknowledge and resolve events change the open alert with the same dedup_key. A change event does
not create an alert.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from domain.alerts.reading import fingerprint
from domain.alerts.reading.incoming import (
    AlertState,
    EventAction,
    IncomingAlert,
    InvalidEvent,
    ParsedBody,
    SenderEvent,
)
from domain.alerts.reading.severity import METRICS_WORDS, read_severity
from domain.alerts.reading.text import (
    WHOLE,
    excerpt,
    first_text,
    is_blank,
    short_text,
    storable,
)
from domain.alerts.reading.times import read_start

LONGEST_DEDUP_KEY = 255
_ACTIONS = {each.value: each for each in EventAction if each is not EventAction.CHANGE}
_SEVERITIES = ("critical", "error", "warning", "info")
_ENVIRONMENT = ("platform_environment_name", "gitlab_environment_name", "environment")
_ROUTING_KEY = re.compile(rb'("routing_key"\s*:\s*)"(?:[^"\\]|\\.)*"')
#: Placeholder for the routing key in a stored body.
HIDDEN = "[hidden]"


def is_event(payload: Mapping[str, object]) -> bool:
    """Return whether a body is an alert event or a change event."""
    if "routing_key" not in payload:
        return False
    return "event_action" in payload or is_change_event(payload)


def is_change_event(payload: Mapping[str, object]) -> bool:
    """Return whether a body is a change event, which has neither an action nor a severity."""
    if "event_action" in payload or "dedup_key" in payload:
        return False
    about = payload.get("payload")
    return isinstance(about, dict) and "summary" in about and "severity" not in about


def check_kind(payload: Mapping[str, object], *, is_change: bool) -> None:
    """Raise InvalidEvent if a body is not the kind of event that its URL accepts."""
    if not is_change and "event_action" not in payload:
        raise InvalidEvent(["'event_action' is missing or blank"])
    about = payload.get("payload")
    if is_change and not (isinstance(about, dict) and not is_blank(about.get("summary"))):
        raise InvalidEvent(["'payload.summary' is missing or blank"])
    if is_change and not is_change_event(payload):
        raise InvalidEvent(["a change event has no event_action, dedup_key or payload.severity"])


def without_routing_key(body: bytes) -> bytes:
    """Remove the values of routing_key from a body, since keys must not be stored in plain text."""
    if b"routing_key" not in body:
        return body
    return _ROUTING_KEY.sub(rb'\1"%s"' % HIDDEN.encode(), body)


def parse(
    payload: Mapping[str, object], *, now: datetime, automatic_fingerprint: bool
) -> ParsedBody:
    """Parse an event.

    Raise InvalidEvent, which lists all mistakes.
    """
    if is_change_event(payload):
        return _without_alert(SenderEvent(EventAction.CHANGE))
    if problems := tuple(_problems(payload)):
        raise InvalidEvent(problems)
    action = _ACTIONS[str(payload["event_action"])]
    if action is EventAction.TRIGGER:
        return _trigger(payload, now=now, automatic_fingerprint=automatic_fingerprint)
    key = str(payload["dedup_key"])
    event = SenderEvent(action, storable(key), fingerprint.of_value(key))
    if action is EventAction.ACKNOWLEDGE:
        return _without_alert(event)
    alert = _alert(payload, now=now, identity=event.fingerprint, made_of="the dedup_key")
    over = replace(alert, state=AlertState.RECOVERY, started_at=now, ended_at=now)
    return replace(_without_alert(event), alerts=(over,))


def _without_alert(event: SenderEvent) -> ParsedBody:
    return ParsedBody(alerts=(), refused=(), truncated_alerts=0, parse_warnings=(), event=event)


def _problems(payload: Mapping[str, object]) -> Iterator[str]:
    """Yield the mistakes in an alert event, in PagerDuty's wording."""
    action, key = payload.get("event_action"), payload.get("dedup_key")
    if not isinstance(action, str) or action not in _ACTIONS:
        yield f"'event_action' must be one of {', '.join(_ACTIONS)}"
        return
    if key is not None and not (isinstance(key, str) and len(key) <= LONGEST_DEDUP_KEY):
        yield f"'dedup_key' must be a string of at most {LONGEST_DEDUP_KEY} characters"
    elif action != EventAction.TRIGGER and is_blank(key):
        yield "'dedup_key' is missing or blank"
    if action == EventAction.TRIGGER:
        yield from _problems_of_payload(payload.get("payload"))


def _problems_of_payload(about: object) -> Iterator[str]:
    if not isinstance(about, dict):
        yield "'payload' is missing or is not an object"
        return
    for name in ("summary", "source", "severity"):
        if is_blank(about.get(name)):
            yield f"'payload.{name}' is missing or blank"
    severity = about.get("severity")
    if not is_blank(severity) and str(severity).lower() not in _SEVERITIES:
        yield f"'payload.severity' must be one of {', '.join(_SEVERITIES)}: {excerpt(severity)}"


def _trigger(
    payload: Mapping[str, object], *, now: datetime, automatic_fingerprint: bool
) -> ParsedBody:
    key, made_of = dedup_key_of(payload), "the dedup_key"
    if is_blank(payload.get("dedup_key")):
        made_of = "the whole event without its timestamp"
        if not automatic_fingerprint:
            # PagerDuty generates a separate key for each of these events.
            key, made_of = f"{key}-{now.timestamp():.6f}", "the event and its time"
    identity = fingerprint.of_value(key)
    alert = _alert(payload, now=now, identity=identity, made_of=made_of)
    event = SenderEvent(EventAction.TRIGGER, storable(key), identity)
    return ParsedBody(
        alerts=(alert,), refused=(), truncated_alerts=0, parse_warnings=(), event=event
    )


def dedup_key_of(payload: Mapping[str, object]) -> str:
    """Return the dedup_key of a trigger event, or a key computed from its content.

    With the computed key, a sender that repeats an event because it received no response opens only
    one alert.
    """
    given = payload.get("dedup_key")
    if isinstance(given, str) and not is_blank(given):
        return given
    return fingerprint.of("payload", _stable(payload)).hex()[:32]


def _stable(payload: Mapping[str, object]) -> Mapping[str, object]:
    about = payload.get("payload")
    if isinstance(about, dict):
        about = {name: value for name, value in about.items() if name != "timestamp"}
    kept = {name: value for name, value in payload.items() if name != "routing_key"}
    return {**kept, "payload": about}


def _alert(
    payload: Mapping[str, object], *, now: datetime, identity: bytes, made_of: str
) -> IncomingAlert:
    about = payload.get("payload")
    about = about if isinstance(about, dict) else {}
    details = about.get("custom_details")
    details = details if isinstance(details, dict) else {}
    severity = read_severity(about.get("severity"), METRICS_WORDS)
    start = read_start(about.get("timestamp"), name="payload.timestamp", now=now)
    return IncomingAlert(
        title=short_text(about.get("summary"), 200) or "",
        description=short_text(details.get("description") or about.get("summary"), 1000),
        severity=severity.severity,
        state=AlertState.FIRING,
        started_at=start.time,
        ended_at=None,
        service=short_text(about.get("component") or about.get("group"), 100),
        monitoring_tool=short_text(payload.get("client"), 100),
        hosts=tuple(filter(None, (short_text(about.get("source"), 255),))),
        environment=first_text(map(details.get, _ENVIRONMENT), 255),
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity.reason,
        runbook=short_text(details.get("runbook"), WHOLE),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=short_text(payload.get("client_url"), WHOLE),
        parse_warnings=tuple(filter(None, (start.warning,))),
        item_index=0,
        left_out=frozenset() if start.is_given else frozenset({"started_at"}),
    )


def label_members(payload: Mapping[str, object]) -> Mapping[str, object]:
    """Return the label members of an event: its payload, which overrides its custom details."""
    about = payload.get("payload")
    about = about if isinstance(about, dict) else {}
    details = about.get("custom_details")
    kept = {name: payload.get(name) for name in ("dedup_key", "client")}
    return {**(details if isinstance(details, dict) else {}), **about, **kept}
