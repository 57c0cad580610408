"""Proposals for messages with a host and a service, and for messages without a severity."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_questions import apply_answers, propose_mapping_again
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import FieldMapping, parse_mapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import guess_mapping

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _read(payload: Mapping[str, Any], mapping: FieldMapping | None = None) -> IncomingAlert:
    mapping = mapping or guess_mapping(Messages(firing=payload)).mapping
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


@pytest.mark.parametrize(
    ("fields", "service"),
    [
        ({"host": "web-1", "service_description": "Disk /var"}, "Disk /var"),
        ({"hostname": "web-1", "check_name": "CPU load"}, "CPU load"),
        ({"server": "web-1", "title": "Disk is full", "check": "disk"}, "disk"),
        ({"host": "web-1", "message": "It is slow", "component": "api"}, "api"),
        ({"node": {"name": "web-1"}, "summary": "It is slow", "module": "dns-udp"}, "dns-udp"),
        ({"host": "web-1", "service": "shop", "check_name": "CPU load"}, "shop"),
        ({"agent": "web-1", "text": "Disk is full", "check": "Disk C:"}, "Disk C:"),
    ],
)
def test_a_host_and_a_service_are_both_filled(fields: dict[str, Any], service: str) -> None:
    alert = _read({"status": "critical", **fields})
    assert (alert.hosts, alert.service) == (("web-1",), service)


@pytest.mark.parametrize(
    "fields",
    [
        {"check_state": "failed"},
        {"check": "https://shop.example/health"},
        {"check": "critical"},
        {"check": "8d5b5e5f-1c2d-4e3f-8a9b-0c1d2e3f4a5b"},
        {"check_command": "check-disk"},
        {"check": "web-1"},
        {"previous_check": "cpu"},
        {"check": 4711},
        {"module": "The connection to the database was lost"},
        {"job": {"steps": [{"check": "login"}]}},
    ],
)
def test_another_value_about_a_check_is_no_service(fields: dict[str, Any]) -> None:
    alert = _read({"title": "Disk is full", "host": "web-1", "status": "critical", **fields})
    assert (alert.hosts, alert.service) == (("web-1",), None)


def test_without_a_host_a_check_is_no_service() -> None:
    assert _read({"title": "Disk is full", "check": "disk", "status": "critical"}).service is None


_TEXT = "Every alert of this tool is critical"


def test_a_severity_is_chosen_for_a_tool_that_sends_none() -> None:
    firing = {"title": "Disk is full", "rule": "disk", "host": "web-1", "state": "firing"}
    messages = Messages(firing=firing)
    proposal, questions = apply_answers(messages, {})
    (question,) = [each for each in questions if each.name == "severity"]
    assert question.text.startswith(_TEXT)
    labels = ["Critical (proposed)", "High", "Medium", "Low", "Info"]
    assert [each.label for each in question.choices] == labels
    assert _read(firing, proposal.mapping).severity == "critical"

    answered, _ = apply_answers(messages, {"severity": "low"})
    saved = parse_mapping(answered.mapping.stored)
    assert saved.rules.severity_words == {"(none)": "low"}
    alert = _read(firing, saved)
    assert alert.severity == "low"
    assert alert.severity_reason == "No severity: this integration uses low"
    assert _read({**firing, "severity": " "}, saved).severity == "low"
    assert _read({**firing, "severity": "high"}, saved).severity == "high"
    assert _read({**firing, "severity": "weird"}, saved).severity == "critical"
    # A saved answer is not asked about again, and a new proposal keeps it.
    assert not [each for each in apply_answers(messages, {}, saved)[1] if each.name == "severity"]
    again = propose_mapping_again(messages, saved)
    assert again.rules.severity_words == saved.rules.severity_words
    critical = apply_answers(messages, {"severity": "critical"})[0].mapping
    assert _read(firing, critical).severity == "critical"


@pytest.mark.parametrize("field", [{"severity": "high"}, {"priority": "P1"}, {"status": "warning"}])
def test_a_message_with_a_severity_raises_no_question_about_all_alerts(
    field: dict[str, str],
) -> None:
    guessed = guess_mapping(Messages(firing={"title": "Disk is full", "host": "web-1", **field}))
    assert not [each for each in guessed.questions if each.text.startswith(_TEXT)]


def test_a_key_without_words_is_no_service() -> None:
    assert _read({"title": "Disk is full", "host": "web-1", "_": "disk"}).service is None
