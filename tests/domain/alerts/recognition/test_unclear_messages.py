"""Proposals for messages that are easily misread: unclear states, ends, identifiers and keys."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_actions import build_recognition_resource
from domain.alerts.integrations.recognized_samples import recognize_messages
from domain.alerts.integrations.samples import MessageTexts
from domain.alerts.reading.incoming import IncomingAlert, Severity
from domain.alerts.reading.mapping import FieldMapping, parse_mapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import guess_mapping, propose_word_severity
from domain.alerts.recognition.tools import propose_mapping

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _build(**changes: object) -> dict[str, Any]:
    return {"title": "CPU is high", "rule": "cpu", "host": "web-1", **changes}


def _read(payload: Mapping[str, Any], mapping: FieldMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


@pytest.mark.parametrize(
    "state", ["not resolved", "NOT_OK", "Not Healthy", "no recovery", "DOWN from OK", "DOWN was UP"]
)
def test_a_negated_or_a_former_state_does_not_resolve_the_alert(state: str) -> None:
    firing = _build(state=state)
    guessed = guess_mapping(Messages(firing=firing))
    assert _read(firing, guessed.mapping).ended_at is None
    assert any("the alert is over" in question for question in guessed.questions)
    assert propose_word_severity(state) is not Severity.INFO


@pytest.mark.parametrize("key", ["not_ok_status", "statusNotHealthy"])
def test_a_negated_key_does_not_resolve_the_alert(key: str) -> None:
    firing = _build(**{key: True})
    guessed = guess_mapping(Messages(firing=firing))
    assert _read(firing, guessed.mapping).ended_at is None
    assert guessed.questions


@pytest.mark.parametrize(
    ("firing", "recovery"),
    [("UnresolvedCritical", "ResolvedCritical"), (["ok", "down"], "ok"), ("not ok", "ok")],
)
def test_the_rule_for_the_recovery_does_not_match_the_problem(firing: Any, recovery: Any) -> None:
    messages = Messages(firing=_build(status=firing), recovery=_build(status=recovery))
    guessed = guess_mapping(messages)
    assert _read(messages.firing, guessed.mapping).ended_at is None
    assert messages.recovery is not None
    assert _read(messages.recovery, guessed.mapping).ended_at or guessed.questions


@pytest.mark.parametrize("end", [5, "5", 30.5, 1764410400, "2026-11-29T10:00:00Z"])
def test_a_time_in_the_first_message_is_no_end(end: object) -> None:
    firing = _build(end=end)
    assert _read(firing, guess_mapping(Messages(firing=firing)).mapping).ended_at is None


@pytest.mark.parametrize(
    "shared",
    [
        {"aggregation": "avg"},
        {"condition": {"timeAggregation": "Average"}},
        {"alertId": "cpu"},
        {"alert_id": 5},
        {"rule": "cpu", "cluster": "eu", "host": None, "worker": "web-1"},
    ],
)
def test_two_hosts_do_not_share_a_statistic_or_a_rule(shared: dict[str, Any]) -> None:
    one, other = (_build(host=host, status="firing") | shared for host in ("web-1", "web-2"))
    if "worker" in shared:
        other["worker"] = "web-2"
    guessed = guess_mapping(Messages(firing=one))
    fingerprints = {_read(each, guessed.mapping).fingerprint for each in (one, other)}
    assert len(fingerprints) == 2 or guessed.questions


_TEXTS = st.text(st.sampled_from("xß,:\u202e\ud800\x00 "), max_size=62)
_STATES = st.sampled_from(["down", "OK", "firing", "Resolved", "critical", "not ok", "1"])
_VALUES = st.tuples(_TEXTS, _STATES, _TEXTS).map("".join) | st.sampled_from([0, 1, 5, True, 2**64])
_KEYS = st.sampled_from(["state", "status", "severity", "end", "event_type", "a.b", "", "\ud800"])


@pytest.mark.hypothesis
@given(st.lists(st.dictionaries(_KEYS, _VALUES), min_size=3, max_size=3))
def test_a_proposal_can_be_saved_and_returned(payloads: list[dict[str, Any]]) -> None:
    firing, repeat, recovery = (_build(**each, labels=each) for each in payloads)
    for others in ({}, {"repeat": repeat}, {"repeat": repeat, "recovery": recovery}):
        mapping = guess_mapping(Messages(firing=firing, **others)).mapping
        assert parse_mapping(mapping.stored) == mapping
        texts = {name: json.dumps(each) for name, each in others.items()}
        given_texts = MessageTexts(sample=json.dumps(firing), **texts)
        found = recognize_messages(given_texts, now=_NOW, reading=_READING)
        assert build_recognition_resource(found).model_dump_json()
        if others and "recovery" in others:
            assert _read(firing, mapping).ended_at is None


@pytest.mark.parametrize(
    "payload",
    [
        {"incident": {"incident_id": 1, "state": "open", "name": "CPU", "host": "web-1"}},
        {"event_id": 4, "event_value": "down", "title": "CPU", "host": "web-1"},
        {"num_hits": 5, "num_matches": 2, "title": "CPU", "host": "web-1"},
    ],
)
def test_marks_of_a_tool_without_its_title_are_not_that_tool(payload: dict[str, Any]) -> None:
    proposal = propose_mapping(Messages(firing=payload))
    assert proposal.tool is None
    assert _read(payload, proposal.mapping).title == "CPU: web-1"
