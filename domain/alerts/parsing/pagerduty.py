"""Parser for events in the format of PagerDuty's Events API v2, which many tools send.

See https://developer.pagerduty.com/docs/events-api-v2-overview. A trigger event is parsed as an
alert. Acknowledge and resolve events change the open alert with the same dedup_key. A change event
does not create an alert.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import (
    AlertState,
    EventAction,
    IncomingAlert,
    InvalidEventError,
    ParsedBody,
    ParsedPagerDutyEvent,
)
from domain.alerts.parsing.severity import METRICS_SEVERITY_WORDS, parse_severity
from domain.alerts.parsing.text_conversion import (
    UNLIMITED_LENGTH,
    convert_to_short_text,
    find_first_text,
    format_excerpt,
    is_blank,
    replace_unstorable_characters,
    split_title,
    truncate_to_length,
)
from domain.alerts.parsing.times import parse_start_time

MAX_DEDUP_KEY_LENGTH = 255
_ACTIONS_BY_NAME = {each.value: each for each in EventAction if each is not EventAction.CHANGE}
_SEVERITIES = ("critical", "error", "warning", "info")
_ENVIRONMENT_KEYS = ("platform_environment_name", "gitlab_environment_name", "environment")
_ROUTING_KEY = re.compile(rb'("routing_key"\s*:\s*)"(?:[^"\\]|\\.)*"')
#: Placeholder for the routing key in a stored body.
HIDDEN_ROUTING_KEY = "[hidden]"


def is_pagerduty_event(payload: Mapping[str, object]) -> bool:
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


def check_event_kind(payload: Mapping[str, object], *, is_change: bool) -> None:
    """Check that a body is the kind of event that its URL accepts.

    Raise InvalidEventError if it is not.
    """
    if not is_change and "event_action" not in payload:
        raise InvalidEventError(["'event_action' is missing or blank"])
    about = payload.get("payload")
    if is_change and not (isinstance(about, dict) and not is_blank(about.get("summary"))):
        raise InvalidEventError(["'payload.summary' is missing or blank"])
    if is_change and not is_change_event(payload):
        raise InvalidEventError(
            ["a change event has no event_action, dedup_key or payload.severity"]
        )


def hide_routing_key(body: bytes) -> bytes:
    """Replace the values of routing_key in a body, since keys must not be stored in plain text."""
    if b"routing_key" not in body:
        return body
    return _ROUTING_KEY.sub(rb'\1"%s"' % HIDDEN_ROUTING_KEY.encode(), body)


def parse_pagerduty_event(
    payload: Mapping[str, object], *, now: datetime, automatic_fingerprint: bool
) -> ParsedBody:
    """Parse an event for PagerDuty's Events API.

    Raise InvalidEventError, which lists all mistakes, if the event is malformed.
    """
    if is_change_event(payload):
        return _build_body_without_alert(ParsedPagerDutyEvent(EventAction.CHANGE))
    if problems := tuple(_find_problems(payload)):
        raise InvalidEventError(problems)
    action = _ACTIONS_BY_NAME[str(payload["event_action"])]
    if action is EventAction.TRIGGER:
        return _parse_trigger(payload, now=now, automatic_fingerprint=automatic_fingerprint)
    key = str(payload["dedup_key"])
    event = ParsedPagerDutyEvent(
        action, replace_unstorable_characters(key), fingerprint.compute_sender_fingerprint(key)
    )
    if action is EventAction.ACKNOWLEDGE:
        return _build_body_without_alert(event)
    alert = _build_alert(payload, now=now, identity=event.fingerprint, made_of="the dedup_key")
    over = replace(alert, state=AlertState.RECOVERY, started_at=now, ended_at=now)
    return replace(_build_body_without_alert(event), alerts=(over,))


def _build_body_without_alert(event: ParsedPagerDutyEvent) -> ParsedBody:
    return ParsedBody(alerts=(), refused=(), truncated_alerts=0, parse_warnings=(), event=event)


def _find_problems(payload: Mapping[str, object]) -> Iterator[str]:
    """Yield the mistakes in an alert event, in PagerDuty's wording."""
    action, key = payload.get("event_action"), payload.get("dedup_key")
    if not isinstance(action, str) or action not in _ACTIONS_BY_NAME:
        yield f"'event_action' must be one of {', '.join(_ACTIONS_BY_NAME)}"
        return
    if key is not None and not (isinstance(key, str) and len(key) <= MAX_DEDUP_KEY_LENGTH):
        yield f"'dedup_key' must be a string of at most {MAX_DEDUP_KEY_LENGTH} characters"
    elif action != EventAction.TRIGGER and is_blank(key):
        yield "'dedup_key' is missing or blank"
    if action == EventAction.TRIGGER:
        yield from _find_payload_problems(payload.get("payload"))


def _find_payload_problems(about: object) -> Iterator[str]:
    if not isinstance(about, dict):
        yield "'payload' is missing or is not an object"
        return
    for name in ("summary", "source", "severity"):
        if is_blank(about.get(name)):
            yield f"'payload.{name}' is missing or blank"
    severity = about.get("severity")
    if not is_blank(severity) and str(severity).lower() not in _SEVERITIES:
        yield (
            f"'payload.severity' must be one of {', '.join(_SEVERITIES)}: "
            f"{format_excerpt(severity)}"
        )


def _parse_trigger(
    payload: Mapping[str, object], *, now: datetime, automatic_fingerprint: bool
) -> ParsedBody:
    key, made_of = get_dedup_key(payload), "the dedup_key"
    if is_blank(payload.get("dedup_key")):
        made_of = "the whole event without its timestamp"
        if not automatic_fingerprint:
            # PagerDuty generates a separate key for each of these events.
            key, made_of = f"{key}-{now.timestamp():.6f}", "the event and its time"
    identity = fingerprint.compute_sender_fingerprint(key)
    alert = _build_alert(payload, now=now, identity=identity, made_of=made_of)
    event = ParsedPagerDutyEvent(EventAction.TRIGGER, replace_unstorable_characters(key), identity)
    return ParsedBody(
        alerts=(alert,), refused=(), truncated_alerts=0, parse_warnings=(), event=event
    )


def get_dedup_key(payload: Mapping[str, object]) -> str:
    """Return the dedup_key of a trigger event, or a key computed from its content.

    Because of the computed key, an event that is repeated after a lost response opens only one
    alert.
    """
    given = payload.get("dedup_key")
    if isinstance(given, str) and not is_blank(given):
        return given
    return fingerprint.compute_fingerprint("payload", _remove_volatile_members(payload)).hex()[:32]


def _remove_volatile_members(payload: Mapping[str, object]) -> Mapping[str, object]:
    about = payload.get("payload")
    if isinstance(about, dict):
        about = {name: value for name, value in about.items() if name != "timestamp"}
    kept = {name: value for name, value in payload.items() if name != "routing_key"}
    return {**kept, "payload": about}


def _build_alert(
    payload: Mapping[str, object], *, now: datetime, identity: bytes, made_of: str
) -> IncomingAlert:
    about = payload.get("payload")
    about = about if isinstance(about, dict) else {}
    details = about.get("custom_details")
    details = details if isinstance(details, dict) else {}
    severity = parse_severity(about.get("severity"), METRICS_SEVERITY_WORDS)
    start = parse_start_time(about.get("timestamp"), name="payload.timestamp", now=now)
    title, _ = split_title(convert_to_short_text(about.get("summary"), UNLIMITED_LENGTH) or "")
    return IncomingAlert(
        title=truncate_to_length(title, 200),
        description=convert_to_short_text(details.get("description") or about.get("summary"), 1000),
        severity=severity.severity,
        state=AlertState.FIRING,
        started_at=start.time,
        ended_at=None,
        service=convert_to_short_text(about.get("component") or about.get("group"), 100),
        monitoring_tool=convert_to_short_text(payload.get("client"), 100),
        hosts=tuple(filter(None, (convert_to_short_text(about.get("source"), 255),))),
        environment=find_first_text(map(details.get, _ENVIRONMENT_KEYS), 255),
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity.reason,
        runbook=convert_to_short_text(details.get("runbook"), UNLIMITED_LENGTH),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=convert_to_short_text(payload.get("client_url"), UNLIMITED_LENGTH),
        parse_warnings=tuple(filter(None, (start.warning,))),
        item_index=0,
        left_out=frozenset() if start.is_certain else frozenset({"started_at"}),
    )


def get_label_members(payload: Mapping[str, object]) -> Mapping[str, object]:
    """Return the members of an event that become labels.

    Members of `payload` override custom details with the same name.
    """
    about = payload.get("payload")
    about = about if isinstance(about, dict) else {}
    details = about.get("custom_details")
    kept = {name: payload.get(name) for name in ("dedup_key", "client")}
    return {**(details if isinstance(details, dict) else {}), **about, **kept}
