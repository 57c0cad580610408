"""Proposals that questions complete, and values that differ between a problem and its recovery."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_questions import apply_answers, propose_mapping_again
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.payload_paths import set_value
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import guess_mapping

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _build_warning(**changes: object) -> dict[str, Any]:
    return {"title": "CPU is high", "rule": "cpu", "host": "web-1", **changes}


def _read(payload: Mapping[str, Any], mapping: FieldMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


_MOVED_ID = "6f1b0a5e-9d7c-4c3e-8f59-2c3a0d5f7a10"


def _build_lag(number: str, group: str) -> dict[str, Any]:
    return {"app": "kafka", "events": [{"id": number, "event": {"group": group, "level": "ERR"}}]}


def test_values_that_move_to_another_key_in_the_recovery_are_paired() -> None:
    firing, other = _build_lag(_MOVED_ID, "payments"), _build_lag(_MOVED_ID[::-1], "mail")
    over = {"app": "kafka", "ids": [_MOVED_ID], "group": "payments"}
    messages = Messages(firing=firing, repeat=firing, recovery=over)
    answers = {"title": '["events", 0, "event", "group"]'}
    proposal, questions = apply_answers(messages, answers)
    assert any("Is the alert over if events is missing?" in each.text for each in questions)
    opened, resolved = (_read(each, proposal.mapping) for each in (firing, over))
    assert (opened.title, resolved.title) == ("payments", "payments")
    assert (resolved.fingerprint, opened.ended_at) == (opened.fingerprint, None)
    assert resolved.ended_at is not None
    assert _read(other, proposal.mapping).fingerprint != opened.fingerprint


def _list_choices(messages: Messages, name: str) -> list[str]:
    asked = (each for each in apply_answers(messages, {})[1] if each.name == name)
    return [choice.label for each in asked for choice in each.choices]


def test_the_question_about_the_fingerprint_offers_values_that_complete_it() -> None:
    robot = {"Id": 4778, "Name": "Bot2", "MachineName": "PC-2"}
    job = {"State": "Faulted", "Robot": robot, "Release": {"ProcessKey": "Invoices"}}
    firing = {"Type": "job.faulted", "Job": {**job, "Id": 14}}
    over = {"Type": "job.completed", "Job": {**job, "Id": 17, "State": "Successful"}}
    messages = Messages(firing=firing, recovery=over)
    label = "Also compare “Invoices”, Job.Release.ProcessKey"
    assert label in _list_choices(messages, "fingerprint")
    proposal, _ = apply_answers(messages, {"fingerprint": '["Job", "Release", "ProcessKey"]'})
    release = ("Job", "Release", "ProcessKey")
    opened, over_read, other = (
        _read(each, proposal.mapping)
        for each in (firing, over, set_value(firing, release, "Payroll"))
    )
    assert over_read.fingerprint == opened.fingerprint != other.fingerprint
    assert over_read.ended_at is not None
    # The recovery has another kind of event.
    asked = " ".join(each.text for each in apply_answers(messages, {})[1])
    assert "Type is not compared, because it is different in the recovery." in asked
    started = set_value(firing, ("Job", "State"), "Running")
    assert not _ENDPOINT.parse(started, now=_NOW, reading=_READING, mapping=proposal.mapping).alerts


def test_a_repeat_does_not_settle_the_question_about_the_fingerprint() -> None:
    rule = "00000000-0000-0000-0000-000000000003"
    firing = {"name": "Host.Escalation", "rule_id": rule, "host_name": "w-1", "level": "Critical"}
    for repeat in (None, firing):
        assert _list_choices(Messages(firing=firing, repeat=repeat), "fingerprint")
    mapping = guess_mapping(Messages(firing=firing)).mapping
    other = {**firing, "name": "Suspicious.Process"}
    assert _read(other, mapping).fingerprint != _read(firing, mapping).fingerprint


def test_a_healthy_part_of_an_object_does_not_resolve_the_alert() -> None:
    firing = _build_warning(container={"id": "f3", "health": "healthy"}, level="error")
    assert _read(firing, guess_mapping(Messages(firing=firing)).mapping).ended_at is None


def test_the_opposite_word_in_a_sentence_is_proposed_as_the_recovery() -> None:
    firing = _build_warning(note="The site has gone down.")
    messages = Messages(firing=firing, recovery={**firing, "note": "The site is back up."})
    guessed = guess_mapping(messages)
    assert guessed.mapping.rules.resolved_when[0].phrase == "note contains the word “up”"
    assert any("Is the alert over if note" in each.text for each in guessed.questions)
    changed = {**firing, "note": "The site is not back up."}
    assert guess_mapping(Messages(firing=firing, recovery=changed)).mapping.rules != (
        guessed.mapping.rules
    )


def test_a_code_is_a_better_rule_than_a_sentence() -> None:
    firing = _build_warning(note="Controller disconnected", alert_kind=1)
    over = {**firing, "note": "Controller connected", "alert_kind": 2}
    mapping = guess_mapping(Messages(firing=firing, recovery=over)).mapping
    assert mapping.rules.resolved_when[0].path == ("alert_kind",)


@pytest.mark.parametrize(
    ("name", "change"),
    [("number_of_alerts", 2), ("rule_speed", "8.94 Mbps"), ("check_share", "12 %")],
)
def test_counts_and_measures_do_not_identify_an_alert(name: str, change: object) -> None:
    firing = {"name": "Slow line", "node": "n-1", name: 1 if change == 2 else "61.27 Mbps"}
    mapping = guess_mapping(Messages(firing=firing)).mapping
    assert (
        _read({**firing, name: change}, mapping).fingerprint == _read(firing, mapping).fingerprint
    )


def test_the_name_current_is_no_host() -> None:
    target = "/groups/shop/providers/compute/machines/web-01"
    info = {"id": f"{target}/statuses/current", "name": "current", "target_resource_id": target}
    payload = {"type": "Availability.Changed", "data": {"resource_info": info}}
    assert "current" not in _read(payload, guess_mapping(Messages(firing=payload)).mapping).hosts


def test_the_hash_of_a_token_can_be_the_affected_account() -> None:
    payload = {"event_message": "Budget is crossed", "user_id": "bot", "token": "5f" * 32}
    assert any(
        each.endswith(", token") for each in _list_choices(Messages(firing=payload), "hosts")
    )


def test_both_ends_of_a_long_title_are_shown() -> None:
    payload = {"event_type": "resource_" + "x" * 60, "host": "the-end"}
    asked = guess_mapping(Messages(firing=payload)).questions
    text = next(each.text for each in asked if each.name == AlertField.TITLE)
    assert text.startswith("Is “resource_xx")
    assert text.endswith("xx: the-end” a good title?")


def _list_texts(messages: Messages) -> str:
    return " ".join(each.text for each in apply_answers(messages, {})[1])


def test_an_identifier_in_a_single_message_is_asked_about() -> None:
    firing = _build_warning(alert_id="5a3e0c1f2b7d4e6a9c10f4b2")
    assert "Are the values of alert_id and host the same in all messages" in _list_texts(
        Messages(firing=firing)
    )
    repeat = {**firing, "alert_id": firing["alert_id"][::-1]}
    mapping = guess_mapping(Messages(firing=firing, repeat=repeat)).mapping
    assert _read(repeat, mapping).fingerprint == _read(firing, mapping).fingerprint


@pytest.mark.parametrize(("client", "hosts"), [("files-02", ("files-02",)), ("Acme-Corp", ())])
def test_a_client_with_the_name_of_a_machine_is_the_host(
    client: str, hosts: tuple[str, ...]
) -> None:
    firing = {"Alert": "Backup Job Failed", "Client": client, "Backup Level": "Full"}
    messages = Messages(firing=firing)
    alert = _read(firing, guess_mapping(messages).mapping)
    assert (alert.hosts, alert.severity_reason) == (hosts, "No severity: treated as critical")
    assert "How severe" not in _list_texts(messages)


def test_a_rule_that_the_repeat_matches_is_not_proposed() -> None:
    firing = _build_warning(state={"active": 1})
    assert guess_mapping(Messages(firing=firing)).mapping.rules.resolved_when
    repeat = {**firing, "state": {"active": 0}}
    assert not guess_mapping(Messages(firing=firing, repeat=repeat)).mapping.rules.resolved_when


def test_a_repeat_about_another_host_is_pointed_out() -> None:
    firing = _build_warning()
    messages = Messages(firing=firing, repeat={**firing, "host": "web-2"})
    assert "host is “web-1” in the first message, and “web-2” in the repeat." in _list_texts(
        messages
    )


_PLACE = '["place"]'


def _build_place_messages() -> Messages:
    firing = {"rule": "cpu", "place": "shed-north", "kind": "cellar", "status": "alarm"}
    return Messages(firing=firing, repeat=firing)


def test_only_the_chosen_part_of_a_mapping_is_called_chosen() -> None:
    proposal, _ = apply_answers(_build_place_messages(), {"hosts": _PLACE})
    reasons = {each.field: (each.confidence, each.reason) for each in proposal.findings}
    assert reasons[AlertField.HOSTS] == ("sure", "you chose it")
    contains = "it contains the host or object that you chose"
    assert reasons[AlertField.FINGERPRINT] == ("likely", contains)


def test_another_proposal_keeps_the_given_answers() -> None:
    messages = _build_place_messages()
    proposal, questions = apply_answers(messages, {"hosts": _PLACE, "resolved_when": "keep"})
    assert {each.name for each in questions} >= {"hosts", "resolved_when"}
    recovery = {**messages.firing, "status": "ok"}
    more = Messages(firing=messages.firing, repeat=messages.repeat, recovery=recovery)
    again = propose_mapping_again(more, proposal.mapping)
    assert _read(recovery, again).hosts == ("shed-north",)
    assert again.rules.confirmed == ()  # The recovery answers the question about the rule.
    assert propose_mapping_again(messages, proposal.mapping).rules == proposal.mapping.rules


@pytest.mark.parametrize(
    ("score", "severity"),
    [
        (9.8, "critical"),
        ("7", "high"),
        (4.3, "medium"),
        (0.5, "low"),
        (0, "info"),
        (11, "critical"),
    ],
)
def test_a_cvss_score_is_read_as_a_severity(score: object, severity: str) -> None:
    firing: dict[str, Any] = {"title": "Old library", "project": "shop-api"}
    firing["vuln"] = {"cvss3Score": score}
    messages = Messages(firing=firing)
    assert _read(firing, guess_mapping(messages).mapping).severity == severity
    assert "How severe" not in _list_texts(messages)
    firing["vuln"]["cvssScore"] = 0  # An older version of CVSS.
    assert _read(firing, guess_mapping(messages).mapping).severity == severity
    given = {**firing, "severity": "low"}
    assert _read(given, guess_mapping(Messages(firing=given)).mapping).severity == "low"


def test_a_commit_and_an_unfinished_run_do_not_belong_to_a_failed_run() -> None:
    firing = {"task": "unit tests", "changeId": "9f2c71d0a4e6", "status": "FAILED"}
    messages = Messages(firing=firing, recovery={**firing, "status": "COMPLETED"})
    mapping = guess_mapping(messages).mapping
    other = {**firing, "changeId": "1b7e90aa41c3"}
    assert _read(other, mapping).fingerprint == _read(firing, mapping).fingerprint
    running = {**firing, "status": "EXECUTING"}
    assert not _ENDPOINT.parse(running, now=_NOW, reading=_READING, mapping=mapping).alerts


@pytest.mark.parametrize(
    ("title", "shown"),
    [("Alert Started", "Pattern update is available"), ("Disk alert", "Disk alert: web-1")],
)
def test_a_title_that_names_only_an_event_is_replaced_by_the_description(
    title: str, shown: str
) -> None:
    firing = {"title": title, "description": "Pattern update is available", "host": "web-1"}
    assert _read(firing, guess_mapping(Messages(firing=firing)).mapping).title == shown


def test_a_rule_named_after_a_state_belongs_to_the_fingerprint() -> None:
    firing = {"alert": {"name": "500 error"}, "host": {"name": "Web"}}
    mapping = guess_mapping(Messages(firing=firing, repeat=firing)).mapping
    other = {**firing, "alert": {"name": "404 error"}}
    assert _read(other, mapping).fingerprint != _read(firing, mapping).fingerprint


def test_an_alert_key_that_is_the_name_of_a_rule_is_joined_with_the_object() -> None:
    firing = {"alert_key": "min_bytes", "interface": "eno1", "message": "Traffic is high"}
    mapping = guess_mapping(Messages(firing=firing, repeat=firing)).mapping
    other = {**firing, "interface": "eno2"}
    assert _read(other, mapping).fingerprint != _read(firing, mapping).fingerprint


def test_a_named_object_is_offered_as_the_host_if_another_title_is_chosen() -> None:
    firing = {"printer": {"id": 48213, "name": "Lab 2"}, "event": {"type": "PrintFailure"}}
    messages = Messages(firing=firing, repeat=firing)
    answers = {"title": '["event", "type"]'}
    asked = [each for each in apply_answers(messages, answers)[1] if each.name == "hosts"]
    assert "“Lab 2”, printer.name" in [each.label for each in asked[0].choices]


def test_a_number_from_another_field_is_no_cvss_score() -> None:
    mapping = FieldMapping({AlertField.SEVERITY: (("level",), ("cvss",))})
    assert _read({"title": "Old library", "level": 3, "cvss": 9.8}, mapping).severity == "critical"
    assert _read({"title": "Old library", "cvss": 5}, mapping).severity == "medium"
