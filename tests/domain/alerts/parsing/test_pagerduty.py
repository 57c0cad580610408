"""Events of PagerDuty's Events API v2: recognition and content."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.parsing.incoming_alert import EventAction, InvalidEventError, ParsedBody
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, FieldMapping
from domain.alerts.parsing.pagerduty import hide_routing_key

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EVENT: dict[str, Any] = {
    "routing_key": "k",
    "event_action": "trigger",
    "payload": {"summary": "Disk full", "source": "web-1", "severity": "warning"},
}


def read(
    body: object,
    body_format: AlertFormat = HTTP,
    *,
    flag: bool = True,
    at: datetime = NOW,
    mapping: FieldMapping = NO_FIELD_MAPPING,
) -> ParsedBody:
    policy = ParserSettings(nesting_limit=100, automatic_fingerprint=flag)
    return body_format.read(orjson.dumps(body), now=at, reading=policy, mapping=mapping)


def test_events_with_equal_content_have_equal_keys_at_any_time() -> None:
    payload = {**EVENT["payload"], "timestamp": "2026-11-22T11:00:00Z"}
    later, other = read({**EVENT, "payload": payload}), read({**EVENT, "client": "cron"})
    first = read(EVENT)
    assert first.event is not None
    assert first.event == later.event
    assert first.event != other.event


def test_without_automatic_fingerprints_each_event_has_a_unique_key() -> None:
    events = {read(EVENT, flag=False, at=NOW + timedelta(seconds=n)).event for n in range(3)}
    assert len(events) == 3


def test_severities_are_read_as_at_prometheus_endpoints() -> None:
    found = {}
    for word in ("critical", "Error", "warning", "info"):
        payload = {**EVENT["payload"], "severity": word}
        (alert,) = read({**EVENT, "payload": payload}).alerts
        found[word] = alert.severity.value
    assert found == {"critical": "critical", "Error": "medium", "warning": "low", "info": "info"}


@pytest.mark.parametrize(
    "body",
    [
        {"event_action": "trigger", "payload": EVENT["payload"]},
        {"routing_key": "k", "title": "Disk full"},
        {"routing_key": "k", "payload": EVENT["payload"]},
        {"routing_key": "k", "payload": "text"},
    ],
)
def test_other_bodies_are_generic_alerts(body: dict[str, Any]) -> None:
    parsed = read(body)
    assert parsed.event is None
    assert len(parsed.alerts) == 1


def test_a_change_event_has_no_alert() -> None:
    parsed = read({"routing_key": "k", "payload": {"summary": "Deployed"}})
    assert parsed.event is not None
    assert (parsed.event.action, parsed.alerts) == (EventAction.CHANGE, ())


def test_all_problems_of_an_event_are_named() -> None:
    with pytest.raises(InvalidEventError) as refused:
        read({**EVENT, "dedup_key": 7, "payload": {"severity": "bad"}})
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (b'{"routing_key": "secret"}', b'{"routing_key": "[hidden]"}'),
        (b'{"routing_key":"se\\"cret", "a": 1}', b'{"routing_key":"[hidden]", "a": 1}'),
        (b'{"routing_key": 7}', b'{"routing_key": 7}'),
        (b'{"title": "x"}', b'{"title": "x"}'),
    ],
)
def test_a_body_is_stored_without_the_routing_key(body: bytes, stored: bytes) -> None:
    assert hide_routing_key(body) == stored
