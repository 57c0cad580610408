"""Proposals for messages whose state is in a sentence, and for titles of several lines."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.parsing.incoming_alert import IncomingAlert
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import MappingRules, ValueJoin
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import guess_mapping
from tests.support.alerts.senders import PAYLOADS

_READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_ENDPOINT = next(each for each in FORMATS if each.has_mapping)
_NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _read(payload: Mapping[str, Any], mapping: FieldMapping) -> IncomingAlert:
    (alert,) = _ENDPOINT.parse(payload, now=_NOW, reading=_READING, mapping=mapping).alerts
    return alert


def _build_warning(text: str) -> dict[str, Any]:
    return {"job_name": "backup", "host": "db-1", "text": text}


@pytest.mark.parametrize(
    ("problem", "recovery", "negated"),
    [
        ("Backup of db-1 failed after 3 s", "Success: backup of db-1 took 9 s", "Unsuccessful: 4"),
        (
            "Backup failed after 3 s",
            "Backup ended with SUCCESS after 9 s",
            "Backup WITHOUT SUCCESS",
        ),
        ("Unresolved: disk 97 %", "Resolved: disk 50 %", "Not resolved: disk 91 %"),
        ("Backup unsuccessful 1", "Successful backup 2 of db-1", "Backup not successful 3"),
    ],
)
def test_a_negated_word_does_not_resolve_the_alert(
    problem: str, recovery: str, negated: str
) -> None:
    messages = Messages(firing=_build_warning(problem), recovery=_build_warning(recovery))
    mapping = guess_mapping(messages).mapping
    assert mapping.rules.resolved_when
    assert _read(_build_warning(recovery), mapping).ended_at is not None
    assert _read(_build_warning(problem), mapping).ended_at is None
    assert _read(_build_warning(negated), mapping).ended_at is None


def test_a_title_is_the_first_line_and_the_rest_is_the_description() -> None:
    stored = json.loads((PAYLOADS / "unknown" / "botkube.json").read_text(encoding="utf-8"))
    mapping = FieldMapping({AlertField.TITLE: (("summary",),)})
    alert = _read(stored["firing"], mapping)
    first = "Error Occurred in Pod: *shop/checkout-6d9f7c5b8-x2x7k* in *prod-eu-1* cluster"
    assert alert.title == first
    assert alert.description is not None
    assert "Back-off restarting failed container" in alert.description
    described = _read({**stored["firing"], "description": "Pod restarts"}, mapping)
    assert described.description == "Pod restarts"
    rules = MappingRules(joins={"title": ValueJoin((("meta", "name"),))})
    joined = _read(stored["firing"], FieldMapping(mapping.paths, rules))
    assert joined.title == f"{first}: checkout-6d9f7c5b8-x2x7k"


def test_the_summary_of_an_event_is_cut_at_its_first_line() -> None:
    about = {"summary": "Disk full\n97 % of /var", "severity": "error", "source": "web-1"}
    event = {"routing_key": "a" * 32, "event_action": "trigger", "payload": about}
    alert = _read(event, FieldMapping())
    assert (alert.title, alert.description) == ("Disk full", "Disk full\n97 % of /var")


_START = "2026-11-28T10:00:00Z"


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ({"created_at": "2019-03-01T08:00:00Z", "timestamp": _START}, "timestamp"),
        ({"created": 1551427200, "time": 1795860000}, "time"),
        ({"started_at": "1970-01-01T00:00:00Z", "timestamp": _START}, "timestamp"),
        ({"started_at": "2019-03-01T08:00:00Z", "updated": _START}, None),
        ({"started_at": "2026-11-25T10:00:00Z", "timestamp": _START}, "started_at"),
        ({"started_at": _START, "expires_at": "2027-11-28T10:00:00Z"}, "started_at"),
        ({"started_at": _START, "next_run": "2028-11-28T10:00:00Z"}, "started_at"),
        ({"started_at": "2019-03-01T08:00:00Z"}, "started_at"),
    ],
)
def test_a_start_is_close_to_the_latest_time_of_the_message(
    times: dict[str, Any], start: str | None
) -> None:
    payload = {**_build_warning("Backup failed"), **times}
    mapping = guess_mapping(Messages(firing=payload)).mapping
    expected = ((start,),) if start else None
    assert mapping.paths.get(AlertField.START_TIME) == expected


def test_an_old_mapped_start_does_not_show_that_a_report_is_late() -> None:
    mapping = FieldMapping({AlertField.START_TIME: (("created",),)})
    for created, is_plausible in (("2019-03-01T08:00:00Z", False), (_START, True)):
        alert = _read({"created": created}, mapping)
        assert alert.started_at.isoformat() == created.replace("Z", "+00:00")
        assert (alert.reported_start is not None) == is_plausible
    # The sender's own start time is trusted.
    assert _read({"start_time": "2019-03-01T08:00:00Z"}, FieldMapping()).reported_start


_PRESS = {"target": {"type": "Server", "id": "a1b2c3d4e5f60718"}, "level": "CRITICAL"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"device": "x", "type": "HostCpu", "state": "CRITICAL"}, {"type": "HostMem"}),
        ({"host": "x", "problem": "cpu", "status": "firing"}, {"problem": "memory"}),
        ({"host": "x", "code": "E17", "level": "critical"}, {"code": "E18"}),
        ({"device": {"name": "x", "id": 4}, "failure_type": "cpu"}, {"failure_type": "memory"}),
        ({"policy": "default", "server": "x", "metric": "cpu"}, {"metric": "memory"}),
        ({"policy_id": 4, "server": "x", "alert_type": "cpu"}, {"alert_type": "memory"}),
        (
            {**_PRESS, "data": {"type": "HostCpu", "data": {"name": "x"}}},
            {"data": {"type": "HostMem", "data": {"name": "x"}}},
        ),
    ],
)
def test_two_problems_of_one_object_do_not_share_an_alert(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    recovery = {**first, "level": "OK", "state": "OK", "status": "resolved"}
    for messages in (Messages(firing=first), Messages(firing=first, recovery=recovery)):
        mapping = guess_mapping(messages).mapping
        fingerprints = {_read(each, mapping).fingerprint for each in (first, {**first, **second})}
        assert len(fingerprints) == 2
        assert _read(recovery, mapping).fingerprint in fingerprints


@pytest.mark.parametrize("name", ["komodo", "ninjaone", "traccar"])
def test_another_problem_of_the_same_device_neither_joins_nor_resolves_the_alert(name: str) -> None:
    stored = json.loads((PAYLOADS / "unknown" / f"{name}.json").read_text(encoding="utf-8"))
    for others in ((), ("recovery",), ("repeat", "recovery")):
        messages = Messages(firing=stored["firing"], **{each: stored[each] for each in others})
        guessed = guess_mapping(messages)
        alert, second = (_read(stored[each], guessed.mapping) for each in ("firing", "second"))
        asked = any(each.name == "fingerprint" for each in guessed.questions)
        assert second.fingerprint != alert.fingerprint or asked
        assert second.ended_at is None
