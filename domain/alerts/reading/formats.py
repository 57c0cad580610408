"""Reads a body in the format of its integration's type; the body itself never decides."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from domain.alerts.integration_type import IntegrationType
from domain.alerts.reading import generic, pagerduty, prometheus
from domain.alerts.reading.body import checked_object, read_json
from domain.alerts.reading.incoming import MissingAttributes, ParsedBody
from domain.alerts.reading.mapping import UNMAPPED, FieldMapping


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The settings of the instance for reading bodies."""

    #: Largest depth of nested arrays and objects.
    nesting_limit: int
    #: The feature flag generic_alert_fingerprinting.
    automatic_fingerprint: bool


def read_body(
    body: bytes,
    integration_type: IntegrationType,
    *,
    now: datetime,
    reading: Reading,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Parse a body and read its alerts; raise UnreadableBody, MissingAttributes or NoValidItem."""
    value = read_json(body, nesting_limit=reading.nesting_limit)
    if isinstance(value, list) and integration_type is IntegrationType.HTTP:
        flag = reading.automatic_fingerprint
        return generic.parse_each(value, now=now, automatic_fingerprint=flag, mapping=mapping)
    return read_payload(
        checked_object(value), integration_type, now=now, reading=reading, mapping=mapping
    )


def read_payload(
    payload: Mapping[str, object],
    integration_type: IntegrationType,
    *,
    now: datetime,
    reading: Reading,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Read the alerts of a parsed body; raise MissingAttributes or NoValidItem.

    At an HTTP endpoint without a mapping, events of PagerDuty's Events API are known by their
    members; one that is malformed raises InvalidEvent. Paths and rules of a mapping apply to the
    generic format only, its words for severities to both. A body that looks like the other format
    is read anyway, with a parse warning.
    """
    if integration_type is IntegrationType.PROMETHEUS:
        return _read_webhook(payload, mapping, now=now)
    if not mapping.reads_fields and pagerduty.is_event(payload):
        flag = reading.automatic_fingerprint
        return pagerduty.parse(payload, now=now, automatic_fingerprint=flag)
    parsed = generic.parse(
        payload, now=now, automatic_fingerprint=reading.automatic_fingerprint, mapping=mapping
    )
    if not mapping.reads_fields and payload.keys() >= _WEBHOOK_MARKS:
        return replace(parsed, parse_warnings=(*parsed.parse_warnings, LOOKS_LIKE_A_WEBHOOK))
    return parsed


#: Attributes of every webhook of Alertmanager, which other payloads hardly ever have together.
_WEBHOOK_MARKS = frozenset({"alerts", "groupKey", "receiver"})
LOOKS_LIKE_A_WEBHOOK = (
    "This looks like a webhook of Prometheus Alertmanager or Grafana. Send it to an integration "
    "of the type “Prometheus Alertmanager”: there each of its alerts becomes one of its own."
)
LOOKS_LIKE_ONE_ALERT = (
    "This looks like a single alert: send it to an integration of the type “HTTP Endpoint”."
)


def _read_webhook(
    payload: Mapping[str, object], mapping: FieldMapping, *, now: datetime
) -> ParsedBody:
    try:
        return prometheus.parse(payload, now=now, severity_words=mapping.rules.severity_words)
    except MissingAttributes as error:
        if _WEBHOOK_MARKS & payload.keys():
            raise
        raise MissingAttributes(error.names, hint=LOOKS_LIKE_ONE_ALERT) from error


def only_item(value: object, body_format: str, item_index: int) -> Mapping[str, object]:
    """Return the body reduced to one of its items, so that the others need not be read."""
    if body_format != IntegrationType.PROMETHEUS:
        if isinstance(value, list) and item_index < len(value):
            return checked_object(value[item_index])
        return checked_object(value)
    payload = checked_object(value)
    items = payload.get("alerts")
    if not isinstance(items, list):
        return payload
    return {**payload, "alerts": items[item_index : item_index + 1]}


def has_many_items(value: object, body_format: str) -> bool:
    """Return whether a body has several items, so that an alert is only a part of it."""
    items = value
    if body_format == IntegrationType.PROMETHEUS and isinstance(value, dict):
        items = value.get("alerts")
    return isinstance(items, list) and len(items) > 1


def shown_part(
    payload: Mapping[str, object], body_format: str, item_index: int
) -> Mapping[str, object]:
    """Return the part of a body that one alert was read from."""
    if body_format == IntegrationType.PROMETHEUS:
        return prometheus.shown_part(payload, item_index)
    return payload
