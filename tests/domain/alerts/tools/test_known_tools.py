"""Messages of known tools: each opens an alert, which a repeat joins and a recovery resolves."""

from importlib import import_module

import pytest

from domain.alerts.formats.registry import FORMATS
from tests.support.alerts.tool_messages import MODULES, load_messages

_of_each_tool = pytest.mark.parametrize("module", MODULES)


def test_every_tool_has_messages() -> None:
    declared = sorted(tool.name for each in FORMATS for tool in each.list_tools())
    assert sorted(load_messages(module).tool for module in MODULES) == declared


@_of_each_tool
def test_a_hint_says_that_the_key_is_in_the_url_if_the_tool_uses_it_there(module: str) -> None:
    tool = import_module(f"domain.alerts.tools.{module}").TOOL
    assert tool.uses_key_in_url == ("key in the URL" in tool.hint)


@_of_each_tool
def test_a_tool_is_recognized_by_name(module: str) -> None:
    messages = load_messages(module)
    assert messages.tool == import_module(f"domain.alerts.tools.{module}").TOOL.name
    found = messages.recognize()
    assert found.proposal.tool == messages.tool
    assert messages.sources
    assert messages.recognize_array().proposal == found.proposal


@_of_each_tool
def test_the_first_message_opens_an_alert(module: str) -> None:
    messages, expected = load_messages(module), load_messages(module).expected
    alert = messages.read_one(messages.firing)
    read = {"title": alert.title, "severity": alert.severity, "hosts": list(alert.hosts)}
    assert read == {name: expected[name] for name in read}
    assert (alert.ended_at, alert.parse_warnings) == (None, ())


@_of_each_tool
def test_an_array_is_read_like_its_message(module: str) -> None:
    messages = load_messages(module)
    if not messages.recognize().proposal.mapping.reads_fields:
        return  # Only mapped tools post one alert per object.
    assert messages.read(messages.array) == messages.read(messages.firing)


@_of_each_tool
def test_a_repeat_joins_the_alert(module: str) -> None:
    messages = load_messages(module)
    found = messages.recognize().preview.repeat
    assert ("joins" if found and found.joins else None) == messages.expected["repeat"]
    if messages.repeat is not None:
        repeat = messages.read_one(messages.repeat)
        assert (repeat.ended_at, repeat.parse_warnings) == (None, ())


@_of_each_tool
def test_a_recovery_resolves_the_alert_or_the_hint_explains_its_absence(module: str) -> None:
    messages = load_messages(module)
    found = messages.recognize()
    is_resolved = (recovery := found.preview.recovery) is not None and recovery.resolves
    assert ("resolves" if is_resolved else None) == messages.expected["recovery"]
    assert found.preview.resolves_seldom is None
    assert (found.preview.never_resolves is None) == is_resolved
    assert is_resolved or "resolve" in found.proposal.hint


@_of_each_tool
def test_problems_of_other_objects_open_other_alerts(module: str) -> None:
    messages = load_messages(module)
    found = [messages.read_one(each) for each in (messages.firing, *messages.others)]
    assert {each.ended_at for each in found} == {None}
    assert len({each.fingerprint for each in found}) == len(found)


@_of_each_tool
def test_harmless_messages_neither_open_nor_resolve_an_alert(module: str) -> None:
    messages = load_messages(module)
    first = messages.read_one(messages.firing)
    recovery = [] if messages.expected["recovery"] else [messages.recovery]
    for message in filter(None, (*messages.harmless, *recovery)):
        for alert in messages.read(message):
            assert alert.ended_at is not None
            assert alert.fingerprint != first.fingerprint
