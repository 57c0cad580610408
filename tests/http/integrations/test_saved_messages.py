"""The repeat and the recovery that are saved with a sample, and questions that stay open."""

import json
from typing import Any

import pytest

from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

#: A message whose rule is unsure even if the recovery is known.
FIRING: dict[str, Any] = {
    "check": {"name": "Disk full"},
    "unit": "press-7",
    "level": "warning",
    "sent": "2026-11-29T08:00:00Z",
    "state": "jammed",
}
REPEAT = {**FIRING, "sent": "2026-11-29T08:05:00Z"}
RECOVERY = {**FIRING, "sent": "2026-11-29T08:10:00Z", "state": "moving"}


def _script(gatebell: LiveGatebell, endpoint: Endpoint) -> Script:
    return script_of(gatebell, endpoint.project, "alert_management_integrations")


@pytest.mark.both_databases
def test_messages_pasted_for_a_new_integration_are_shown_when_it_is_configured(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    pasted = {
        name: json.dumps(each)
        for name, each in (("sample", FIRING), ("repeat", REPEAT), ("recovery", RECOVERY))
    }
    shown = submit(browser, page, form_to(page, "/new#proposal"), name="Press", **pasted)
    added = submit(browser, shown, form_with(shown, "recognized"))
    assert added.status_code == 302
    (_, row) = list_stored_integrations(gatebell, endpoint.project)
    configure = address(gatebell, endpoint.project, f"{row.id}/configure")
    form = form_with(browser.get(configure), "sample")
    assert json.loads(form.value("repeat")) == REPEAT
    assert json.loads(form.value("recovery")) == RECOVERY
    assert "The recovery resolves the alert." in words(browser.get(configure).text)
    # The saved recovery is used when the mapping is proposed again.
    page = browser.get(configure)
    again = submit(browser, page, form_with(page, "sample"), do="propose")
    assert "state is “moving”" in words(again.text)
    # Removing the mapping removes all messages.
    submit(browser, page, form_to(page, "/mapping/remove"))
    (_, row) = list_stored_integrations(gatebell, endpoint.project)
    assert (row.sample, row.sample_repeat, row.sample_recovery) == (None, None, None)


def test_messages_of_another_sample_are_not_shown(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post(json.dumps({**FIRING, "unit": "press-8"}).encode())
    worker = _script(gatebell, endpoint)
    delivery = worker.get(f"/{endpoint.id}/deliveries")[0]["id"]
    worker.put(f"/{endpoint.id}/mapping", sample=FIRING, sample_recovery=RECOVERY)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    assert form_with(page, "sample").value("recovery")
    page = browser.get(f"{page.url}?sample={delivery}")
    assert form_with(page, "sample").value("recovery") == ""


def test_the_api_saves_the_messages_of_a_proposal(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = _script(gatebell, endpoint)
    found = worker.post("/recognize", sample=FIRING, repeat=REPEAT, recovery=RECOVERY).json()
    names = ("type", "sample", "sample_repeat", "sample_recovery", "mapping", "rules")
    made = worker.post("", name="Press", **{name: found[name] for name in names}).json()
    saved = worker.get(f"/{made['id']}/mapping")
    assert json.loads(saved["sample_repeat"]) == REPEAT
    assert json.loads(saved["sample_recovery"]) == RECOVERY
    # A mapping for the same sample keeps the messages, and an empty text removes one.
    at = f"/{made['id']}/mapping"
    kept = worker.put(at, sample=saved["sample"], mapping=saved["mapping"]).json()
    assert kept["sample_recovery"] == saved["sample_recovery"]
    changed = worker.put(at, sample=saved["sample"], sample_repeat="").json()
    assert (changed["sample_repeat"], bool(changed["sample_recovery"])) == (None, True)
    # Another message is another revision.
    assert changed["revision"] != kept["revision"]
    late = worker.put(at, sample=saved["sample"], revision=kept["revision"])
    assert late.status_code == 409
    other = worker.put(at, sample={**FIRING, "unit": "press-9"}).json()
    assert (other["sample_repeat"], other["sample_recovery"]) == (None, None)
    wrong = worker.put(at, sample=FIRING, sample_recovery="{")
    assert wrong.status_code == 400
    assert "sample_recovery" in wrong.text
    large = worker.put(at, sample=FIRING, sample_repeat={"text": "x" * 65_536})
    assert large.status_code == 400
    assert "64 KiB" in large.text


def test_open_questions_are_announced_until_they_are_answered(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = _script(gatebell, endpoint)
    assert worker.get(f"/{endpoint.id}")["open_questions"] == 0
    found = worker.post("/recognize", sample=FIRING, recovery=RECOVERY).json()
    names = {each["name"] for each in found["questions"]}
    assert {"severity", "resolved_when"} <= names
    keys = ("sample", "sample_recovery", "mapping", "rules")
    worker.put(f"/{endpoint.id}/mapping", **{key: found[key] for key in keys})
    count = worker.get(f"/{endpoint.id}")["open_questions"]
    assert count == len(names)
    link = f"Answer {count} questions"
    browser, page = opened(gatebell, endpoint, "{id}/credentials")
    for name in ("credentials", "test", "deliveries"):
        page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/{name}"))
        assert link in words(page.text)
        assert f'/{endpoint.id}/configure#questions"' in page.text
    page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/configure"))
    assert 'id="questions"' in page.text
    assert link not in words(page.text)
    answers = {f"answer_{name}": "high" if name == "severity" else "keep" for name in names}
    saved = submit(browser, page, form_with(page, "sample"), do="save", **answers)
    assert saved.status_code == 302
    assert worker.get(f"/{endpoint.id}")["open_questions"] == 0
    page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/credentials"))
    assert "open questions" not in words(page.text)
    page = browser.get(address(gatebell, endpoint.project, f"{endpoint.id}/configure"))
    assert 'id="questions"' not in page.text


def test_the_name_of_an_unknown_question_is_shortened_in_the_error(gatebell: LiveGatebell) -> None:
    worker = _script(gatebell, connect(gatebell))
    answers = {"x" * 5000: "keep"}
    rejected = worker.post("/recognize", sample=FIRING, answers=answers)
    assert rejected.status_code == 400
    assert "is not a question about these messages" in rejected.text
    assert "xxx…" in json.dumps(rejected.json(), ensure_ascii=False)
    assert len(rejected.text) < 1000
