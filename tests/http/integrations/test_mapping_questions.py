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
    answers = {"hosts": _UNIT, "severity": "high", "resolved_when": "none"}
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


def test_an_answer_that_is_not_a_choice_is_rejected(gatebell: LiveGatebell) -> None:
    worker = script_of(gatebell, connect(gatebell).project, "alert_management_integrations")
    answers = {"title": "other", "severity": "grave", "hosts": _UNIT}
    rejected = worker.post("/recognize", sample=_SAMPLE, answers=answers)
    assert rejected.status_code == 400
    message = rejected.text
    assert "answers.title" in message
    assert "the questions are hosts, resolved_when and severity" in message
    assert "critical, high, medium, low or info" in message
    assert "answers.hosts" not in message


@pytest.mark.parametrize("name", ["hosts", "severity"])
def test_an_answer_that_keeps_the_proposal_is_saved(gatebell: LiveGatebell, name: str) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample=_SAMPLE).json()
    body = {each: found[each] for each in ("sample", "mapping", "rules")}
    worker.put(f"/{endpoint.id}/mapping", **body)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    kept = {"hosts": "keep", "severity": found["alert"]["severity"]}[name]
    tried = submit(browser, page, form_with(page, "sample"), do="try", **{f"answer_{name}": kept})
    # The answer stays chosen until it is saved.
    assert form_with(tried, "sample").value(f"answer_{name}") == kept
    assert submit(browser, tried, form_with(tried, "sample"), do="save").status_code == 302
    saved = worker.get(f"/{endpoint.id}/mapping")
    assert saved["mapping"] == found["mapping"]
    assert saved["rules"]["confirmed"] == [name]
    page = browser.get(page.url)
    assert f"answer_{name}" not in page.text
    assert "answer_resolved_when" in page.text


def test_answers_from_one_response_can_be_sent_together(gatebell: LiveGatebell) -> None:
    worker = script_of(gatebell, connect(gatebell).project, "alert_management_integrations")
    unit = "3555175d-4055-46e9-81b1-288a17846b9a"
    sample = {"alarm_type": "memory", "value": 85, "instance_id": unit}
    asked = worker.post("/recognize", sample=sample).json()["questions"]
    names = {each["name"] for each in asked} - {"resolved_when", "severity"}
    assert names == {"title", "hosts", "fingerprint"}
    chosen = dict.fromkeys(names, '["instance_id"]')
    chosen["title"] = "keep"
    found = worker.post("/recognize", sample=sample, answers=chosen)
    assert found.status_code == 200
    # The chosen object is compared together with the type of the alert.
    assert found.json()["alert"]["fingerprint_source"] == "the alarm_type and instance_id fields"
    # To keep the proposal is never wrong, even if the question is no longer asked.
    repeat = {**sample, "value": 91}
    answers = {"hosts": '["instance_id"]', "fingerprint": "keep"}
    again = worker.post("/recognize", sample=sample, repeat=repeat, answers=answers)
    assert again.status_code == 200
    assert again.json()["alert"]["fingerprint_source"] == "the alarm_type and instance_id fields"


@pytest.mark.parametrize("name", ["hosts", "resolved_when"])
def test_a_question_without_values_can_be_closed(gatebell: LiveGatebell, name: str) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    found = worker.post("/recognize", sample={"summary": "Load is high"}).json()
    body = {each: found[each] for each in ("sample", "mapping", "rules")}
    worker.put(f"/{endpoint.id}/mapping", **body)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    answer = {f"answer_{name}": "keep"}
    assert submit(browser, page, form_with(page, "sample"), do="save", **answer).status_code == 302
    assert worker.get(f"/{endpoint.id}/mapping")["rules"]["confirmed"] == [name]
    assert f"answer_{name}" not in browser.get(page.url).text


def test_stored_deliveries_are_recognized_with_answers(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    endpoint.send(**_SAMPLE)
    (delivery, *_) = worker.get(f"/{endpoint.id}/deliveries")
    body = {"sample": delivery["id"], "answers": {"hosts": _UNIT}}
    found = worker.post(f"/{endpoint.id}/deliveries/recognize", **body)
    assert found.json()["mapping"]["hosts"] == [["unit"]]
    body["answers"] = {"hosts": "unit"}
    assert worker.post(f"/{endpoint.id}/deliveries/recognize", **body).status_code == 400


#: Messages in which the robot is not enough to identify the problem. The recovery has other keys.
_ROBOT = {"Type": "job.faulted", "Robot": {"MachineName": "PC-2"}, "ProcessKey": "Invoices"}
_NUMBER = "6f1b0a5e-9d7c-4c3e-8f59-2c3a0d5f7a10"
_LAG = {"app": "kafka", "events": [{"id": _NUMBER, "group": "payments"}]}
_LAG_ENDED = {"app": "kafka", "ids": [_NUMBER], "group": "payments"}


def test_a_value_that_completes_the_fingerprint_can_be_chosen(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    sent = {"sample": json.dumps(_ROBOT), "repeat": json.dumps(_ROBOT)}
    shown = submit(browser, page, form_to(page, "/new#proposal"), name="Robots", **sent)
    assert "Also compare “Invoices”, ProcessKey" in words(shown.text)
    form = form_with(shown, "recognized")
    answers = {"answer_fingerprint": '["ProcessKey"]'}
    assert submit(browser, shown, form, **answers).status_code == 302
    assert ["ProcessKey"] in _mapping(gatebell, endpoint.project)["rules"]["joins"]["fingerprint"][
        "paths"
    ]


#: A message in which neither the kind of the problem nor the list belongs to the fingerprint.
_LISTED = {
    "log_level": "warn",
    "event": "ip_listed",
    "ip": "198.51.100.24",
    "blocklist": "Barracuda",
    "direction": "outbound",
}
_DELISTED = {**_LISTED, "event": "ip_delisted"}


def test_several_values_can_complete_the_fingerprint(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    sent = {name: json.dumps(_LISTED) for name in ("sample", "repeat")}
    sent["recovery"] = json.dumps(_DELISTED)
    shown = submit(browser, page, form_to(page, "/new#proposal"), name="Lists", **sent)
    assert 'type="checkbox" name="answer_fingerprint"' in shown.text
    answers = ['["blocklist"]', '["direction"]', "keep"]
    form = form_with(shown, "recognized")
    shown = submit(browser, shown, form, do="recognize", answer_fingerprint=answers)
    assert "Also compare “Barracuda”, blocklist ; Also compare “outbound”, direction" in words(
        shown.text
    )
    assert submit(browser, shown, form_with(shown, "recognized")).status_code == 302
    saved = _mapping(gatebell, endpoint.project)["rules"]["joins"]["fingerprint"]["paths"]
    assert saved[-2:] == [["blocklist"], ["direction"]]
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    messages = {"sample": _LISTED, "sample_repeat": _LISTED, "sample_recovery": _DELISTED}
    both = '["blocklist"]\n["direction"]'
    found = worker.post("/recognize", **messages, answers={"fingerprint": both}).json()
    assert found["rules"]["joins"]["fingerprint"]["paths"] == saved
    (asked,) = (each for each in found["questions"] if each["name"] == "fingerprint")
    assert (asked["is_multiple"], asked["answer"]) == (True, both)
    wrong = worker.post("/recognize", **messages, answers={"fingerprint": f"{both}\nkind"})
    assert (wrong.status_code, "answers.fingerprint" in wrong.text) == (400, True)
    wrong = worker.post("/recognize", **messages, answers={"severity": "high\nlow"})
    assert (wrong.status_code, "answers.severity" in wrong.text) == (400, True)


def test_the_host_can_be_removed(gatebell: LiveGatebell) -> None:
    worker = script_of(gatebell, connect(gatebell).project, "alert_management_integrations")
    resource = "tenants/7/projects/shop/databases"
    sample = {"alert_name": "Slow", "resource": resource, "state": "firing", "monitor_id": "m-4"}
    messages = {"sample": sample, "sample_repeat": sample}
    found = worker.post("/recognize", **messages).json()
    assert found["mapping"]["hosts"] == [["resource"]]
    removed = worker.post("/recognize", **messages, answers={"hosts": "none"}).json()
    assert "hosts" not in removed["mapping"]
    compared = removed["rules"]["joins"].get("fingerprint", {"paths": []})["paths"]
    assert ["resource"] not in [*removed["mapping"]["fingerprint"], *compared]
    assert removed["alert"]["title"] == "Slow"


def test_the_host_answer_keeps_the_other_values_of_the_fingerprint(
    gatebell: LiveGatebell,
) -> None:
    worker = script_of(gatebell, connect(gatebell).project, "alert_management_integrations")
    issue = {"id": "0b7d-77", "rule_name": "SAN_HEALTH", "description": "A switch is down"}
    firing = {"system_name": "san-1", "new_issues": [issue], "resolved_issues": []}
    recovery = {"system_name": "san-1", "new_issues": [], "resolved_issues": [issue]}
    messages = {"sample": firing, "sample_recovery": recovery}
    proposed = worker.post("/recognize", **messages).json()["mapping"]["fingerprint"]
    answers = {"hosts": '["system_name"]'}
    found = worker.post("/recognize", **messages, answers=answers).json()
    assert found["mapping"]["fingerprint"] == proposed
    assert found["mapping"]["hosts"] == [["system_name"]]


def test_keys_that_only_the_recovery_has_can_be_saved(gatebell: LiveGatebell) -> None:
    worker = script_of(gatebell, connect(gatebell).project, "alert_management_integrations")
    messages = {"sample": _LAG, "recovery": _LAG_ENDED}
    answers = {"title": '["events", 0, "group"]', "resolved_when": "keep"}
    found = worker.post("/recognize", **messages, answers=answers).json()
    assert found["mapping"]["fingerprint"] == [["events", 0, "id"], ["ids", 0]]
    assert found["mapping"]["title"] == [["events", 0, "group"], ["group"]]
    assert found["recovery"]["resolves"]
    names = ("type", "sample", "sample_recovery", "mapping", "rules")
    made = worker.post("", name="Lag", **{name: found[name] for name in names})
    assert made.status_code == 201
    saved = {name: found[name] for name in names[1:]}
    worker.put(f"/{made.json()['id']}/mapping", **saved)
    tried = {name: saved[name] for name in ("sample", "mapping", "rules")}
    preview = f"/{made.json()['id']}/mapping/preview"
    assert worker.post(preview, recovery=found["sample_recovery"], **tried).status_code == 200
    rejected = worker.post(preview, sample=saved["sample"], mapping={"title": [["ids", 1]]})
    assert rejected.status_code == 400
    assert "which is in none of the messages" in rejected.text
