"""Questions about a proposed mapping, and answers that change it, on pages and in the API."""

import json
from typing import Any

import pytest

from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import PAYLOADS, connect
from tests.support.database.stored import list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

#: The tool sends the host of the alert in `unit`, which no key calls a host.
_SAMPLE: dict[str, Any] = {
    "rule": {"name": "Load is high"},
    "unit": "press-7",
    "level": "warning",
    "status": "active",
}
_UNIT = '["unit"]'


def _mapping(gatebell: LiveGatebell, project: str) -> dict[str, Any]:
    mapping = list_stored_integrations(gatebell, project)[-1].mapping
    assert mapping is not None
    return dict(mapping)


def test_messages_that_were_not_recognized_are_not_lost(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    filled = {"type": "http", "name": "Press", "sample": json.dumps(_SAMPLE)}
    shown = submit(browser, page, form_to(page, "/new#proposal"), **filled)
    assert shown.status_code == 200
    assert "Unknown tool." in words(shown.text)
    assert "How severe is “warning”?" in words(shown.text)
    assert form_with(shown, "recognized").value("name") == "Press"
    # Messages that are added to the proposal are recognized, too.
    recovery = json.dumps({**_SAMPLE, "status": "mended"})
    again = submit(browser, shown, form_with(shown, "recognized"), recovery=recovery)
    assert again.status_code == 200
    assert "status is “mended”" in words(again.text)
    assert submit(browser, again, form_with(again, "recognized")).status_code == 302
    rules = _mapping(gatebell, endpoint.project)["rules"]
    assert "mended" in rules["resolved_when"][0]["words"]


def test_a_sure_proposal_is_saved_without_another_step(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    text = (PAYLOADS / "messages" / "uptime_kuma.json").read_text(encoding="utf-8")
    sample = json.dumps(json.loads(text)["firing"])
    added = submit(browser, page, form_to(page, "/new#proposal"), sample=sample)
    assert added.status_code == 302
    (_, row) = list_stored_integrations(gatebell, endpoint.project)
    assert (row.name, row.mapping is not None) == ("Uptime Kuma", True)


def test_a_recovery_without_the_problem_is_rejected(gatebell: LiveGatebell) -> None:
    browser, page = opened(gatebell, connect(gatebell), "new")
    form = form_to(page, "/new#proposal")
    for given in ({"recovery": "{}"}, {"repeat": "{}"}, {"do": "recognize"}):
        answer = submit(browser, page, form, name="Other", **given)
        assert answer.status_code == 422, given
        assert "Paste a message about a problem." in words(answer.text)


def test_answers_change_the_mapping_of_a_new_integration(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    sample = json.dumps(_SAMPLE)
    shown = submit(browser, page, form_to(page, "/new#proposal"), name="Press", sample=sample)
    assert "These alerts never resolve." in words(shown.text)
    answers = {"answer_hosts": _UNIT, "answer_severity": "high", "answer_resolved_when": "keep"}
    form = form_with(shown, "recognized")
    previewed = submit(browser, shown, form, do="recognize", **answers)
    assert "Hosts press-7" in words(previewed.text)
    # A confirmed rule needs no warning.
    assert "These alerts never resolve." not in words(previewed.text)
    assert form_with(previewed, "recognized").value("answer_hosts") == _UNIT
    assert submit(browser, previewed, form_with(previewed, "recognized")).status_code == 302
    mapping = _mapping(gatebell, endpoint.project)
    assert mapping["hosts"] == [["unit"]]
    assert mapping["rules"]["joins"]["fingerprint"]["paths"] == [["unit"]]
    assert mapping["rules"]["severity_words"]["warning"] == "high"


def test_open_questions_are_shown_with_the_saved_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample=_SAMPLE).json()
    body = {name: found[name] for name in ("sample", "mapping", "rules")}
    saved = worker.put(f"/{endpoint.id}/mapping", **body).json()
    previewed = worker.post(f"/{endpoint.id}/mapping/preview", **body).json()
    for shown in (saved, previewed):
        assert "The rule for recoveries is a guess." in shown["never_resolves"]
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    assert "open questions" in words(page.text)
    assert "The rule for recoveries is a guess." in words(page.text)
    answers = {"answer_hosts": _UNIT, "answer_resolved_when": "none"}
    assert submit(browser, page, form_with(page, "sample"), do="save", **answers).status_code == 302
    mapping = _mapping(gatebell, endpoint.project)
    assert mapping["hosts"] == [["unit"]]
    assert mapping["rules"]["joins"]["fingerprint"]["paths"] == [["unit"]]
    assert "resolved_when" not in mapping["rules"]
    page = browser.get(page.url)
    assert "answer_hosts" not in page.text
    assert "answer_resolved_when" not in page.text
    assert "answer_severity" in page.text


def test_a_confirmed_rule_is_not_asked_about_again(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample=_SAMPLE).json()
    body = {name: found[name] for name in ("sample", "mapping", "rules")}
    worker.put(f"/{endpoint.id}/mapping", **body)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    # Saving without an answer does not confirm the rule.
    assert submit(browser, page, form_with(page, "sample"), do="save").status_code == 302
    page = browser.get(page.url)
    answer = {"answer_resolved_when": "keep"}
    assert submit(browser, page, form_with(page, "sample"), do="save", **answer).status_code == 302
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["rules"]["resolved_when"] == found["rules"]["resolved_when"]
    assert (saved["never_resolves"], saved["rules"]["is_guess"]) == (None, False)
    page = browser.get(page.url)
    assert "answer_resolved_when" not in page.text
    assert "The rule for recoveries is a guess." not in words(page.text)


def test_the_api_applies_answers_and_names_unknown_parameters(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    answers = {"hosts": _UNIT, "severity": "high", "resolved_when": "none", "title": "other"}
    answer = worker.post("/recognize", sample=_SAMPLE, answers=answers, recovry={}, x=1)
    assert answer.headers["Gatebell-Ignored-Parameters"] == "recovry, x"
    found = answer.json()
    questions = {each["name"]: each for each in found["questions"]}
    assert questions["hosts"]["answer"] == _UNIT
    assert {"value": _UNIT, "label": "“press-7”, unit"} in questions["hosts"]["choices"]
    assert found["mapping"]["hosts"] == [["unit"]]
    assert found["rules"]["resolved_when"] == []
    assert found["alert"]["severity"] == "high"
    chosen = [each for each in found["findings"] if each["field"] == "hosts"]
    assert [(each["source"], each["confidence"]) for each in chosen] == [("unit", "sure")]
    new = {name: found[name] for name in ("type", "sample", "mapping", "rules")}
    assert worker.post("", name="Press", **new).status_code == 201
