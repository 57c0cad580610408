"""Malformed and unusual bodies: each is rejected with a message, or parsed."""

from typing import Any

import pytest

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.formats.registry import FORMATS
from domain.alerts.parsing.incoming_alert import (
    IncomingAlert,
    MissingAttributesError,
    NoValidItemError,
    ParsedBody,
    RejectedAlertItem,
    UnreadableBodyError,
)
from tests.domain.alerts.parsing.strategies import NOW
from tests.domain.alerts.parsing.test_generic import assert_fits
from tests.support.alerts.senders import item, webhook
from tests.support.alerts.strange_bodies import GENERIC, STRANGE, UNREADABLE, VALUES, metrics_bodies

READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


def read(body: bytes, body_format: AlertFormat = HTTP) -> ParsedBody:
    return body_format.read(body, now=NOW, reading=READING)


@pytest.mark.spec("I1")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in UNREADABLE
        for kind in FORMATS
        # HTTP endpoints accept arrays (tests/http/intake/test_intake_arrays.py).
        if "application/json" in kind.media_types and (name, kind) != ("an array", HTTP)
    ],
)
def test_other_bodies_than_json_objects_are_rejected_with_a_message(
    name: str, kind: AlertFormat
) -> None:
    with pytest.raises(UnreadableBodyError, match=r"^The body .*\.$"):
        read(UNREADABLE[name], kind)


@pytest.mark.spec("I3", "I4")
@pytest.mark.parametrize("name", STRANGE)
def test_an_alert_with_unusual_values_is_not_lost(name: str) -> None:
    body, title = STRANGE[name]
    (alert,) = read(body).alerts
    assert alert.title == title
    assert_fits(alert)


@pytest.mark.spec("I3", "I7")
@pytest.mark.parametrize("name", VALUES)
def test_a_generic_alert_accepts_any_value_in_any_field(name: str) -> None:
    for field in GENERIC:
        (alert,) = read(f'{{"{field}": {VALUES[name]}}}'.encode()).alerts
        assert_fits(alert)


@pytest.mark.spec("I11", "I12", "I13")
@pytest.mark.parametrize("name", VALUES)
def test_a_webhook_with_any_value_in_any_place_is_parsed_or_rejected(name: str) -> None:
    for body in metrics_bodies(VALUES[name]):
        alerts, refused = outcome(body)
        indexes = [each.item_index for each in alerts] + [each.item_index for each in refused]
        assert indexes == [0]
        assert all(each.reason for each in refused)
        for alert in alerts:
            assert_fits(alert)


def outcome(body: bytes) -> tuple[tuple[IncomingAlert, ...], tuple[RejectedAlertItem, ...]]:
    try:
        parsed = read(body, PROMETHEUS)
    except NoValidItemError as refusal:
        return (), refusal.refused
    return parsed.alerts, parsed.refused


@pytest.mark.spec("I11")
@pytest.mark.parametrize("alerts", [None, {}, "firing", 3, [], [None], [[]], [1, "x"]])
def test_alerts_of_another_type_are_rejected_with_reasons(alerts: Any) -> None:
    with pytest.raises((MissingAttributesError, NoValidItemError)) as refusal:
        read(webhook(item("x"), alerts=alerts), PROMETHEUS)
    reasons = refusal.value.refused if isinstance(refusal.value, NoValidItemError) else ()
    given = alerts if isinstance(alerts, list) else []
    assert [each.item_index for each in reasons] == list(range(len(given)))
