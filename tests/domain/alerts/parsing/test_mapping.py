from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.alerts.formats import http_endpoint
from domain.alerts.parsing import mapping
from domain.alerts.parsing.incoming_alert import AlertState, IncomingAlert, Severity
from domain.alerts.parsing.json_body import parse_body_object
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, parse_path
from domain.core.errors import InvalidError
from tests.domain.alerts.parsing.strategies import NOW, field_values, json_values, posted
from tests.support.wire.garbage import bounded

SAMPLE = {
    "event": {"name": "Disk full", "level": "High", "labels": {"app.kind": "db", "zone": "a"}},
    "machines": [{"fqdn": "db-1"}, {"fqdn": "db-2"}],
    "recovered_at": None,
    "id": 17,
    "is_test": False,
}


def read(body: dict[str, Any], **paths: tuple[PayloadPath, ...]) -> IncomingAlert:
    chosen = FieldMapping({AlertField(name): path for name, path in paths.items()})
    parsed = http_endpoint.parse_items([body], now=NOW, automatic_fingerprint=True, mapping=chosen)
    return parsed.alerts[0]


@pytest.mark.spec("I18")
def test_each_field_is_read_from_its_mapped_key() -> None:
    alert = read(
        {**SAMPLE, "title": "not this one"},
        title=(("event", "name"),),
        severity=(("event", "level"),),
        service=(("event", "labels", "app.kind"),),
        hosts=(("machines", 1, "fqdn"),),
        fingerprint=(("id",),),
    )
    assert (alert.title, alert.severity, alert.service) == ("Disk full", Severity.HIGH, "db")
    assert alert.hosts == ("db-2",)
    assert alert.fingerprint_source == "the id field"


@pytest.mark.spec("I18", "I5")
def test_the_end_is_read_from_its_mapped_key() -> None:
    ended = "2026-11-21T08:00:00Z"
    resolved = read({**SAMPLE, "recovered_at": ended}, end_time=(("recovered_at",),))
    assert resolved.state is AlertState.RECOVERY
    assert resolved.ended_at is not None
    assert resolved.ended_at.isoformat() == "2026-11-21T08:00:00+00:00"
    assert read(SAMPLE, end_time=(("recovered_at",),)).state is AlertState.FIRING


@pytest.mark.spec("I18")
def test_a_mapped_field_is_not_read_from_the_key_with_its_name() -> None:
    alert = read({"end_time": "2026-11-21T08:00:00Z"}, end_time=(("recovered_at",),))
    assert alert.state is AlertState.FIRING


def test_the_second_path_is_used_if_the_first_has_no_value() -> None:
    choices = (("summary",), ("event", "name"))
    assert read(SAMPLE, title=choices).title == "Disk full"
    assert read({**SAMPLE, "summary": "Full"}, title=choices).title == "Full"
    assert read({}, title=choices).title == "New: Alert"


@pytest.mark.spec("I9", "I18")
def test_mapped_times_and_hosts_are_no_part_of_the_fingerprint() -> None:
    chosen = {"end_time": (("recovered_at",),), "hosts": (("machines", 0, "fqdn"),)}
    later = {
        **SAMPLE,
        "recovered_at": "2026-11-21T08:00:00Z",
        "machines": [{"fqdn": "db-9"}, {"fqdn": "db-2"}],
        "start_time": "now",
    }
    assert read(later, **chosen).fingerprint == read(SAMPLE, **chosen).fingerprint
    other = {**SAMPLE, "machines": [{"fqdn": "db-1"}, {"fqdn": "db-9"}]}
    assert read(other, **chosen).fingerprint != read(SAMPLE, **chosen).fingerprint
    assert read(SAMPLE, **chosen).fingerprint_source == (
        "the whole payload without start_time, recovered_at, machines[0].fqdn"
    )


def test_parse_warnings_name_the_key_that_was_read() -> None:
    alert = read({"event": {"end": "soon"}}, end_time=(("event", "end"),))
    assert alert.parse_warnings == ("event.end could not be read: “soon”, so it is ignored.",)


def test_a_sample_lists_its_values_with_paths() -> None:
    shown = {
        value.label: (value.json_type, value.example)
        for value in mapping.list_sample_values(SAMPLE)
    }
    assert shown == {
        "event.name": ("string", "“Disk full”"),
        "event.level": ("string", "“High”"),
        'event.labels["app.kind"]': ("string", "“db”"),
        "event.labels.zone": ("string", "“a”"),
        "machines": ("array", '“[{"fqdn":"db-1"},{"fqdn":"db-2"}]”'),
        "machines[0].fqdn": ("string", "“db-1”"),
        "machines[1].fqdn": ("string", "“db-2”"),
        "recovered_at": ("null", "“null”"),
        "id": ("number", "“17”"),
        "is_test": ("boolean", "“false”"),
    }


@pytest.mark.long
@bounded(30)
@given(st.dictionaries(st.text(), json_values))
def test_every_path_of_a_sample_leads_to_its_value(sample: dict[str, Any]) -> None:
    payload = parse_body_object(posted(sample), nesting_limit=100)
    for value in mapping.list_sample_values(payload):
        path = parse_path(value.form_value)
        assert path == value.path
        assert value.json_type != "null" or find_value(payload, path) is None
        assert value.label


@pytest.mark.long
@bounded(30)
@given(st.dictionaries(st.text(), json_values), field_values)
def test_any_path_in_any_payload_results_in_an_alert(payload: dict[str, Any], value: Any) -> None:
    body = parse_body_object(posted({**payload, "a": [value]}), nesting_limit=100)
    for sample in mapping.list_sample_values(body)[-20:]:
        for target in AlertField:
            read(dict(body), **{target.value: (sample.path,)})


def test_a_mapping_is_stored_and_loaded() -> None:
    chosen = FieldMapping(
        {AlertField.TITLE: (("a.b", 0, "c"), ("d",)), AlertField.HOSTS: (("e",),)}
    )
    stored = chosen.stored
    assert stored == {"title": [["a.b", 0, "c"], ["d"]], "hosts": [["e"]]}
    assert mapping.parse_mapping(stored) == chosen


@pytest.mark.parametrize(
    "stored",
    [
        [],
        None,
        {"colour": [["a"]]},
        {"title": []},
        {"title": [["a"], ["b"], ["c"]]},
        {"title": "a"},
        {"title": [[]]},
        {"title": [[-1]]},
        {"title": [[True]]},
        {"title": [[1.5]]},
        {"title": [["a"] * 101]},
    ],
)
def test_invalid_mappings_are_rejected(stored: Any) -> None:
    with pytest.raises(InvalidError):
        mapping.parse_mapping(stored)


@pytest.mark.parametrize("text", ["", "a", "{", "[" * 100_000, '"a"', "[]", "[null]", "[[1]]"])
def test_invalid_paths_are_rejected(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_path(text)
