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
from domain.alerts.integrations.message_recognition import recognize_messages
from domain.alerts.integrations.samples import MessageTexts
from domain.alerts.parsing.incoming_alert import IncomingAlert, Severity
from domain.alerts.parsing.mapping import AlertField, FieldMapping, parse_mapping
from domain.alerts.parsing.payload_paths import find_value, remove_value, set_value
from domain.alerts.recognition.known_tools import propose_mapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import guess_mapping
from domain.alerts.recognition.questions import propose_word_severity
from domain.core.word_joining import join_words
from tests.support.alerts.proposals import list_doubts

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _build_warning(**changes: object) -> dict[str, Any]:
    return {"title": "CPU is high", "rule": "cpu", "host": "web-1", **changes}


def _read(payload: Mapping[str, Any], mapping: FieldMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


@pytest.mark.parametrize(
    "state", ["not resolved", "NOT_OK", "Not Healthy", "no recovery", "DOWN from OK", "DOWN was UP"]
)
def test_a_negated_or_a_former_state_does_not_resolve_the_alert(state: str) -> None:
    firing = _build_warning(state=state)
    guessed = guess_mapping(Messages(firing=firing))
    assert _read(firing, guessed.mapping).ended_at is None
    assert any("the alert is over" in each.text for each in guessed.questions)
    assert propose_word_severity(state) is not Severity.INFO


@pytest.mark.parametrize("key", ["not_ok_status", "statusNotHealthy"])
def test_a_negated_key_does_not_resolve_the_alert(key: str) -> None:
    firing = _build_warning(**{key: True})
    guessed = guess_mapping(Messages(firing=firing))
    assert _read(firing, guessed.mapping).ended_at is None
    assert list_doubts(guessed)


@pytest.mark.parametrize(
    ("firing", "recovery"),
    [("UnresolvedCritical", "ResolvedCritical"), (["ok", "down"], "ok"), ("not ok", "ok")],
)
def test_the_rule_for_the_recovery_does_not_match_the_problem(firing: Any, recovery: Any) -> None:
    messages = Messages(
        firing=_build_warning(status=firing), recovery=_build_warning(status=recovery)
    )
    guessed = guess_mapping(messages)
    assert _read(messages.firing, guessed.mapping).ended_at is None
    assert messages.recovery is not None
    assert _read(messages.recovery, guessed.mapping).ended_at or list_doubts(guessed)


@pytest.mark.parametrize("end", [5, "5", 30.5, 1764410400, "2026-11-29T10:00:00Z"])
def test_a_time_in_the_first_message_is_no_end(end: object) -> None:
    firing = _build_warning(end=end)
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
    one, other = (
        _build_warning(host=host, status="firing") | shared for host in ("web-1", "web-2")
    )
    if "worker" in shared:
        other["worker"] = "web-2"
    guessed = guess_mapping(Messages(firing=one))
    fingerprints = {_read(each, guessed.mapping).fingerprint for each in (one, other)}
    assert len(fingerprints) == 2 or list_doubts(guessed)


_TEXTS = st.text(st.sampled_from("xß,:\u202e\ud800\x00 "), max_size=62)
_STATES = st.sampled_from(["down", "OK", "firing", "Resolved", "critical", "not ok", "1"])
_VALUES = st.tuples(_TEXTS, _STATES, _TEXTS).map("".join) | st.sampled_from([0, 1, 5, True, 2**64])
_KEYS = st.sampled_from(["state", "status", "severity", "end", "event_type", "a.b", "", "\ud800"])


@pytest.mark.hypothesis
@given(st.lists(st.dictionaries(_KEYS, _VALUES), min_size=3, max_size=3))
def test_a_proposal_can_be_saved_and_returned(payloads: list[dict[str, Any]]) -> None:
    firing, repeat, recovery = (_build_warning(**each, labels=each) for each in payloads)
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


_CHECKED = {"check_name": "Checkout", "check_id": 7, "host": "web-1", "severity": "Error"}


def test_a_sentence_with_a_number_is_no_rule_for_the_recovery() -> None:
    firing = {**_CHECKED, "message": "HTTP status 500"}
    recovery = {**_CHECKED, "severity": "Info", "message": "Completed in 4211 ms"}
    guessed = guess_mapping(Messages(firing=firing, recovery=recovery))
    assert _read(firing, guessed.mapping).ended_at is None
    next_recovery = {**recovery, "message": "Completed in 3987 ms"}
    assert _read(next_recovery, guessed.mapping).ended_at is not None
    (rule,) = guessed.mapping.rules.resolved_when
    assert rule.path == ("severity",)


@pytest.mark.parametrize(
    ("changes", "first", "title"),
    [
        (
            {"message": "HTTP status 503", "label": "Checkout API"},
            "Checkout API: HTTP status 503",
            "Checkout API: down",
        ),
        ({"message": "Timeout of Shop", "summary": "Shop health"}, "Shop health", "Shop health"),
        (
            {"policy_name": "fast-burn", "slo_name": "checkout"},
            "fast-burn: checkout",
            "fast-burn: checkout",
        ),
    ],
)
def test_a_title_does_not_change_in_the_repeat(
    changes: dict[str, Any], first: str, title: str
) -> None:
    firing = {"event": "down", "id": "a", **changes}
    repeat = {**firing, "message": "Timeout"} if "message" in changes else firing
    assert _read(firing, guess_mapping(Messages(firing=firing)).mapping).title == first
    both = guess_mapping(Messages(firing=firing, repeat=repeat)).mapping
    assert [_read(each, both).title for each in (firing, repeat)] == [title, title]


@pytest.mark.parametrize(
    "runner",
    [
        {"executionHost": "test001.example.net"},
        {"probe": {"host": "fra-2", "region": "eu"}},
        {"steps": [{"target": "#login", "host": "step-1"}]},
    ],
)
def test_the_machine_and_the_steps_of_a_check_are_neither_hosts_nor_identity(
    runner: dict[str, Any],
) -> None:
    firing = {"test": {"id": "5e2a0b342d0f5947444c31fc", "name": "Login"}, "passing": False}
    guessed = guess_mapping(Messages(firing={**firing, **runner}))
    alert = _read({**firing, **runner}, guessed.mapping)
    assert alert.hosts == ()
    assert alert.fingerprint == _read(firing, guessed.mapping).fingerprint


def test_the_time_with_a_known_time_zone_is_the_start() -> None:
    times = {"time": "2026-11-29T11:00:00", "timeUtc": "2026-11-29T10:00:00"}
    found = guess_mapping(Messages(firing=_build_warning(**times))).mapping.sources
    assert found[AlertField.START_TIME] == "timeUtc"
    times = {"timestamp": "2026-11-29 11:00:00", "iso_timestamp": "2026-11-29T10:00:00Z"}
    found = guess_mapping(Messages(firing=_build_warning(**times))).mapping.sources
    assert found[AlertField.START_TIME] == "iso_timestamp"


@pytest.mark.parametrize("end", ["2026-11-29T01:45:35Z", "Nov 29 01:45:35"])
def test_the_end_of_a_search_is_asked_about(end: str) -> None:
    guessed = guess_mapping(Messages(firing=_build_warning(end_time=end)))
    assert AlertField.END_TIME not in {each.field for each in guessed.findings}
    assert any("end_time" in each.text for each in guessed.questions)


def test_a_list_of_new_problems_is_identified_by_its_item_and_object() -> None:
    shop = {"project": {"id": 1, "name": "shop", "frequency": "daily"}}
    item = {"id": "CVE-1", "title": "Overflow in zlib", "severity": "low"}
    firing = {**shop, "newIssues": [item], "removedIssues": []}
    guessed = guess_mapping(Messages(firing=firing))
    assert any("without problems" in each.text for each in guessed.questions)
    alert = _read(firing, guessed.mapping)
    over = _read({**shop, "newIssues": [], "removedIssues": [item]}, guessed.mapping)
    assert (over.fingerprint, over.title) == (alert.fingerprint, alert.title)
    assert (alert.ended_at, over.ended_at is None) == (None, False)
    for other in ({"project": {"id": 2}}, {"newIssues": [{**item, "id": "CVE-2"}]}):
        assert _read({**firing, **other}, guessed.mapping).fingerprint != alert.fingerprint


def test_a_kind_does_not_identify_an_alert() -> None:
    kind = {"event_type": "timing", "source_type_name": "tool", "priority": "normal"}
    firing = {"title": "Shop - CRITICAL", "alert_type": "error", **kind}
    recovery = {"title": "Shop - OK", "alert_type": "success", **kind}
    guessed = guess_mapping(Messages(firing=firing, recovery=recovery))
    assert any("No value identifies the alert" in each.text for each in guessed.questions)
    first, other = (
        _read({**firing, "title": title}, guessed.mapping) for title in ("Shop", "Blog")
    )
    assert first.fingerprint != other.fingerprint
    assert (first.hosts, first.severity) == ((), Severity.MEDIUM)


def test_objects_with_one_key_are_the_fields_of_one_object() -> None:
    fields = [{"alert_name": "High CPU"}, {"node_name": "web-1"}, {"severity": "Warning"}]
    payload = {"id": "a", "properties": fields}
    alert = _read(payload, guess_mapping(Messages(firing=payload)).mapping)
    assert (alert.title, alert.hosts, alert.severity) == (
        "High CPU: web-1",
        ("web-1",),
        Severity.LOW,
    )
    path = ("properties", "node_name")
    changed = set_value(payload, path, "web-2")
    assert find_value(changed, path) == "web-2"
    assert find_value(remove_value(changed, path), path) is None
    assert len(remove_value(changed, path)["properties"]) == 2
    same = {"properties": [{"name": "web-1"}, {"name": "web-2"}]}
    assert find_value(same, ("properties", "name")) is None


def test_a_rule_and_an_area_are_never_sure_and_the_question_names_a_possible_host() -> None:
    payload = {"rule_id": 37, "rule_name": "Disk is full", "cluster": "eu-1", "worker": "pay-01"}
    for others in ({}, {"repeat": payload}, {"repeat": payload, "recovery": payload}):
        guessed = guess_mapping(Messages(firing=payload, **others))
        (found,) = [each for each in guessed.findings if each.field is AlertField.FINGERPRINT]
        assert found.confidence == "unsure"
        assert ("worker",) in {leaf.path for each in guessed.questions for leaf in each.candidates}


@pytest.mark.parametrize("word", ["Default", "n/a", "GLOBAL", "main"])
def test_a_placeholder_is_no_name(word: str) -> None:
    mapping = guess_mapping(
        Messages(firing=_build_warning(host=None, dataset=word, cluster=word))
    ).mapping
    assert not {AlertField.HOSTS, AlertField.SERVICE} & mapping.paths.keys()


def test_typed_values_of_labels_are_read_like_plain_values() -> None:
    labels = [
        {"key": "host.name", "value": {"stringValue": "web-1"}},
        {"key": "severity", "value": {"stringValue": "high"}},
        {"key": "pods", "value": {"arrayValue": {"values": [{"stringValue": "p-1"}]}}},
    ]
    payload = {"title": "CPU is high", "labels": labels}
    alert = _read(payload, guess_mapping(Messages(firing=payload)).mapping)
    assert (alert.hosts, alert.severity) == (("web-1",), Severity.HIGH)


@pytest.mark.parametrize("value", [1, 3, "2"])
def test_a_number_as_severity_is_asked_about_with_the_numbers_of_all_messages(
    value: object,
) -> None:
    messages = Messages(firing=_build_warning(severity=value), recovery=_build_warning(severity=9))
    asked = " ".join(each.text for each in guess_mapping(messages).questions)
    assert f"How severe is “{value}” and “9”?" in asked
    assert "Other numbers of severity are critical" in asked


@pytest.mark.parametrize(
    ("more", "link"),
    [
        ({"issue": {"url": "https://tool.example/i/1"}}, "https://tool.example/i/1"),
        ({"actions": [{"url": "https://tool.example/m/1"}]}, "https://tool.example/m/1"),
        ({"finding": {"externalUri": "https://tool.example/f/1"}}, "https://tool.example/f/1"),
        ({"permalink": "https://tool.example/p/1"}, "https://tool.example/p/1"),
        ({"url": "https://shop.example/health", "check": "shop.example"}, None),
        ({"callback_url": "https://tool.example/hook"}, None),
        ({"silence_alert_url": "https://tool.example/silence"}, None),
    ],
)
def test_the_link_to_the_problem_is_read_and_other_links_are_not(
    more: dict[str, Any], link: str | None
) -> None:
    payload = _build_warning(**more)
    assert _read(payload, guess_mapping(Messages(firing=payload)).mapping).generator_url == link


def test_a_path_is_no_title_and_the_kind_of_a_problem_distinguishes_it() -> None:
    finding = {"name": "orgs/1/sources/2/findings/cea981dd34", "category": "OPEN_PORT"}
    one = {"finding": {**finding, "resourceName": "//cloud.example/hosts/web/1"}}
    other = {"finding": {**one["finding"], "category": "WEAK_KEY"}}
    mapping = guess_mapping(Messages(firing=one)).mapping
    assert _read(one, mapping).title == "OPEN_PORT"
    assert _read(one, mapping).fingerprint != _read(other, mapping).fingerprint


def test_a_failed_run_starts_the_alert_when_it_ends() -> None:
    times = {"started_at": "2026-11-28T10:00:00Z", "finished_at": "2026-11-28T10:30:00Z"}
    payload = {"project": "shop", "result": "failed", **times}
    alert = _read(payload, guess_mapping(Messages(firing=payload)).mapping)
    assert (alert.started_at, alert.ended_at) == (datetime(2026, 11, 28, 10, 30, tzinfo=UTC), None)


def test_alerts_of_two_environments_are_kept_apart() -> None:
    firing = {"app_name": "shop", "service": "Heartbeat", "environment": "Production"}
    mapping = guess_mapping(Messages(firing={**firing, "message": "It failed."})).mapping
    alerts = [_read({**firing, "environment": each}, mapping) for each in ("Production", "Test")]
    assert len({each.fingerprint for each in alerts}) == 2


@pytest.mark.parametrize(
    "name", ["LongValueAlarmChecker", "SmartFailure", "ALARM_TYPE", "NewErrorOccurred"]
)
def test_the_name_of_a_class_or_a_kind_is_no_state(name: str) -> None:
    guessed = guess_mapping(Messages(firing=_build_warning(event={"type": name})))
    assert guessed.mapping.rules.resolved_when == ()
    assert any("No value shows whether" in each.text for each in guessed.questions)


@pytest.mark.parametrize("state", ["deployment.error", "ALERT_FAILURE", "monitor.down", "alarm"])
def test_a_kind_that_ends_with_a_state_is_a_state(state: str) -> None:
    guessed = guess_mapping(Messages(firing=_build_warning(event={"type": state})))
    assert guessed.mapping.rules.resolved_when[0].path == ("event", "type")


@pytest.mark.parametrize("key", ["alertId", "resolvedAlert.id"])
def test_an_identifier_with_another_key_in_the_recovery_is_found(key: str) -> None:
    alert = {"id": "pve1-101-cpu", "node": "pve1", "message": "CPU is high"}
    firing = {"alert": alert, "source": "tool"}
    recovery = set_value({"event": "resolved"}, tuple(key.split(".")), alert["id"])
    guessed = guess_mapping(Messages(firing=firing, recovery=recovery))
    opened, over = (_read(each, guessed.mapping) for each in (firing, recovery))
    assert (over.fingerprint, opened.ended_at) == (opened.fingerprint, None)
    assert over.ended_at is not None
    assert any(f"the same alert.id or else {key} always" in each.text for each in guessed.questions)
    unrelated = {"event": "resolved", "page": {"id": alert["id"]}}
    guessed = guess_mapping(Messages(firing=firing, recovery=unrelated))
    assert any("No value identifies the alert" in each.text for each in guessed.questions)


@pytest.mark.parametrize("path", ["", "/", "/admin", "/app/", "/index.html", "/#"])
def test_the_home_page_of_a_tool_is_no_link_to_a_problem(path: str) -> None:
    links = {"url": f"https://tool.example{path}", "runbook_url": f"https://tool.example{path}"}
    mapping = guess_mapping(Messages(firing=_build_warning(**links))).mapping
    assert not {AlertField.RUNBOOK, AlertField.SOURCE_URL} & mapping.paths.keys()
    links = {"url": "https://tool.example/app/alerts/5", "runbook_url": "https://wiki.example/5"}
    mapping = guess_mapping(Messages(firing=_build_warning(**links))).mapping
    assert mapping.paths[AlertField.SOURCE_URL] == (("url",),)
    assert mapping.paths[AlertField.RUNBOOK] == (("runbook_url",),)


@pytest.mark.parametrize("time", ["11:25 UTC", "08:58:28 UTC+0200", "2026-11-29 11:25 (GMT+8)"])
def test_a_time_that_cannot_be_read_is_no_start(time: str) -> None:
    firing = _build_warning(time=time)
    mapping = guess_mapping(Messages(firing=firing)).mapping
    assert AlertField.START_TIME not in mapping.paths
    assert _read(firing, mapping).parse_warnings == ()


def test_several_values_are_listed_in_a_sentence() -> None:
    shared = {"rule_id": "cpu", "environment": "test", "state": "firing"}
    alert = _read(
        firing := _build_warning(**shared), guess_mapping(Messages(firing=firing)).mapping
    )
    assert alert.fingerprint_source == "the rule_id, host and environment fields"


def test_the_state_of_an_object_is_preferred_to_the_level_of_an_event() -> None:
    firing = _build_warning(phase="Failed", eventType="Warning")
    recovery = _build_warning(phase="Succeeded", eventType="Normal")
    mapping = guess_mapping(Messages(firing=firing, recovery=recovery)).mapping
    assert _read(recovery, mapping).ended_at is not None
    assert _read(_build_warning(phase="Progressing", eventType="Normal"), mapping).ended_at is None


@pytest.mark.parametrize(
    ("instance", "is_host"),
    [("Sonarr", False), ("Home Assistant", False), ("web-1", True), ("db.example", True)],
)
def test_the_name_of_a_program_is_a_service(*, instance: str, is_host: bool) -> None:
    firing = {"title": "CPU is high", "instanceName": instance}
    alert = _read(firing, guess_mapping(Messages(firing=firing)).mapping)
    assert (list(alert.hosts), alert.service) == (([instance], None) if is_host else ([], instance))


def test_the_identifier_of_one_message_does_not_identify_the_alert() -> None:
    for number in ("8d5b5e5f1c", "message-123", "MSG-123", "<CA1@mail.example>"):
        firing = {"title": "CPU is high", "messageId": number, "host": "web-1"}
        mapping = guess_mapping(Messages(firing=firing)).mapping
        other = firing | {"messageId": f"{number}1"}
        assert _read(other, mapping).fingerprint == _read(firing, mapping).fingerprint


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [("metric", "CPU usage", "Memory usage"), ("cveId", "CVE-2024-3094", "CVE-2024-6387")],
)
def test_two_problems_of_an_object_do_not_share_an_alert(key: str, one: str, other: str) -> None:
    firing = {"text": f"Critical: {one}", "server_name": "db-1", "status": "fired", key: one}
    second = firing | {"text": f"Critical: {other}", key: other}
    recovery = firing | {"text": f"Resolved: {one}", "status": "resolved"}
    messages = Messages(firing=firing, repeat=firing, recovery=recovery)
    mapping = guess_mapping(messages).mapping
    assert _read(second, mapping).fingerprint != _read(firing, mapping).fingerprint
    assert _read(recovery, mapping).fingerprint == _read(firing, mapping).fingerprint


@pytest.mark.parametrize(
    ("seen", "others"),
    [
        ("MEDIUM_SEVERITY", {"HIGH_SEVERITY": Severity.HIGH, "LOW_SEVERITY": Severity.LOW}),
        ("severity_high", {"severity_low": Severity.LOW, "severity_info": Severity.INFO}),
        ("High Severity", {"Low Severity": Severity.LOW, "Critical Severity": Severity.CRITICAL}),
        ("SEV-2", {"SEV-1": Severity.CRITICAL, "SEV-4": Severity.LOW}),
        ("Priority: P2", {"Priority: P4": Severity.LOW}),
    ],
)
def test_other_words_with_the_same_affix_are_known(
    seen: str, others: Mapping[str, Severity]
) -> None:
    mapping = guess_mapping(Messages(firing=_build_warning(severity=seen))).mapping
    for word, severity in others.items():
        alert = _read(_build_warning(severity=word), mapping)
        assert (alert.severity, alert.parse_warnings) == (severity, ()), word


@pytest.mark.parametrize(
    ("message", "identity"),
    [
        (
            {"ruleId": "cpu-rule", "alertName": "HighCpu", "cluster": "eu-1"},
            ("ruleId", "cluster", "alertName"),
        ),
        ({"policyName": "HighCpu", "cluster": "eu-1"}, ("policyName", "cluster")),
    ],
)
def test_the_name_of_a_rule_does_not_hide_that_hosts_may_share_an_alert(
    message: dict[str, str], identity: tuple[str, ...]
) -> None:
    guessed = guess_mapping(Messages(firing={"kind": "update", "state": "failed", **message}))
    (found,) = (each for each in guessed.findings if each.field is AlertField.FINGERPRINT)
    assert found.source == join_words(identity)
    asked = " ".join(each.text for each in guessed.questions)
    assert "No value names the affected host or object." in asked


def test_the_type_of_an_object_and_an_embedded_image_are_not_hosts() -> None:
    image = "data:image/png;base64,iVBORw0KGgo="
    payload = _build_warning(resource="DATASOURCE", host=image, **{"resource-name": "Sales"})
    alert = _read(payload, guess_mapping(Messages(firing=payload)).mapping)
    assert alert.hosts == ("Sales",)


def test_the_interface_of_a_device_is_part_of_the_fingerprint() -> None:
    first, second = (
        {"rule": "link-state", "host": "br-2", "if-name": each, "state": "down"}
        for each in ("ge-0/1", "ge-0/2")
    )
    mapping = guess_mapping(Messages(firing=first)).mapping
    assert _read(first, mapping).fingerprint != _read(second, mapping).fingerprint


def test_the_reason_why_a_build_started_identifies_nothing() -> None:
    build = {"plan_name": "Shop", "status": "Failed", "triggerReason": "Scheduled", "number": 4}
    firing, over = (
        {"build": {**build, **changes}}
        for changes in ({}, {"status": "Successful", "triggerReason": "Changes", "number": 5})
    )
    mapping = guess_mapping(Messages(firing=firing)).mapping
    opened, resolved = (_read(each, mapping) for each in (firing, over))
    assert (opened.title, opened.service, opened.description) == ("Shop: Failed", "Shop", None)
    assert resolved.fingerprint == opened.fingerprint
    assert resolved.ended_at is not None


def test_the_first_name_in_an_array_is_the_service() -> None:
    payload = _build_warning(service=["Network"])
    assert _read(payload, guess_mapping(Messages(firing=payload)).mapping).service == "Network"


def test_an_account_can_be_the_affected_object() -> None:
    actor = {"id": "00u1qw6mqitPHM8AJ0g7", "displayName": "Jane Roe"}
    payload = {"summary": "Account is locked", "session_id": "101FfF-DKQSvCI4", "actor": actor}
    guessed = guess_mapping(Messages(firing=payload))
    (question,) = [each for each in guessed.questions if each.name == AlertField.HOSTS]
    assert [leaf.path for leaf in question.candidates] == [
        ("actor", "id"),
        ("actor", "displayName"),
    ]
    assert ("session_id",) not in guessed.mapping.all_paths


def test_two_rules_of_one_policy_are_two_problems() -> None:
    first, second = (
        {"policy": "run-as-non-root", "rule": each, "resource": {"name": "nginx2"}}
        for each in ("init", "main")
    )
    mapping = guess_mapping(Messages(firing=first)).mapping
    assert _read(first, mapping).fingerprint != _read(second, mapping).fingerprint


def test_the_category_and_the_parameters_of_a_job_do_not_identify_it() -> None:
    job = {"category_title": "General", "event_title": "Export", "hostname": "w1.example.com"}
    firing = {**job, "params": {"db_host": "db1.example.com"}, "code": 1, "description": "Exit 1"}
    over = {**job, "params": {"db_host": "db2.example.com"}, "code": 0, "description": "Success!"}
    mapping = guess_mapping(Messages(firing=firing, recovery=over)).mapping
    opened, resolved = (_read(each, mapping) for each in (firing, over))
    assert opened.title.startswith("Export")
    assert (resolved.fingerprint, opened.ended_at) == (opened.fingerprint, None)
    assert resolved.ended_at is not None
    failed = {**firing, "description": "Export was unsuccessful: 0 rows"}
    assert _read(failed, mapping).ended_at is None


def test_the_creation_of_a_definition_is_not_the_start() -> None:
    payload = _build_warning(alert={"date": 1796025600}, definition={"created": 1434125333})
    mapping = guess_mapping(Messages(firing=payload)).mapping
    assert mapping.paths[AlertField.START_TIME] == (("alert", "date"),)


def test_an_object_that_another_key_identifies_is_the_host() -> None:
    details = {"id": "68f0c2a1b94e", "name": "prod-db-01", "used": 24.6}
    payload = {
        "level": "WARNING",
        "target": {"type": "Server", "id": "68f0c2a1b94e"},
        "data": {"type": "ServerMem", "data": details},
    }
    mapping = guess_mapping(Messages(firing=payload)).mapping
    alert = _read(payload, mapping)
    assert alert.hosts == ("prod-db-01",)
    processor = _read(set_value(payload, ("data", "type"), "ServerCpu"), mapping)
    assert processor.fingerprint != alert.fingerprint


def test_the_number_of_an_event_does_not_identify_the_problem() -> None:
    payload = {"event": {"data": {"risk_event_id": 550, "risk_id": 10, "host": "web-1"}}}
    mapping = guess_mapping(Messages(firing=payload)).mapping
    repeat = set_value(payload, ("event", "data", "risk_event_id"), 557)
    assert _read(repeat, mapping).fingerprint == _read(payload, mapping).fingerprint


def test_a_number_is_offered_if_no_text_can_be_the_title() -> None:
    guessed = guess_mapping(Messages(firing={"id": "4", "online": False}))
    (question,) = [each for each in guessed.questions if each.name == AlertField.TITLE]
    assert [leaf.path for leaf in question.candidates] == [("id",)]
