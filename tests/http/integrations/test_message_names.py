"""Names of the messages in requests about mappings, which are the same in all requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_deliveries
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

_FIRING: dict[str, Any] = {"title": "Disk full", "host": "db-1", "state": "open", "beat": 1}
_REPEAT = {**_FIRING, "beat": 2}
_RECOVERY = {**_FIRING, "state": "closed", "beat": 3}
_NAMES = ("sample_repeat", "sample_recovery")
_FORMER_NAMES = ("repeat", "recovery")
_MAPPING = {"title": [["title"]], "fingerprint": [["host"]]}
_RULES = {"resolved_when": [{"path": ["state"], "words": ["closed"]}]}


def _script(gatebell: LiveGatebell) -> tuple[Endpoint, Script]:
    endpoint = connect(gatebell)
    return endpoint, script_of(gatebell, endpoint.project, "alert_management_integrations")


@pytest.mark.parametrize("names", [_NAMES, _FORMER_NAMES])
def test_each_request_accepts_both_names(gatebell: LiveGatebell, names: tuple[str, str]) -> None:
    endpoint, worker = _script(gatebell)
    messages = dict(zip(names, (_REPEAT, _RECOVERY), strict=True))
    mapping = {"sample": _FIRING, "mapping": _MAPPING, "rules": _RULES}
    preview = f"/{endpoint.id}/mapping/preview"
    for path, given in (("/recognize", {"sample": _FIRING}), (preview, mapping)):
        answer = worker.post(path, **given, **messages)
        assert "Gatebell-Ignored-Parameters" not in answer.headers
        found = answer.json()
        assert (found["repeat"]["joins"], found["recovery"]["resolves"]) == (True, True)
    saved = worker.put(f"/{endpoint.id}/mapping", **mapping, **messages)
    made = worker.post("", type="http", name="Other", **mapping, **messages)
    shown = worker.get(f"/{made.json()['id']}/mapping")
    for found in (saved.json(), shown):
        assert [json.loads(found[name]) for name in _NAMES] == [_REPEAT, _RECOVERY]
    for body in (_FIRING, _REPEAT, _RECOVERY):
        endpoint.post_json(body)
    ids = [each.id for each in list_stored_deliveries(gatebell, endpoint.project)]
    by_id = dict(zip(("sample", *names), ids, strict=True))
    found = worker.post(f"/{endpoint.id}/deliveries/recognize", **by_id).json()
    assert (found["repeat"]["joins"], found["recovery"]["resolves"]) == (True, True)


def test_a_preview_uses_the_saved_messages(gatebell: LiveGatebell) -> None:
    endpoint, worker = _script(gatebell)
    mapping = {"sample": _FIRING, "mapping": _MAPPING, "rules": _RULES}
    worker.put(f"/{endpoint.id}/mapping", **mapping, sample_recovery=_RECOVERY)
    preview = f"/{endpoint.id}/mapping/preview"
    assert worker.post(preview, **mapping).json()["recovery"]["resolves"]
    assert worker.post(preview, **mapping, sample_recovery="").json()["recovery"] is None


def test_errors_and_headers_name_the_parameter(gatebell: LiveGatebell) -> None:
    endpoint, worker = _script(gatebell)
    for path in ("/recognize", f"/{endpoint.id}/mapping/preview"):
        for name in _NAMES:
            rejected = worker.post(path, sample=_FIRING, **{name: "{"})
            assert rejected.status_code == 400
            assert rejected.json()["error"].startswith(f"`{name}`: The {name[7:]} is not JSON")
            assert rejected.json()["errors"][0]["field"] == name
        wrong = worker.post(path, sample=_FIRING, sample_repeat=3)
        assert wrong.json()["error"].startswith("`sample_repeat` must be")
        ignored = worker.post(path, sample=_FIRING, sample_recovry={})
        assert ignored.headers["Gatebell-Ignored-Parameters"] == "sample_recovry"


def test_the_api_description_has_one_set_of_names(gatebell: LiveGatebell) -> None:
    _, worker = _script(gatebell)
    schemas = worker.api.send_request("GET", "/../openapi.json").json()["components"]["schemas"]
    bodies = ("RecognitionBody", "AlertMappingBody", "MappedIntegration", "DeliveryRecognitionBody")
    for body in bodies:
        properties = schemas[body]["properties"]
        assert {*_NAMES} <= properties.keys(), body
        assert properties.keys().isdisjoint(_FORMER_NAMES), body


@pytest.mark.parametrize("names", [_NAMES, _FORMER_NAMES])
def test_the_command_accepts_both_names(app: Flask, tmp_path: Path, names: tuple[str, str]) -> None:
    options = []
    for name, body in zip(("sample", *names), (_FIRING, _REPEAT, _RECOVERY), strict=True):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(body), encoding="utf-8")
        options += [str(file)] if name == "sample" else [f"--{name.replace('_', '-')}", str(file)]
    found: Any = operate(app, "integrations", "recognize", *options)
    assert (found["repeat"]["joins"], found["recovery"]["resolves"]) == (True, True)


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"sample_recovery": _RECOVERY}, "sample", "`sample` is missing."),
        ({"rules": _RULES}, "sample", "`sample` is missing."),
        ({"mapping": _MAPPING}, "sample", "`sample` is missing."),
        (
            {"type": "prometheus", "sample": _FIRING, "mapping": _MAPPING},
            "mapping",
            "`mapping` is not possible for integrations of the type prometheus.",
        ),
        (
            {"sample": _FIRING, "mapping": {"colour": [["title"]]}},
            "mapping.colour",
            "`mapping.colour` must be one of title, ",
        ),
        (
            {"sample": _FIRING, "rules": {"severity_words": {"x" * 99: "low"}}},
            "rules.severity_words",
            "`rules.severity_words`: A severity word must have",
        ),
    ],
)
def test_a_part_of_a_mapping_is_never_ignored(
    gatebell: LiveGatebell, given: dict[str, Any], field: str, sentence: str
) -> None:
    _, worker = _script(gatebell)
    rejected = worker.post("", **{"type": "http", "name": "New", **given})
    assert rejected.status_code == 400
    assert rejected.json()["error"].startswith(sentence)
    assert rejected.json()["errors"][0]["field"] == field
    assert len(worker.get()) == 1


def test_the_reason_names_the_values_that_identify_both_messages(gatebell: LiveGatebell) -> None:
    endpoint, worker = _script(gatebell)
    calm = {"title": "All systems operational", "state": "closed"}
    given = {"sample": _FIRING, "mapping": _MAPPING, "sample_recovery": calm}
    found = worker.post(f"/{endpoint.id}/mapping/preview", **given).json()
    sentence = found["recovery"]["sentence"]
    assert sentence.startswith("The recovery opens another alert, because it is identified by the")
    assert sentence.endswith(", and the sample by the host field.")


def test_a_rejected_rule_does_not_deny_the_recovery(gatebell: LiveGatebell) -> None:
    _, worker = _script(gatebell)
    sample = {"title": "Load", "jobs": [{"id": "A-17"}], "host": "db-1"}
    for others, label in (
        ({}, "No, the tool sends no recoveries"),
        ({"sample_recovery": {"title": "Load", "host": "db-1"}}, "No, users resolve them"),
    ):
        found = worker.post("/recognize", sample={**sample, "status": "active"}, **others).json()
        (asked,) = [each for each in found["questions"] if each["name"] == "resolved_when"]
        assert label in [each["label"] for each in asked["choices"]]
