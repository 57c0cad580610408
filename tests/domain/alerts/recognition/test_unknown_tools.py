"""Proposals for the messages of tools, as if the product did not know them by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.parsing.incoming_alert import IncomingAlert, Severity
from domain.alerts.parsing.payload_paths import format_path
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping
from tests.support.alerts.proposals import list_doubts
from tests.support.alerts.senders import PAYLOADS

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)

#: Pairs of messages: title and severity of the problem, hosts, and whether the tool sends a
#: recovery that resolves the alert.
_PAIRS: Mapping[str, tuple[str, Severity, tuple[str, ...], bool]] = {
    "checkmk_script": ("CheckMK server1 - UP -> DOWN", Severity.CRITICAL, ("server1",), True),
    "elastalert_http_post": ("oom: web-1", Severity.CRITICAL, ("web-1",), False),
    "gatus_gitlab": (
        "alert(gatus): core/website",
        Severity.CRITICAL,
        ("https://twin.sh/health",),
        True,
    ),
    "k8s_event_exporter": (
        "Back-off restarting failed container",
        Severity.LOW,
        ("node-3",),
        False,
    ),
    "kapacitor": ("cpu:nil is CRITICAL", Severity.CRITICAL, ("wp",), True),
    "netdata_alert": (
        "web-1 needs attention, system.cpu, 10min_cpu_usage = 97.3%",
        Severity.LOW,
        (),
        True,
    ),
    "newrelic_workflow": (
        "zulip_app query result is > 1.0 for 1 minutes on 'Zulip Server Low Storage'",
        Severity.CRITICAL,
        ("zulip_app",),
        True,
    ),
    "opsgenie_webhook": ("another alert: Server", Severity.MEDIUM, ("Server",), True),
    "pagerduty_webhook_v3": ("Test Incident 3", Severity.HIGH, (), True),
    "sensu_go": ("check-cpu: server1", Severity.CRITICAL, ("server1",), True),
    "splunk_webhook": ("Mongo errors", Severity.CRITICAL, (), False),
    "uptimerobot": (
        "Web Server: server1.example.com",
        Severity.CRITICAL,
        ("server1.example.com",),
        True,
    ),
}


#: First words of the questions that remain with all messages, and the first value that fits, if
#: any. Other pairs leave no question.
_OPEN_QUESTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "elastalert_http_post": (
        ("Every alert of this tool is critical", ""),
        ("No value shows whether the alert is over.", ""),
        ("Do messages with the same", '["host.name"]'),
    ),
    "k8s_event_exporter": (
        ("How severe is “Warning”?", ""),
        ("Is the alert over if type is “ok”,", ""),
    ),
    "netdata_alert": (
        ("How severe is “warning”?", ""),
        ("No value is clearly the affected host or service.", "chart"),
    ),
    "pagerduty_webhook_v3": (
        ("No value is clearly the affected host or service.", "event.agent.id"),
    ),
    "sensu_go": (("Every alert of this tool is critical", ""),),
    "splunk_webhook": (
        ("Every alert of this tool is critical", ""),
        ("No value shows whether the alert is over.", ""),
    ),
}


@dataclass(frozen=True)
class _Pair:
    """The messages of an alert of one tool."""

    firing: Mapping[str, Any]
    repeat: Mapping[str, Any] | None
    recovery: Mapping[str, Any] | None

    def guess(self, *names: str) -> GuessedMapping:
        """Return the proposal for the first message and the named others."""
        return guess_mapping(
            Messages(firing=self.firing, **{name: getattr(self, name) for name in names})
        )


def _load_pair(path: Path) -> _Pair:
    stored = json.loads(path.read_text(encoding="utf-8"))
    return _Pair(*(stored[name] for name in ("firing", "repeat", "recovery")))


def _read(payload: Mapping[str, Any], guessed: GuessedMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=guessed.mapping).alerts
    return alert


@pytest.mark.parametrize("name", _PAIRS)
def test_three_messages_are_read_as_one_alert_that_opens_and_resolves(name: str) -> None:
    pair = _load_pair(PAYLOADS / "pairs" / f"{name}.json")
    title, severity, hosts, has_recovery = _PAIRS[name]
    guessed = pair.guess("repeat", "recovery")
    alert = _read(pair.firing, guessed)
    assert (alert.title, alert.severity, alert.hosts) == (title, severity, hosts)
    assert alert.ended_at is None
    assert pair.repeat is not None
    repeat = _read(pair.repeat, guessed)
    assert (repeat.fingerprint, repeat.ended_at) == (alert.fingerprint, None)
    asked = _OPEN_QUESTIONS.get(name, ())
    assert len(guessed.questions) == len(asked)
    for question, (text, candidate) in zip(guessed.questions, asked, strict=True):
        assert question.text.startswith(text)
        candidates = [format_path(leaf.path) for leaf in question.candidates]
        assert candidates[:1] == ([candidate] if candidate else [])
    assert (pair.recovery is not None) == has_recovery
    if pair.recovery is None:
        return
    recovery = _read(pair.recovery, guessed)
    assert recovery.fingerprint == alert.fingerprint
    assert recovery.ended_at is not None


@pytest.mark.parametrize("name", _PAIRS)
def test_one_message_is_read_correctly_or_a_question_is_asked(name: str) -> None:
    pair = _load_pair(PAYLOADS / "pairs" / f"{name}.json")
    guessed = pair.guess()
    alert = _read(pair.firing, guessed)
    assert (alert.title, alert.ended_at) == (_PAIRS[name][0], None)
    assert pair.repeat is not None
    assert _read(pair.repeat, guessed).fingerprint == alert.fingerprint
    if pair.recovery is None:
        return
    recovery = _read(pair.recovery, guessed)
    is_right = recovery.fingerprint == alert.fingerprint and recovery.ended_at is not None
    assert is_right or list_doubts(guessed)


def test_a_recovery_without_a_common_value_is_explained() -> None:
    pair = _load_pair(PAYLOADS / "pairs" / "gatus_custom_readme.json")
    guessed = pair.guess("repeat", "recovery")
    assert guessed.mapping.rules.resolved_when == ()
    assert "No value identifies the alert" in " ".join(each.text for each in guessed.questions)


#: Known tools whose messages are ambiguous without knowing the tool, with the reason.
_AMBIGUOUS: Mapping[str, str] = {
    "alertmanager": "a message contains a list of alerts",
    "grafana": "a message contains a list of alerts",
    "prometheus": "the end time is in the future while the alert is firing",
    "aws_health": "one event affects several accounts",
    "github_actions": "a fork has branches with the same names",
    "robusta": "clusters send the same fingerprint",
}


@pytest.mark.parametrize(
    "path",
    [path for name in ("messages", "unknown") for path in sorted((PAYLOADS / name).glob("*.json"))],
    ids=lambda path: str(path.stem),
)
def test_messages_are_read_correctly_without_the_name_of_their_tool_or_asked_about(
    path: Path,
) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    first, repeat, recovery = map(_first, (stored["firing"], stored["repeat"], stored["recovery"]))
    assert first is not None
    given = _Pair(first, repeat, recovery)
    guessed = given.guess("repeat", "recovery")
    alert = _read(first, guessed)
    assert alert.ended_at is None
    if path.stem in _AMBIGUOUS:
        return
    other = _first(stored.get("other"))
    right = [
        repeat is None or _read(repeat, guessed).fingerprint == alert.fingerprint,
        recovery is None or _is_resolved(recovery, alert, guessed),
        other is None or _read(other, guessed).fingerprint != alert.fingerprint,
    ]
    assert all(right) or list_doubts(guessed)


#: Tools whose files contain the expected values.
_EXPECTED = [
    path
    for path in sorted((PAYLOADS / "unknown").glob("*.json"))
    if '"expected": {' in path.read_text(encoding="utf-8")
]
#: Words of questions that tell the user about each fault.
_WARNINGS: Mapping[str, tuple[str, ...]] = {
    "title": ("title",),
    "severity": ("severe", "title"),
    "object": ("host", "object", "title", "identifies"),
    "hosts": ("host", "object"),
    "repeat": ("same problem", "identifies"),
    "other": ("same problem", "other problems", "affected host", "object", "identifies"),
    "second": ("same problem",),
    "link": (),
    "recovery": ("over", "identifies", "same problem"),
}


@pytest.mark.parametrize("names", [(), ("recovery",), ("repeat", "recovery")], ids="+".join)
@pytest.mark.parametrize("path", _EXPECTED, ids=lambda path: str(path.stem))
def test_messages_are_read_as_expected_or_a_question_is_asked_about_the_fault(
    path: Path, names: tuple[str, ...]
) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    given = _Pair(stored["firing"], stored["repeat"], stored["recovery"])
    guessed = given.guess(*names)
    asked = " ".join(each.text for each in guessed.questions).casefold()
    faults = _list_faults(stored, given, guessed)
    assert [each for each in faults if not any(word in asked for word in _WARNINGS[each])] == []


def _list_faults(stored: Mapping[str, Any], given: _Pair, guessed: GuessedMapping) -> list[str]:
    """Return the names of wrong values, and of messages that belong to the wrong alert.

    `other` is about another object, and `second` about another problem of the same object.
    """
    alert, expected, other = _read(given.firing, guessed), stored["expected"], stored["other"]
    second = stored.get("second")
    text = " ".join([alert.title, alert.service or "", *alert.hosts]).casefold()
    repeat = _read(given.repeat, guessed) if given.repeat else alert
    found = {
        "title": any(each in alert.title.casefold() for each in _split(expected["title"])),
        "severity": not expected["severity"] or alert.severity in expected["severity"],
        "object": not expected["names"]
        or any(each.casefold() in text for each in expected["names"]),
        "hosts": list(alert.hosts) == expected.get("hosts", list(alert.hosts)),
        "link": (alert.runbook or alert.generator_url or "").startswith(expected.get("link", "")),
        "repeat": (repeat.fingerprint, repeat.ended_at) == (alert.fingerprint, None),
        "other": other is None or _read(other, guessed).fingerprint != alert.fingerprint,
        "second": second is None or _read(second, guessed).fingerprint != alert.fingerprint,
        "recovery": alert.ended_at is None
        and (given.recovery is None or _is_resolved(given.recovery, alert, guessed)),
    }
    return [name for name, is_right in found.items() if not is_right]


def _split(text: str) -> list[str]:
    return text.casefold().split("|")


def _first(message: Any) -> Mapping[str, Any] | None:
    first = message[0] if isinstance(message, list) and message else message
    return first if isinstance(first, dict) else None


def _is_resolved(
    recovery: Mapping[str, Any], alert: IncomingAlert, guessed: GuessedMapping
) -> bool:
    read = _read(recovery, guessed)
    return read.ended_at is not None and read.fingerprint == alert.fingerprint
