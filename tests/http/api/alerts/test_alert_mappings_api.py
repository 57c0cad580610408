"""Tests of custom mappings in the API: previews, changes and their effect on deliveries."""

from typing import Any

import pytest

from domain.alerts.parsing.incoming_alert import Severity
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.alerts.tool_messages import MODULES, load_messages
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

SAMPLE: dict[str, Any] = {
    "event": {"name": "Disk full", "level": "High", "text": ""},
    "machines": [{"fqdn": "db-1"}, {"fqdn": "db-2"}],
    "recovered_at": None,
    "id": 17,
}
MAPPING: dict[str, list[list[str | int]]] = {
    "title": [["event", "name"]],
    "severity": [["event", "level"]],
    "description": [["event", "text"], ["event", "name"]],
    "hosts": [["machines", 0, "fqdn"]],
    "end_time": [["recovered_at"]],
    "fingerprint": [["id"]],
}

NOTHING: dict[str, Any] = {
    "sample": None,
    "sample_repeat": None,
    "sample_recovery": None,
    "mapping": {},
    "rules": {
        "severity_words": {},
        "resolved_when": [],
        "is_guess": False,
        "confirmed": [],
        "dropped_when": [],
        "joins": {},
        "ignored_words": [],
    },
    "never_resolves": None,
    "resolves_seldom": None,
    "values": [],
}


def script(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    at = f"alert_management_integrations/{endpoint.id}/mapping"
    return script_of(gatebell, endpoint.project, at)


@pytest.mark.both_databases
@pytest.mark.spec("H8", "I18")
def test_a_mapping_is_saved_with_its_sample_and_applied(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script(gatebell, endpoint)
    before = worker.get()
    revision = before.pop("revision")
    assert before == NOTHING

    saved = worker.put(sample=SAMPLE, mapping=MAPPING)

    assert saved.status_code == 200, saved.text
    assert saved.json() == worker.get()
    assert saved.json()["mapping"] == MAPPING
    value = next(each for each in saved.json()["values"] if each["path"] == ["event", "level"])
    assert value == {
        "path": ["event", "level"],
        "label": "event.level",
        "type": "string",
        "example": "“High”",
        "message": "sample",
    }
    endpoint.post_json(SAMPLE)
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.description, alert.hosts) == ("Disk full", "Disk full", "db-1")
    endpoint.post_json({**SAMPLE, "recovered_at": "2026-11-22T08:00:00Z"})
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "resolved"

    assert worker.send("DELETE").status_code == 204
    assert worker.get() == {**NOTHING, "revision": revision}
    endpoint.post_json(SAMPLE)
    assert list_stored_alerts(gatebell, endpoint.project)[-1].title == "New: Alert"


@pytest.mark.both_databases
@pytest.mark.spec("H8")
def test_a_preview_shows_the_result_of_a_mapping_and_saves_nothing(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json(SAMPLE)
    worker = script(gatebell, endpoint)

    seen = worker.post("/preview", sample=SAMPLE, mapping=MAPPING).json()

    assert (seen["alert"]["title"], seen["alert"]["severity"]) == ("Disk full", "high")
    assert seen["alert"]["fields"]["hosts"] == "db-1"
    assert not seen["alert"]["is_over"]
    (compared,) = seen["deliveries"]
    assert seen["changed"] == 1
    assert (compared["present"]["title"], compared["proposed"]["title"]) == (
        "New: Alert",
        "Disk full",
    )
    assert ["machines", 1, "fqdn"] in [each["path"] for each in seen["values"]]
    assert worker.get()["sample"] is None


def test_a_preview_warns_about_recoveries_that_must_repeat_most_values(
    gatebell: LiveGatebell,
) -> None:
    worker = script(gatebell, connect(gatebell))
    rules = {"resolved_when": [{"path": ["event", "level"], "words": ["ok"]}]}
    mapping = {"title": MAPPING["title"]}

    seen = worker.post("/preview", sample=SAMPLE, mapping=mapping, rules=rules).json()

    assert seen["never_resolves"] is None
    assert "No fingerprint is mapped" in seen["resolves_seldom"]
    assert worker.post("/preview", sample=SAMPLE, mapping=MAPPING).json()["resolves_seldom"] is None


@pytest.mark.spec("H8")
def test_each_invalid_field_of_a_mapping_is_named(gatebell: LiveGatebell) -> None:
    worker = script(gatebell, connect(gatebell))
    wrong: dict[str, Any] = {
        "title": [["event", "nothing"]],
        "severity": [["machines", 2, "fqdn"], ["event", "level"]],
        "hosts": [["machines", 0]],
    }
    refused = worker.put(sample=SAMPLE, mapping=wrong)
    assert refused.status_code == 400
    problems = {each["field"]: each["message"] for each in refused.json()["errors"]}
    assert set(problems) == {"mapping.title", "mapping.severity", "mapping.hosts"}
    assert "event.nothing" in problems["mapping.title"]
    assert "machines[2].fqdn" in problems["mapping.severity"]
    for given, words in (
        ({"mapping": MAPPING}, "`sample` is missing"),
        ({"sample": SAMPLE, "mapping": {"colour": [["id"]]}}, "must be one of title"),
        ({"sample": SAMPLE, "mapping": {"title": []}}, "`mapping.title` has too few items"),
        ({"sample": SAMPLE, "mapping": {"title": [[]]}}, "has too few items"),
        ({"sample": SAMPLE, "mapping": {"title": [["id"]] * 3}}, "has too many items"),
        ({"sample": SAMPLE, "mapping": {"title": [[None]]}}, "mapping.title"),
        ({"sample": SAMPLE, "mapping": "x"}, "`mapping` must be an object"),
        ({"sample": "{", "mapping": {}}, "not JSON"),
        ({"sample": "[1]", "mapping": {}}, "is an array"),
        ({"sample": {"x": "y" * 70_000}, "mapping": {}}, "at most 64 KiB"),
    ):
        for answer in (worker.put(**given), worker.post("/preview", **given)):
            assert answer.status_code == 400, given
            assert words in answer.json().get("error", answer.text), given
    assert worker.get()["sample"] is None


@pytest.mark.spec("H8")
def test_a_new_sample_resets_the_mapping(gatebell: LiveGatebell) -> None:
    worker = script(gatebell, connect(gatebell))
    worker.put(sample=SAMPLE, mapping=MAPPING)
    text = '{"name": "x", "big": 123456789012345678901234567890}'
    assert worker.put(sample=text).json()["mapping"] == {}
    assert worker.get()["sample"] == text


def test_an_integration_type_without_mappings_is_rejected(gatebell: LiveGatebell) -> None:
    worker = script(gatebell, connect(gatebell, kind="prometheus"))
    answer = worker.put(sample=SAMPLE, mapping={})
    assert answer.status_code == 404
    assert "type http" in answer.json()["message"]


def test_rules_translate_words_resolve_join_and_drop(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script(gatebell, endpoint)
    sample = {"host": "db-1", "check": "disk", "level": "warning", "state": "down", "kind": "check"}
    rules = {
        "severity_words": {"Warning": "low"},
        "resolved_when": [{"path": ["state"], "words": ["up", "OK"]}],
        "dropped_when": [{"path": ["kind"], "operator": "is_not", "words": ["check"]}],
        "joins": {
            "title": {"paths": [["check"]], "separator": " / "},
            "fingerprint": {"paths": [["check"]]},
        },
    }
    mapping = {"title": [["host"]], "fingerprint": [["host"]], "severity": [["level"]]}
    saved = worker.put(sample=sample, mapping=mapping, rules=rules).json()
    assert saved["rules"]["severity_words"] == {"warning": "low"}
    assert saved["never_resolves"] is None

    assert endpoint.post_json(sample) == [{"iid": 1, "title": "db-1 / disk"}]
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert Severity.LOW.rank == alert.severity
    assert endpoint.post_json({**sample, "kind": "comment"}) == []
    assert list_stored_deliveries(gatebell, endpoint.project)[-1].dropped == 1
    endpoint.post_json({**sample, "state": "Ok", "level": "info"})
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "resolved"

    told = worker.put(sample=sample, mapping=mapping, rules={}).json()["never_resolves"]
    assert "stay open until a user resolves them" in told


def test_a_recovery_in_other_words_resolves_the_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script(gatebell, endpoint)
    sample = {"text": "[DOWN] shop.example is unreachable (3 min)"}
    recovery = {"text": "[UP] shop.example is reachable again"}
    integrations = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = integrations.post("/recognize", sample=sample, recovery=recovery).json()
    assert found["recovery"]["resolves"] is True
    assert worker.put(**found).json()["rules"]["ignored_words"] == found["rules"]["ignored_words"]
    (question,) = [each for each in found["questions"] if each["name"] == "fingerprint"]
    assert "without words that change: “shop.example”" in question["text"]
    endpoint.post_json(sample)
    endpoint.post_json({"text": "[DOWN] shop.example is unreachable (8 min)"})
    endpoint.post_json({"text": "[DOWN] wiki.example is unreachable (1 min)"})
    endpoint.post_json(recovery)
    stored = [(each.status, each.events) for each in list_stored_alerts(gatebell, endpoint.project)]
    assert stored == [("resolved", 2), ("triggered", 1)]
    answer = worker.put(sample=sample, mapping={}, rules={"ignored_words": ["two words"]})
    assert answer.status_code == 400
    assert "An ignored word must have" in answer.text


@pytest.mark.long
def test_recognized_and_returned_mappings_can_be_saved(gatebell: LiveGatebell) -> None:
    for module in MODULES:
        endpoint = connect(gatebell)
        integrations = script_of(gatebell, endpoint.project, "alert_management_integrations")
        found = integrations.post("/recognize", sample=load_messages(module).sample).json()
        if found["type"] != "http":
            continue
        worker = script(gatebell, endpoint)
        saved = worker.put(**found)
        assert saved.status_code == 200, (module, saved.text)
        assert saved.json()["mapping"] == found["mapping"], module
        assert saved.json()["rules"] == found["rules"], module
        again = worker.put(**worker.get())
        assert (again.status_code, again.json()) == (200, saved.json()), module


def test_a_saved_path_is_kept_if_another_sample_lacks_it(gatebell: LiveGatebell) -> None:
    worker = script(gatebell, connect(gatebell))
    assert worker.put(sample=SAMPLE, mapping=MAPPING).status_code == 200
    other = {**SAMPLE, "recovered_at": "2026-11-22T08:00:00Z", "machines": []}
    assert worker.put(sample=other, mapping=MAPPING).status_code == 200
    refused = worker.put(sample=other, mapping={"title": [["nothing"]]})
    assert refused.status_code == 400
