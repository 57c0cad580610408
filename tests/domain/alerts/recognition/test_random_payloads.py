"""Proposals for random payloads, whose keys have other names, notations and depths."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.parsing.incoming_alert import IncomingAlert, Severity
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping
from tests.support.alerts.proposals import list_doubts
from tests.support.alerts.random_tools import TOOLS, Tool

pytestmark = pytest.mark.hypothesis

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _read(payload: Mapping[str, Any], guessed: GuessedMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=guessed.mapping).alerts
    return alert


@given(TOOLS)
def test_the_recovery_resolves_the_alert_and_a_repeat_joins_it(tool: Tool) -> None:
    firing, recovery = tool.message(1), tool.message(3, over=True)
    guessed = guess_mapping(Messages(firing=firing, recovery=recovery))
    alert = _read(firing, guessed)
    assert alert.ended_at is None
    assert alert.title in {"Disk is almost full", "disk-usage", "disk-usage: web-1"}
    repeat = _read(tool.message(2), guessed)
    assert (repeat.fingerprint, repeat.ended_at) == (alert.fingerprint, None)
    over = _read(recovery, guessed)
    assert over.fingerprint == alert.fingerprint
    assert over.ended_at is not None


@given(TOOLS)
def test_two_hosts_never_share_an_alert_without_a_question(tool: Tool) -> None:
    for messages in (
        Messages(firing=tool.message(1)),
        Messages(firing=tool.message(1), repeat=tool.message(2)),
        Messages(firing=tool.message(1), recovery=tool.message(2, over=True)),
    ):
        guessed = guess_mapping(messages)
        one, other = (_read(tool.message(4, host=host), guessed) for host in ("web-1", "web-2"))
        assert one.fingerprint != other.fingerprint or list_doubts(guessed)


@given(TOOLS)
def test_a_recovery_never_opens_a_critical_alert_without_a_question(tool: Tool) -> None:
    guessed = guess_mapping(Messages(firing=tool.message(1)))
    over = _read(tool.message(2, over=True), guessed)
    is_harmless = over.ended_at is not None or over.severity is Severity.INFO
    assert is_harmless or list_doubts(guessed)
