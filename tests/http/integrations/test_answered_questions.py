"""Answered questions on pages: they show their answers, which can be changed or withdrawn."""

import json
from typing import Any

import pytest
import requests

from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import HtmlForm, form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

_SAMPLE: dict[str, Any] = {
    "rule": {"name": "Load is high"},
    "unit": "press-7",
    "hall": "hall-2",
    "level": "warning",
    "status": "active",
}
_UNIT, _HALL = '["unit"]', '["hall"]'


def _form(page: requests.Response) -> HtmlForm:
    return form_with(page, "sample")


def _saved_editor(
    gatebell: LiveGatebell,
) -> tuple[Endpoint, Script, requests.Session, requests.Response]:
    """Return an integration with a saved proposal, and the page with its open questions."""
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample=_SAMPLE).json()
    body = {name: found[name] for name in ("sample", "mapping", "rules")}
    assert worker.put(f"/{endpoint.id}/mapping", **body).status_code == 200
    return endpoint, worker, *opened(gatebell, endpoint, "{id}/configure")


def test_a_proposal_shows_which_questions_are_answered(gatebell: LiveGatebell) -> None:
    browser, page = opened(gatebell, connect(gatebell), "new")
    given = {"name": "Press", "sample": json.dumps(_SAMPLE), "do": "recognize"}
    page = submit(browser, page, form_to(page, "/new#proposal"), **given)
    assert "3 open questions" in words(page.text)
    assert "Answered" not in words(page.text)
    answers = {"answer_hosts": _UNIT, "answer_severity": "high"}
    page = submit(browser, page, _form(page), do="recognize", **answers)
    assert "1 open question, 2 answered" in words(page.text)
    assert "Your answer: “press-7”, unit" in words(page.text)
    assert page.text.count("Change the answer") == 2
    # An answer can be changed and withdrawn.
    changed = {"answer_hosts": _HALL, "answer_severity": ""}
    page = submit(browser, page, _form(page), do="recognize", **changed)
    assert "2 open questions, 1 answered" in words(page.text)
    assert "Your answer: “hall-2”, hall" in words(page.text)
    page = submit(
        browser, page, _form(page), do="recognize", answer_resolved_when="keep", **answers
    )
    assert "No open questions, 3 answered" in words(page.text)


@pytest.mark.parametrize("button", ["read", "try", "propose"])
def test_answers_stay_with_the_saved_mapping_until_they_are_saved(
    gatebell: LiveGatebell, button: str
) -> None:
    endpoint, worker, browser, page = _saved_editor(gatebell)
    answers = {"answer_hosts": _UNIT, "answer_severity": "high", "answer_resolved_when": "none"}
    page = submit(browser, page, _form(page), do=button, **answers)
    assert "No open questions, 3 answered" in words(page.text)
    assert "Hosts press-7" in words(page.text)
    assert submit(browser, page, _form(page), do="save").status_code == 302
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["mapping"]["hosts"] == [["unit"]]
    assert ["unit"] in saved["rules"]["joins"]["fingerprint"]["paths"]
    assert saved["rules"]["severity_words"]["warning"] == "high"
    assert saved["rules"]["resolved_when"] == []
    assert worker.get(f"/{endpoint.id}")["open_questions"] == 0


@pytest.mark.parametrize("button", ["read", "try"])
def test_an_answer_replaces_the_answer_that_was_previewed(
    gatebell: LiveGatebell, button: str
) -> None:
    endpoint, worker, browser, page = _saved_editor(gatebell)
    first = worker.get(f"/{endpoint.id}/mapping")
    answers = {"answer_hosts": _UNIT, "answer_severity": "high", "answer_resolved_when": "none"}
    page = submit(browser, page, _form(page), do=button, **answers)
    changed = {"answer_hosts": _HALL, "answer_severity": "", "answer_resolved_when": "keep"}
    page = submit(browser, page, _form(page), do=button, **changed)
    assert "1 open question, 2 answered" in words(page.text)
    page = submit(browser, page, _form(page), do="save")
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["mapping"]["hosts"] == [["hall"]]
    # The result is the same as without the first answer.
    expected = worker.post("/recognize", sample=_SAMPLE, answers={"hosts": _HALL}).json()
    assert saved["mapping"] == expected["mapping"]
    assert saved["rules"]["joins"] == expected["rules"]["joins"]
    assert saved["rules"]["severity_words"] == first["rules"]["severity_words"]
    assert saved["rules"]["resolved_when"] == first["rules"]["resolved_when"]
    assert saved["rules"]["is_guess"] is False


def test_a_field_that_is_changed_after_the_answer_is_kept(gatebell: LiveGatebell) -> None:
    endpoint, worker, browser, page = _saved_editor(gatebell)
    answers = {"answer_hosts": _UNIT, "answer_resolved_when": "keep"}
    page = submit(browser, page, _form(page), do="try", **answers)
    chosen = {
        "map_hosts": [_HALL, ""],
        "dropped_path": [_HALL],
        "dropped_operator": ["is"],
        "dropped_words": ["south"],
    }
    page = submit(browser, page, _form(page), do="try", **chosen)
    # The field was chosen, so the question is settled.
    assert "answer_hosts" not in page.text
    assert "1 open question, 1 answered" in words(page.text)
    assert submit(browser, page, _form(page), do="save").status_code == 302
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["mapping"]["hosts"] == [["hall"]]
    assert saved["rules"]["dropped_when"][0]["words"] == ["south"]
    assert saved["rules"]["confirmed"] == ["resolved_when"]


def test_answers_about_the_host_and_the_fingerprint_are_saved_together(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    unit = "3555175d-4055-46e9-81b1-288a17846b9a"
    sample = {"alarm_type": "memory", "value": 85, "instance_id": unit}
    answers = {"hosts": '["instance_id"]', "fingerprint": '["instance_id"]', "title": "keep"}
    expected = worker.post("/recognize", sample=sample, answers=answers).json()
    found = worker.post("/recognize", sample=sample).json()
    body = {name: found[name] for name in ("sample", "mapping", "rules")}
    worker.put(f"/{endpoint.id}/mapping", **body)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    given = {f"answer_{name}": value for name, value in answers.items()}
    page = submit(browser, page, form_with(page, "sample"), do="read", **given)
    assert "2 open questions, 3 answered" in words(page.text)
    assert submit(browser, page, form_with(page, "sample"), do="save").status_code == 302
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["mapping"] == expected["mapping"]
    assert saved["rules"]["joins"] == expected["rules"]["joins"]


def test_only_questions_with_answers_are_counted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample={**_SAMPLE, "api_key": "k-1"}).json()
    assert None in {each["name"] for each in found["questions"]}
    body = {name: found[name] for name in ("sample", "mapping", "rules")}
    worker.put(f"/{endpoint.id}/mapping", **body)
    _, page = opened(gatebell, endpoint, "{id}/configure")
    count = worker.get(f"/{endpoint.id}")["open_questions"]
    assert f"{count} open questions Answers change" in words(page.text)
    assert "Is api_key a secret?" in words(page.text)
