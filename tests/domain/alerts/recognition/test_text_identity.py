"""Proposals for messages in which only sentences identify the alert."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_questions import apply_answers
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping
from tests.support.alerts.senders import PAYLOADS

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)

#: Texts about a problem and its recovery. `{0}` is the affected object, and `{1}` a number.
_TEXTS = (
    ("Backup failed for database {0}", "Backup of database {0} succeeded"),
    ("[DOWN] {0} is unreachable ({1} min)", "[UP] {0} is reachable again"),
    ("❌ [{0}] DB is unavailable", "✅ [{0}] DB is back online"),
    ("{0}: CPU load is CRITICAL (load {1}.5)", "{0}: CPU load is OK (load 0.{1})"),
    ("Service {0} is unhealthy for {1} seconds", "Service {0} is healthy after {1} seconds"),
    ("PROBLEM: disk of {0} at {1}%", "RECOVERY: disk of {0} at {1}%"),
)
_HOSTS = st.one_of(
    st.from_regex(r"[a-z]{3,8}-?[0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[a-z]{3,8}\.(example|test)(:[1-9][0-9]{1,4})?", fullmatch=True),
    st.from_regex(r"10(\.[1-9][0-9]?){3}", fullmatch=True),
    st.from_regex(r"/dev/[a-z]{3}[0-9]", fullmatch=True),
    st.from_regex(r"(port|disk|slot|vm) [1-9][0-9]{0,4}", fullmatch=True),
    st.from_regex(r"(ge|xe)-[0-9]/[0-9]", fullmatch=True),
    st.sampled_from(("orders", "billing", "Berlin Warehouse", "Postgres 15.2", "Postgres 16.1")),
)


def _read(payload: Mapping[str, Any], mapping: FieldMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


def _asks_about_text(guessed: GuessedMapping) -> bool:
    text = "Do messages with these words always report the same problem"
    asked = [each for each in guessed.questions if text in each.text]
    return [each.name for each in asked] == [AlertField.FINGERPRINT]


@given(st.sampled_from(_TEXTS), _HOSTS, _HOSTS, st.integers(1, 99), st.integers(1, 99))
def test_a_repeat_and_the_recovery_join_and_two_hosts_never_share_an_alert(
    texts: tuple[str, str], host: str, other: str, number: int, later: int
) -> None:
    assume(host != other)
    problem, recovery = texts
    firing, repeat, second = (
        {"text": problem.format(*each)} for each in ((host, number), (host, later), (other, number))
    )
    over, second_over = ({"text": recovery.format(each, later)} for each in (host, other))
    for known in ({}, {"repeat": repeat}, {"recovery": over}, {"repeat": repeat, "recovery": over}):
        guessed = guess_mapping(Messages(firing=firing, **known))
        alert, joined, ended, kept = (
            _read(each, guessed.mapping) for each in (firing, repeat, over, second)
        )
        assert joined.fingerprint == ended.fingerprint == alert.fingerprint
        assert (alert.ended_at, joined.ended_at, kept.ended_at) == (None, None, None)
        assert kept.fingerprint != alert.fingerprint
        assert _read(second_over, guessed.mapping).fingerprint == kept.fingerprint
        assert _asks_about_text(guessed)
        if "recovery" in known:
            assert ended.ended_at is not None


@pytest.mark.parametrize("name", ["databasus", "tp_link_omada", "plain_text_state"])
def test_the_recovery_of_a_tool_that_sends_only_texts_resolves_its_alert(name: str) -> None:
    stored = json.loads((PAYLOADS / "unknown" / f"{name}.json").read_text(encoding="utf-8"))
    messages = {each: stored[each] for each in ("firing", "repeat", "recovery")}
    guessed = guess_mapping(Messages(**messages))
    alert, repeat, over, other = (
        _read(stored[each], guessed.mapping) for each in (*messages, "other")
    )
    assert guessed.mapping.rules.ignored_words
    assert (repeat.fingerprint, repeat.ended_at) == (alert.fingerprint, None)
    assert over.fingerprint == alert.fingerprint
    assert over.ended_at is not None
    assert other.fingerprint != alert.fingerprint
    assert alert.fingerprint_source.endswith(", without the words that change")
    assert _asks_about_text(guessed)


@pytest.mark.parametrize(
    ("problem", "recovery"),
    [
        ("Backup of orders failed on db-1", "Backup of orders succeeded on db-2"),
        ("Backup failed", "Backup succeeded"),
        ("3 of 5 nodes are down", "Everything is up"),
        ("Backup of orders failed: disk full", "Backup of orders succeeded"),
    ],
)
def test_a_text_without_the_same_words_in_the_recovery_is_not_proposed(
    problem: str, recovery: str
) -> None:
    messages = Messages(firing={"text": problem}, recovery={"text": recovery})
    guessed = guess_mapping(messages)
    assert guessed.mapping.rules.ignored_words == ()
    assert "No value identifies the alert" in " ".join(each.text for each in guessed.questions)


@pytest.mark.parametrize(
    "fields",
    [
        {"rule": "cpu", "host": "web-1"},
        {"alert_id": "8d5b5e5f-1c2d-4e3f-8a9b-0c1d2e3f4a5b"},
        {"fingerprint": "web-1/cpu"},
        {"check": {"id": 4711, "name": "CPU"}, "server": "web-1"},
    ],
)
def test_a_field_is_a_better_identity_than_a_text(fields: dict[str, Any]) -> None:
    for known in ({}, {"recovery": {"text": "[OK] CPU of web-1 is at 5 %", **fields}}):
        firing = {"text": "[CRITICAL] CPU of web-1 is at 97 %", **fields}
        assert guess_mapping(Messages(firing=firing, **known)).mapping.rules.ignored_words == ()


def test_the_text_that_names_the_object_is_chosen() -> None:
    firing = {"title": "Backup failed today", "message": "Backup failed today for database orders"}
    mapping = guess_mapping(Messages(firing=firing)).mapping
    assert mapping.paths[AlertField.FINGERPRINT] == (("message",),)
    firing = {"title": "Backup job failed", "message": "The database orders is unavailable"}
    recovery = {"title": "Backup job succeeded", "message": "The database orders is available"}
    mapping = guess_mapping(Messages(firing=firing, recovery=recovery)).mapping
    other = {**firing, "message": "The database billing is unavailable"}
    assert _read(recovery, mapping).fingerprint == _read(firing, mapping).fingerprint
    assert _read(other, mapping).fingerprint != _read(firing, mapping).fingerprint


def test_only_words_that_differ_between_the_messages_are_ignored() -> None:
    firing = {"text": "[DOWN] New critical host web-1"}
    recovery = {"text": "[UP] New critical host web-1"}
    rules = guess_mapping(Messages(firing=firing, recovery=recovery)).mapping.rules
    assert {"down", "up"} <= {*rules.ignored_words}
    assert not {"new", "critical"} & {*rules.ignored_words}


def test_the_chosen_host_is_compared_together_with_the_text() -> None:
    stored = json.loads((PAYLOADS / "unknown" / "plain_text_state.json").read_text("utf-8"))
    messages = Messages(**{each: stored[each] for each in ("firing", "repeat", "recovery")})
    proposal, _ = apply_answers(messages, {"hosts": '["source"]'})
    firing, other = (_read(stored[each], proposal.mapping) for each in ("firing", "other"))
    assert firing.hosts == ("edge-monitor",)
    assert firing.fingerprint_source.startswith("the text and source fields")
    assert other.fingerprint != firing.fingerprint
    assert _read(stored["recovery"], proposal.mapping).fingerprint == firing.fingerprint


def test_changed_ignored_words_answer_the_question_about_the_text() -> None:
    messages = Messages(firing={"text": "[DOWN] shop.example is unreachable"})
    mapping = guess_mapping(messages).mapping
    names = {each.name for each in apply_answers(messages, {}, mapping)[1]}
    assert AlertField.FINGERPRINT in names
    changed = mapping.with_rules(ignored_words=("down", "up"))
    assert {each.name for each in apply_answers(messages, {}, changed)[1]} == names - {
        AlertField.FINGERPRINT
    }


def test_a_single_word_is_a_name_unless_it_begins_the_text() -> None:
    for text, place in (("[DOWN] orders is unreachable", {}), ("[DOWN] wiki", {"site": "Berlin"})):
        firing = {"text": text, **place}
        other = {**firing, "text": "[DOWN] billing is unreachable"}
        recovery = {**firing, "text": text.replace("DOWN", "UP").replace("un", "")}
        mapping = guess_mapping(Messages(firing=firing)).mapping
        assert _read(recovery, mapping).fingerprint == _read(firing, mapping).fingerprint
        assert _read(other, mapping).fingerprint != _read(firing, mapping).fingerprint
    for firing in ({"text": "Backup failed"}, {"title": "New violations"}):
        assert guess_mapping(Messages(firing=firing)).mapping.rules.ignored_words == ()
