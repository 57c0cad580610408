"""Proposals for random payloads, whose keys have other names, notations and depths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.reading.incoming import IncomingAlert, Severity
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping

pytestmark = pytest.mark.hypothesis

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)

_STATES = (
    ("open", "closed"),
    ("alerting", "ok"),
    ("down", "up"),
    ("failing", "passing"),
    ("problem", "recovery"),
    ("triggered", "resolved"),
    ("active", "inactive"),
    ("red", "green"),
    ("firing", "resolved"),
    ("unhealthy", "healthy"),
)
#: Notations of keys, from their words.
_NOTATIONS: Sequence[Callable[[Sequence[str]], str]] = (
    "_".join,
    "-".join,
    ".".join,
    " ".join,
    lambda words: words[0] + "".join(map(str.capitalize, words[1:])),
    lambda words: "".join(map(str.capitalize, words)),
    lambda words: "_".join(words).upper(),
)
_WRAPPERS = ("data", "payload", "body", "details", "metadata")


@dataclass(frozen=True)
class _Tool:
    """An imaginary tool, which renders the messages of an alert."""

    notation: Callable[[Sequence[str]], str]
    wrappers: Sequence[str]
    host_key: Sequence[str]
    rule_key: Sequence[str]
    title_key: Sequence[str]
    state_key: Sequence[str]
    states: tuple[str, str]
    is_upper: bool

    def message(self, number: int, *, host: str = "web-1", over: bool = False) -> dict[str, Any]:
        """Return a message. Its number makes its identifier, times and counters unique."""
        state = self.states[over]
        values: Mapping[Sequence[str], object] = {
            ("message", "id"): f"7c9e6679-7425-40de-944b-e07fc1f9{number:04}",
            self.title_key: "Disk is almost full",
            self.rule_key: "disk-usage",
            self.host_key: host,
            self.state_key: state.upper() if self.is_upper else state,
            ("sent", "at"): f"2026-11-29T10:{number:02}:00Z",
            ("duration", "seconds"): 60 * number,
            ("attempt", "count"): number,
        }
        payload: dict[str, Any] = {self.notation(key): values[key] for key in values}
        for wrapper in self.wrappers:
            payload = {wrapper: payload}
        return payload


_TOOLS = st.builds(
    _Tool,
    notation=st.sampled_from(_NOTATIONS),
    wrappers=st.lists(st.sampled_from(_WRAPPERS), max_size=2, unique=True),
    host_key=st.sampled_from([("host",), ("host", "name"), ("instance",), ("server", "name")]),
    rule_key=st.sampled_from([("rule", "name"), ("check", "id"), ("monitor", "name")]),
    title_key=st.sampled_from([("title",), ("alert", "title"), ("summary",), ("message",)]),
    state_key=st.sampled_from([("status",), ("alert", "state"), ("current", "status")]),
    states=st.sampled_from(_STATES),
    is_upper=st.booleans(),
)


def _read(payload: Mapping[str, Any], guessed: GuessedMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=guessed.mapping).alerts
    return alert


@given(_TOOLS)
def test_the_recovery_resolves_the_alert_and_a_repeat_joins_it(tool: _Tool) -> None:
    firing, recovery = tool.message(1), tool.message(3, over=True)
    guessed = guess_mapping(Messages(firing=firing, recovery=recovery))
    alert = _read(firing, guessed)
    assert alert.ended_at is None
    assert alert.title in {"Disk is almost full", "disk-usage"}
    repeat = _read(tool.message(2), guessed)
    assert (repeat.fingerprint, repeat.ended_at) == (alert.fingerprint, None)
    over = _read(recovery, guessed)
    assert over.fingerprint == alert.fingerprint
    assert over.ended_at is not None


@given(_TOOLS)
def test_two_hosts_never_share_an_alert_without_a_question(tool: _Tool) -> None:
    for messages in (
        Messages(firing=tool.message(1)),
        Messages(firing=tool.message(1), repeat=tool.message(2)),
        Messages(firing=tool.message(1), recovery=tool.message(2, over=True)),
    ):
        guessed = guess_mapping(messages)
        one, other = (_read(tool.message(4, host=host), guessed) for host in ("web-1", "web-2"))
        assert one.fingerprint != other.fingerprint or guessed.questions


@given(_TOOLS)
def test_a_recovery_never_opens_a_critical_alert_without_a_question(tool: _Tool) -> None:
    guessed = guess_mapping(Messages(firing=tool.message(1)))
    over = _read(tool.message(2, over=True), guessed)
    is_harmless = over.ended_at is not None or over.severity is Severity.INFO
    assert is_harmless or guessed.questions
