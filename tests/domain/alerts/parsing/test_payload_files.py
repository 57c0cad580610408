"""Parses bodies of real senders and compares the alerts with the expected ones next to them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.alerts.formats.registry import get_format
from domain.alerts.parsing import fingerprint
from domain.alerts.parsing.incoming_alert import IncomingAlert, NoValidItemError, ParsedBody
from domain.alerts.parsing.json_body import parse_body_object
from domain.alerts.parsing.payload_fields import flatten_payload
from tests.support.alerts.expected_alerts import NAMES, expected
from tests.support.alerts.senders import PAYLOADS

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)


def body_of(name: str) -> dict[str, Any]:
    return parse_body_object((PAYLOADS / name).read_bytes(), nesting_limit=100)


def parse(name: str) -> ParsedBody:
    body = (PAYLOADS / name).read_bytes()
    return get_format(expected(name)["type"]).read(body, now=NOW, reading=READING)


def written(alert: IncomingAlert, names: Iterable[str]) -> dict[str, object]:
    """Return an alert in the form of the files with expected alerts."""
    found = {name: getattr(alert, name) for name in names if name != "fingerprint_of"}
    for name in ("started_at", "ended_at"):
        moment = found[name]
        found[name] = "arrival" if moment == NOW else moment and moment.isoformat()
    return {**found, "hosts": list(alert.hosts), "parse_warnings": list(alert.parse_warnings)}


READABLE = [name for name in NAMES if expected(name)["status"] == 200]


@pytest.mark.spec("I1", "I11", "I12", "I13", "I14", "I15")
@pytest.mark.parametrize("name", READABLE)
def test_a_real_body_results_in_the_expected_alerts(name: str) -> None:
    parsed, wanted = parse(name), expected(name)
    assert parsed.refused == ()
    assert [alert.item_index for alert in parsed.alerts] == list(range(len(wanted["alerts"])))
    for alert, fields in zip(parsed.alerts, wanted["alerts"], strict=True):
        identity = fields.pop("fingerprint_of")
        assert written(alert, fields) == fields
        assert identity is None or alert.fingerprint == fingerprint.compute_sender_fingerprint(
            identity
        )


def test_every_body_has_a_file_with_expected_alerts() -> None:
    assert {path.name for path in PAYLOADS.glob("*.expected.json")} == {
        f"{Path(name).stem}.expected.json" for name in NAMES
    }


@pytest.mark.spec("I12")
def test_an_item_without_a_title_is_rejected_with_a_reason() -> None:
    name = "07_no_alertname_label_send_resolved_false.json"
    with pytest.raises(NoValidItemError) as refusal:
        parse(name)
    (refused,) = refusal.value.refused
    assert [{"item": refused.item_index, "reason": refused.reason}] == expected(name)["refused"]


@pytest.mark.parametrize("name", READABLE)
def test_alerts_that_the_sender_omitted_are_counted(name: str) -> None:
    parsed, wanted = parse(name), expected(name)
    assert parsed.truncated_alerts == wanted["truncated_alerts"]
    assert list(parsed.parse_warnings) == wanted["parse_warnings"]


@pytest.mark.spec("I8", "I17")
@pytest.mark.parametrize(
    ("firing", "recovery"),
    [
        ("01_firing_unicode_bearer.json", "10_resolved_unicode.json"),
        ("04_grouped_3_firing_common_labels.json", "11_resolved_grouped_3.json"),
        ("17_prometheus_instance_down_2.json", "18_prometheus_resolved_2.json"),
    ],
)
def test_a_real_recovery_has_the_fingerprint_of_its_alert(firing: str, recovery: str) -> None:
    opened = [alert.fingerprint for alert in parse(firing).alerts]
    assert opened == [alert.fingerprint for alert in parse(recovery).alerts]


@pytest.mark.spec("I3", "J5")
def test_a_body_with_unknown_fields_is_shown_completely() -> None:
    assert flatten_payload(body_of("monit.json")) == (
        ("MONIT_SERVICE", "testfile"),
        ("MONIT_DATE", "Sat, 21 Nov 2026 08:27:28"),
        ("MONIT_DESCRIPTION", "file doesn't exist"),
        ("MONIT_HOST", "vm"),
        ("MONIT_EVENT", "Does not exist"),
    )


def shown(name: str) -> Mapping[str, object]:
    return PROMETHEUS.get_displayed_payload(PROMETHEUS.reduce_body_to_item(body_of(name), 0))


@pytest.mark.spec("I13", "J5")
def test_unknown_annotations_are_shown() -> None:
    lines = flatten_payload(shown("01_firing_unicode_bearer.json"))
    assert ("annotations.nested", '{"a":{"b":[1,2]}}') in lines
    values = flatten_payload(shown("grafana.json"))
    assert ("values.C", "1") in values
