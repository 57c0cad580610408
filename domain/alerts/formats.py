"""Which bodies an integration understands. The integration's type decides, never the body."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.alerts.body import read_object
from domain.alerts.incoming import ParsedBody
from domain.alerts.integrations import IntegrationType
from domain.alerts.payloads import generic, prometheus


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How this instance reads bodies."""

    nesting_limit: int
    #: The flag generic_alert_fingerprinting.
    automatic_fingerprint: bool


def read_body(body: bytes, kind: IntegrationType, *, now: datetime, reading: Reading) -> ParsedBody:
    """Return what a body says; raise UnreadableBody, MissingAttributes or NoValidItem."""
    return read_payload(
        read_object(body, nesting_limit=reading.nesting_limit), kind, now=now, reading=reading
    )


def read_payload(
    payload: Mapping[str, Any], kind: IntegrationType, *, now: datetime, reading: Reading
) -> ParsedBody:
    """Return what a parsed body says; raise MissingAttributes or NoValidItem."""
    if kind is IntegrationType.PROMETHEUS:
        return prometheus.parse(payload, now=now)
    return generic.parse(payload, now=now, automatic_fingerprint=reading.automatic_fingerprint)


def only_item(payload: Mapping[str, Any], kind: str, item_index: int) -> Mapping[str, Any]:
    """Return the body as if it had one item: to show one of thousands, one has to be read."""
    if kind != IntegrationType.PROMETHEUS:
        return payload
    items = payload.get("alerts")
    return {**payload, "alerts": items[item_index : item_index + 1]} if items else payload


def shown_part(payload: Mapping[str, Any], kind: str, item_index: int) -> Mapping[str, Any]:
    """Return the part of a body that one alert came from."""
    if kind == IntegrationType.PROMETHEUS:
        return prometheus.shown_part(payload, item_index)
    return payload
