"""Warnings about stored deliveries, and the mappings that fix them, without a database."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats.base import AlertFormat, ParserSettings
from domain.alerts.formats.registry import FORMATS, get_format
from domain.alerts.integrations.mapping_types import MappingFix
from domain.alerts.integrations.sender_warnings import ParsedDeliveryLog, SenderWarning
from domain.alerts.integrations.stored_reports import StoredBody, StoredMessage
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, AlertField, FieldMapping, parse_mapping
from tests.support.alerts.random_tools import TOOLS, Tool
from tests.support.alerts.senders import PAYLOADS, item, webhook
from tests.support.alerts.tool_messages import MODULES, load_messages

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_HTTP = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _integration(mapping: FieldMapping, kind: AlertFormat, minutes: int | None) -> IntegrationView:
    unset: dict[str, Any] = dict.fromkeys(IntegrationView.__dataclass_fields__)
    given = {"mapping": mapping, "type": kind, "resolve_after_minutes": minutes}
    return IntegrationView(**{**unset, **given})


def _warnings(
    payloads: Sequence[Any],
    mapping: FieldMapping = NO_FIELD_MAPPING,
    *,
    kind: AlertFormat = _HTTP,
    hours: int = 1,
    resolve_after: int | None = None,
    may_map: bool = True,
) -> dict[str, SenderWarning]:
    """Return the warnings for bodies that arrived in this period, by their kind."""
    bodies = [
        StoredBody(
            number,
            _NOW + timedelta(hours=hours * number / max(len(payloads) - 1, 1)),
            kind,
            payload,
            [StoredMessage(firing=item) for item in kind.list_body_items(payload)],  # type: ignore[arg-type]
        )
        for number, payload in enumerate(payloads)
    ]
    log = ParsedDeliveryLog(
        _integration(mapping, kind, resolve_after), bodies, _READING, may_map=may_map
    )
    return {each.kind: each for each in log.list_warnings() if each is not None}


def _read(payload: Mapping[str, Any], fix: MappingFix) -> IncomingAlert:
    mapping = FieldMapping(fix.mapping, fix.rules.rules)
    (alert,) = _HTTP.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


def _message(number: int, *, host: str = "web-1", state: str = "down") -> dict[str, Any]:
    return {
        "messageId": f"7c9e6679-7425-40de-944b-e07fc1f9{number:04}",
        "check": {"name": "Disk usage", "output": f"Disk is {number}% full"},
        "server": host,
        "state": state,
        "sentAt": f"2026-11-29T10:{number % 60:02}:00Z",
    }


_BY_MESSAGE = parse_mapping(
    {
        "title": [["check", "name"]],
        "hosts": [["server"]],
        "fingerprint": [["messageId"]],
        "rules": {"resolved_when": [{"path": ["state"], "operator": "is", "words": ["up"]}]},
    }
)
_BY_CHECK = parse_mapping({**_BY_MESSAGE.stored, "fingerprint": [["check", "name"]]})


def test_repeats_that_open_alerts_are_joined_by_the_fix() -> None:
    stream = [_message(n, host=f"web-{n % 3}") for n in range(12)]

    warning = _warnings(stream, _BY_MESSAGE)["repeats_open_alerts"]

    assert warning.count == 9
    assert "made of the messageId field" in warning.details
    assert warning.fix is not None
    assert (warning.fix.before.opened, warning.fix.after.opened, warning.fix.after.joined) == (
        12,
        3,
        9,
    )
    assert warning.fix.rules.resolved_when[0].words == ("up",)
    first, repeat, other = (_read(_message(n, host=f"web-{n}"), warning.fix) for n in (1, 1, 2))
    assert first.fingerprint == repeat.fingerprint != other.fingerprint


def test_unread_recoveries_become_a_rule() -> None:
    mapping = parse_mapping({"fingerprint": [["server"]], "title": [["check", "name"]]})
    stream = [_message(1), _message(2), _message(3, state="up")]

    warning = _warnings(stream, mapping)["never_resolved"]

    assert "Messages in which state is “up” are not read as recoveries." in warning.details
    assert warning.fix is not None
    assert warning.fix.after.resolved == 1
    # The fingerprint works, so it stays the same.
    assert warning.fix.mapping[AlertField.FINGERPRINT] == (("server",),)
    assert _read(_message(4, state="up"), warning.fix).ended_at is not None
    assert _read(_message(4), warning.fix).ended_at is None


def test_recoveries_with_another_fingerprint_get_one_that_matches() -> None:
    warning = _warnings([_message(1), _message(2, state="up")], _BY_MESSAGE)["never_resolved"]

    assert "Recoveries have another fingerprint than their alerts" in warning.details
    assert warning.fix is not None
    assert (warning.fix.before.unmatched_recoveries, warning.fix.after.resolved) == (1, 1)


def test_senders_without_recoveries_are_found_after_a_day() -> None:
    stream = [_message(n, host=f"web-{n}") for n in range(3)]
    assert not _warnings(stream, _BY_CHECK, hours=23).keys() - {"shared_identity"}
    warning = _warnings(stream, _BY_MESSAGE, hours=25)["never_resolved"]
    assert "No recovery has arrived" in warning.details
    assert warning.fix is None
    assert not _warnings(stream, _BY_MESSAGE, hours=25, resolve_after=60)


def test_hosts_that_share_an_alert_are_separated() -> None:
    stream = [_message(1), _message(2, host="web-2", state="up"), _message(3)]

    warning = _warnings(stream, _BY_CHECK)["shared_identity"]

    assert warning.count == 1
    assert warning.fix is not None
    assert (warning.fix.before.merged_hosts, warning.fix.after.merged_hosts) == (1, 0)
    assert warning.fix.rules.joins["fingerprint"].paths == (("server",),)


@pytest.mark.parametrize(
    "stream",
    [
        # Each alert is resolved before the next one opens.
        [_message(n // 2, state="up" if n % 2 else "down") for n in range(12)],
        # Different hosts, different rules, and one open alert.
        [_message(n, host=f"web-{n}") for n in range(6)],
        [{**_message(n), "check": {"name": f"Check {n}"}} for n in range(6)],
        [_message(1)],
        # Alertmanager's webhooks at the wrong type of integration.
        [json.loads((PAYLOADS / "grafana.json").read_text(encoding="utf-8"))] * 3,
        [{}, [], [1], {"a": {"b": None}}, {"title": ["x"], "hosts": {"a": 1}}],
        [],
    ],
)
def test_other_streams_cause_no_warning(stream: Sequence[Any]) -> None:
    mapping = _BY_MESSAGE if stream and "check" in stream[0] else NO_FIELD_MAPPING
    assert _warnings(stream, mapping) == {}


@pytest.mark.parametrize("module", MODULES)
def test_declared_mappings_of_known_tools_cause_no_warning(module: str) -> None:
    tool = load_messages(module)
    proposal = tool.recognize().proposal
    given = [tool.firing, *[tool.repeat] * 3, *tool.others, tool.recovery]
    bodies = [
        proposal.format.build_sample_body(each) if isinstance(each, dict) else each
        for each in given
        if each is not None
    ]
    assert _warnings(bodies, proposal.mapping, kind=proposal.format) == {}


def test_other_messages_of_a_host_are_not_merged_by_a_fix() -> None:
    other = [{"server": "web-1", "text": text} for text in ("Backup failed", "Login failed")]
    found = _warnings([*map(_message, range(5)), *other], _BY_MESSAGE)
    assert found["repeats_open_alerts"].count == 4
    assert found["repeats_open_alerts"].fix is None
    assert "Choose a fingerprint" in found["repeats_open_alerts"].details


def test_a_fix_that_would_merge_stored_hosts_is_not_proposed() -> None:
    shared = {"alertId": "7731-4c2e"}
    hosts = [{**_message(n, host=f"web-{n}"), **shared} for n in range(2)]
    without_host = [{**_message(n), **shared, "server": None} for n in range(2, 5)]
    found = _warnings([*hosts, *without_host], _BY_MESSAGE)["repeats_open_alerts"]
    assert (found.count, found.fix) == (2, None)


def test_types_and_tiers_without_mappings_have_no_fix() -> None:
    kind = get_format("prometheus")
    labels = {"alertname": "Disk", "instance": "web-1"}
    stream = [
        json.loads(webhook(item("Disk", labels={**labels, "used": str(n)}, fingerprint=str(n))))
        for n in range(5)
    ]
    warning = _warnings(stream, kind=kind, may_map=False)["repeats_open_alerts"]
    assert warning.fix is None
    assert "Remove labels that change" in warning.details
    shared = [
        json.loads(webhook(item("Disk", labels={**labels, "instance": name}, fingerprint="1")))
        for name in ("web-1", "web-2", "web-1")
    ]
    found = _warnings(shared, kind=kind, may_map=False)["shared_identity"]
    assert "Send a label for each host" in found.details
    free = _warnings([_message(n) for n in range(5)], _BY_MESSAGE, may_map=False)
    assert free["repeats_open_alerts"].fix is None
    assert "require the Premium or Ultimate tier" in free["repeats_open_alerts"].details


_STREAMS = st.lists(
    st.tuples(st.sampled_from(["web-1", "web-2", "web-3"]), st.booleans()), min_size=2, max_size=12
)


@pytest.mark.hypothesis
@given(tool=TOOLS, stream=_STREAMS, has_mapping=st.booleans(), has_shared_id=st.booleans())
def test_a_fix_never_makes_two_hosts_share_an_identity(
    tool: Tool, stream: Sequence[tuple[str, bool]], *, has_mapping: bool, has_shared_id: bool
) -> None:
    # An identifier that looks like one of an alert, but belongs to the rule.
    shared = {"alertId": "7731-4c2e"} if has_shared_id else {}
    payloads = [
        {**tool.message(number, host=host, over=over), **shared}
        for number, (host, over) in enumerate(stream)
    ]
    mapping = NO_FIELD_MAPPING
    if has_mapping:  # A fingerprint that changes with each message.
        path = [*tool.wrappers[::-1], tool.notation(("message", "id"))]
        mapping = parse_mapping({"fingerprint": [path]})
    for warning in _warnings(payloads, mapping).values():
        if warning.fix is not None:
            assert warning.fix.after.merged_hosts == 0
            # The last host is not among the stored messages.
            alerts = [
                _read({**tool.message(50 + number, host=host), **shared}, warning.fix)
                for number, host in enumerate(("web-1", "web-2", "db-9"))
            ]
            assert len({alert.fingerprint for alert in alerts}) == 3


@pytest.mark.hypothesis
@given(TOOLS)
def test_unmapped_repeats_and_recoveries_are_warned_about_and_fixed(tool: Tool) -> None:
    payloads = [
        tool.message(number, host=host, over=number > 5)
        for number, host in enumerate(("web-1", "web-2") * 4)
    ]
    found = _warnings(payloads)
    fix = next(each.fix for each in found.values() if each.fix is not None)
    assert (fix.after.opened, fix.after.joined, fix.after.resolved) == (2, 4, 2)


def test_a_fix_for_texts_compares_them_without_the_words_that_change() -> None:
    stream = [
        {"number": number, "site": "Berlin", "text": f"[DOWN] {host} is unreachable"}
        for number, host in enumerate(("shop.example", "wiki.example") * 3)
    ]
    mapping = parse_mapping({"title": [["text"]], "fingerprint": [["number"]]})
    fix = _warnings(stream, mapping)["repeats_open_alerts"].fix
    assert fix is not None
    over = {"site": "Berlin", "text": "[UP] shop.example is reachable again"}
    assert _read(over, fix).fingerprint == _read(stream[0], fix).fingerprint
    assert _read(stream[1], fix).fingerprint != _read(stream[0], fix).fingerprint
