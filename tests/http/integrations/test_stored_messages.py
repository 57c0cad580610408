"""Messages from the delivery log: found, used in the mapping editor, and recognized by ID."""

import json
from typing import Any

import pytest
import requests

from domain.access.roles import Role
from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import PAYLOADS, Endpoint, connect
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import HtmlForm, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

FIRING: dict[str, Any] = {
    "check": {"name": "Disk full", "severity": "warning"},
    "node": "db-1",
    "escalated": False,
    "sent": "2026-11-29T08:00:00Z",
    "state": "failing",
}
REPEAT = {**FIRING, "sent": "2026-11-29T08:05:00Z"}
ESCALATION = {**FIRING, "sent": "2026-11-29T08:04:00Z", "escalated": True}
RECOVERY = {**FIRING, "sent": "2026-11-29T08:10:00Z", "state": "passing"}
OTHER_HOST = {**FIRING, "node": "db-2"}
OTHER_RECOVERY = {**RECOVERY, "node": "db-2"}
UNRELATED = {"user": "eve", "comment": "Deployed", "version": 7}

#: Tools whose notes and acknowledgements are dropped, so they are no repeats.
_DROPPING = ("Opsgenie", "PagerDuty")


def log_of(gatebell: LiveGatebell, *bodies: Any) -> tuple[Endpoint, list[int]]:
    """Return an integration that received these bodies, and the IDs of its deliveries."""
    endpoint = connect(gatebell)
    for body in bodies:
        endpoint.post(body if isinstance(body, bytes) else json.dumps(body).encode())
    return endpoint, [each.id for each in list_stored_deliveries(gatebell, endpoint.project)]


def recognizer(gatebell: LiveGatebell, endpoint: Endpoint, **of: Any) -> Script:
    at = f"alert_management_integrations/{endpoint.id}/deliveries/recognize"
    return script_of(gatebell, endpoint.project, at, **of)


def editor_of(page: requests.Response) -> HtmlForm:
    return form_with(page, "sample")


@pytest.mark.both_databases
def test_a_firing_delivery_and_its_recovery_become_a_mapping_that_resolves_the_alert(
    gatebell: LiveGatebell,
) -> None:
    bodies = (FIRING, OTHER_HOST, REPEAT, UNRELATED, OTHER_RECOVERY, RECOVERY)
    endpoint, ids = log_of(gatebell, *bodies)
    assert {each.status for each in list_stored_alerts(gatebell, endpoint.project)} == {"triggered"}
    browser, page = opened(gatebell, endpoint, f"{{id}}/configure?sample={ids[0]}")
    seen = words(page.text)
    assert f"Delivery {ids[2]} , " in seen.partition("looks like a repeat of this sample.")[0]
    assert "looks like the recovery of this sample." in seen
    form = editor_of(page)
    assert ("use_recovery", str(ids[5])) in form.buttons
    assert ("use_repeat", str(ids[2])) in form.buttons
    page = submit(browser, page, form, use_recovery=str(ids[5]))
    assert json.loads(editor_of(page).value("recovery")) == RECOVERY
    assert "The recovery resolves the alert." in words(page.text)
    assert "looks like the recovery" not in words(page.text)
    page = submit(browser, page, editor_of(page), use_repeat=str(ids[2]))
    assert "The repeat joins the alert." in words(page.text)
    assert submit(browser, page, editor_of(page), do="save").status_code == 302
    sample = list_stored_integrations(gatebell, endpoint.project)[0].sample
    assert json.loads(sample or "") == FIRING
    for body in (FIRING, OTHER_HOST, REPEAT, RECOVERY):
        endpoint.post_json(body)
    first, second = list_stored_alerts(gatebell, endpoint.project)[-2:]
    assert (first.status, first.title, first.hosts) == ("resolved", "Disk full: db-1", "db-1")
    assert (second.status, second.hosts) == ("triggered", "db-2")


@pytest.mark.both_databases
def test_the_api_recognizes_deliveries_by_id(gatebell: LiveGatebell) -> None:
    bodies = (FIRING, OTHER_RECOVERY, ESCALATION, REPEAT, RECOVERY, REPEAT, b"{")
    endpoint, ids = log_of(gatebell, *bodies)
    worker = recognizer(gatebell, endpoint)
    found = worker.post(sample=ids[0]).json()
    assert (found["alert"]["title"], found["recovery"]) == ("Disk full: db-1", None)
    assert [(each["delivery_id"], each["role"]) for each in found["related"]] == [
        (ids[3], "repeat"),
        (ids[4], "recovery"),
    ]
    found = worker.post(sample=ids[0], repeat=ids[3], recovery=ids[4]).json()
    assert (found["repeat"]["joins"], found["recovery"]["resolves"]) == (True, True)
    saved = worker.api.send_request(
        "PUT", f"{worker.at.removesuffix('/deliveries/recognize')}/mapping", json=found
    )
    assert saved.status_code == 200, saved.text
    assert worker.post(sample=ids[6]).json()["error"].startswith("The sample is not JSON")
    assert worker.post(sample=ids[0], recovery=2**40).status_code == 404
    assert worker.post(recovery=ids[0]).status_code == 400


def test_large_bodies_are_not_all_compared(gatebell: LiveGatebell) -> None:
    for filler, seen in (("", True), ("x" * 60_000, False)):
        others = [{**FIRING, "node": f"db-{number}"} for number in range(2, 6)]
        bodies = [{**each, "filler": filler} for each in (FIRING, *others, RECOVERY)]
        endpoint, ids = log_of(gatebell, *bodies)
        page = opened(gatebell, endpoint, f"{{id}}/deliveries/{ids[-1]}")[1]
        assert ("This looks like the recovery" in words(page.text)) is seen


def test_only_users_who_may_see_bodies_can_recognize_deliveries(gatebell: LiveGatebell) -> None:
    endpoint, ids = log_of(gatebell, FIRING)
    for role, scopes, status in (
        (Role.MAINTAINER, "read_api", 200),
        (Role.DEVELOPER, "api", 403),
        (Role.MAINTAINER, "read_user", 403),
    ):
        worker = recognizer(gatebell, endpoint, role=role, scopes=scopes)
        assert worker.post(sample=ids[0]).status_code == status, (role, scopes)
    foreign = recognizer(gatebell, connect(gatebell))
    assert foreign.post(sample=ids[0]).status_code == 404


def test_a_delivery_is_offered_with_the_message_that_it_follows(gatebell: LiveGatebell) -> None:
    endpoint, ids = log_of(gatebell, FIRING, OTHER_HOST, RECOVERY, UNRELATED)
    browser, page = opened(gatebell, endpoint, f"{{id}}/deliveries/{ids[2]}")
    assert f"This looks like the recovery of delivery {ids[0]} ." in words(page.text)
    query = f"sample={ids[0]}&amp;recovery={ids[2]}#mapping"
    assert query in page.text
    base = address(gatebell, endpoint.project, "{id}/configure", endpoint.id)
    both = browser.get(f"{base}?sample={ids[0]}&recovery={ids[2]}")
    assert "The recovery resolves the alert." in words(both.text)
    for other in (ids[0], ids[1], ids[3]):
        page = opened(gatebell, endpoint, f"{{id}}/deliveries/{other}")[1]
        assert "This looks like" not in words(page.text), other
    # Without a sample, the editor offers deliveries that do not follow another one.
    _, page = opened(gatebell, endpoint, "{id}/configure")
    seen = words(page.text)
    assert [f"Use as sample : delivery {each}" in seen for each in ids] == [True, True, False, True]


def test_a_saved_mapping_is_tried_on_a_delivery(gatebell: LiveGatebell) -> None:
    endpoint, ids = log_of(gatebell, FIRING, RECOVERY, OTHER_RECOVERY)
    worker = script_of(
        gatebell, endpoint.project, f"alert_management_integrations/{endpoint.id}/mapping"
    )
    mapping = {"title": [["check", "name"]], "fingerprint": [["node"]]}
    rules = {"resolved_when": [{"path": ["state"], "words": ["passing"]}]}
    worker.put(sample=FIRING, mapping=mapping, rules=rules)
    for number, sentence in (
        (1, "The recovery resolves the alert."),
        (2, "The recovery does not resolve the alert, because"),
    ):
        _, page = opened(gatebell, endpoint, f"{{id}}/configure?recovery={ids[number]}")
        assert sentence in words(page.text)
        assert "Nothing is saved yet" not in words(page.text)
    _, page = opened(gatebell, endpoint, f"{{id}}/deliveries/{ids[1]}")
    assert f"configure?recovery={ids[1]}#mapping" in page.text
    given = {"sample": FIRING, "mapping": mapping, "rules": rules, "repeat": FIRING}
    tried = worker.post("/preview", **given, recovery=RECOVERY).json()
    assert tried["recovery"]["sentence"] == "The recovery resolves the alert."
    assert (tried["repeat"]["joins"], tried["repeat"]["resolves"]) == (True, False)
    assert worker.post("/preview", **given).json()["recovery"] is None
    refused = worker.post("/preview", **given, recovery="{")
    assert (refused.status_code, "recovery is not JSON" in refused.text) == (400, True)


def test_changed_choices_are_kept_when_a_message_is_added(gatebell: LiveGatebell) -> None:
    endpoint, ids = log_of(gatebell, FIRING, RECOVERY)
    browser, page = opened(gatebell, endpoint, f"{{id}}/configure?sample={ids[0]}")
    node = '["node"]'
    none = ["", ""]
    changed = {"map_title": [node, ""], "resolved_path": none, "resolved_words": none}
    page = submit(browser, page, editor_of(page), use_recovery=str(ids[1]), **changed)
    seen = words(page.text)
    assert "The recovery does not resolve the alert" in seen
    assert '<option value="[&#34;node&#34;]" selected>' in page.text
    assert "Nothing is saved yet" not in seen
    page = submit(browser, page, editor_of(page), do="propose")
    assert "The recovery resolves the alert." in words(page.text)
    assert "Check the proposed source fields below." in words(page.text)
    refused = submit(browser, page, editor_of(page), do="read", recovery="{")
    assert (refused.status_code, "The recovery is not JSON" in refused.text) == (422, True)


def test_an_end_that_only_the_recovery_has_can_be_chosen(gatebell: LiveGatebell) -> None:
    firing = {"incident_id": "A-17", "title": "Disk full", "started_at": "2026-11-29T08:00:00Z"}
    ended = {**firing, "ended_at": "2026-11-29T08:10:00Z"}
    endpoint, ids = log_of(gatebell, firing, ended)
    browser, page = opened(gatebell, endpoint, f"{{id}}/configure?sample={ids[0]}")
    page = submit(browser, page, editor_of(page), use_recovery=str(ids[1]))
    assert "The recovery resolves the alert." in words(page.text)
    assert "ended_at = “2026-11-29T08:10:00Z” (only in the recovery)" in page.text
    assert submit(browser, page, editor_of(page), do="save").status_code == 302
    endpoint.post_json(firing)
    endpoint.post_json(ended)
    assert list_stored_alerts(gatebell, endpoint.project)[-1].status == "resolved"


@pytest.mark.long
def test_pairs_of_known_and_unknown_tools_are_found_in_a_mixed_log(gatebell: LiveGatebell) -> None:
    pairs = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted((PAYLOADS / "pairs").glob("*.json"))
        if not file.name.startswith(("vmalert", "gatus_custom"))
    ]
    endpoint = connect(gatebell)
    for role in ("firing", "repeat", "recovery"):
        for pair in pairs:
            endpoint.post(json.dumps(pair[role] or UNRELATED).encode())
    ids = [each.id for each in list_stored_deliveries(gatebell, endpoint.project)]
    worker, count = recognizer(gatebell, endpoint), len(pairs)
    for at, pair in enumerate(pairs):
        found = worker.post(sample=ids[at]).json()["related"]
        roles = {each["role"]: each["delivery_id"] for each in found}
        # An equal repeat proves nothing.
        is_found = pair["repeat"] != pair["firing"] and not pair["tool"].startswith(_DROPPING)
        expected = {"repeat": ids[count + at]} if is_found else {}
        if pair["recovery"]:
            expected["recovery"] = ids[2 * count + at]
        assert roles == expected, pair["tool"]


def test_values_that_only_another_message_has_can_be_chosen(gatebell: LiveGatebell) -> None:
    endpoint, _ = log_of(gatebell)
    messages = {
        "sample": {"title": "Disk full", "host": "db-1", "escalated": False},
        "repeat": {"title": "Disk full", "host": "db-1", "escalated": True, "count": 2},
        "recovery": {"title": "Disk full", "host": "db-1", "outcome": {"word": "calm"}},
    }
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    given = {name: json.dumps(each) for name, each in messages.items()}
    page = submit(browser, page, editor_of(page), do="read", **given)
    assert "outcome.word = “calm” (only in the recovery)" in page.text
    assert "count = 2 (only in the repeat)" in page.text
    # The values of each message can be pointed at, also if the sample has another value.
    for name, value, word in (
        ("Sample", "escalated", "false"),
        ("Recovery", "outcome.word", "calm"),
        ("Repeat", "escalated", "true"),
    ):
        tree = page.text.partition(f'aria-label="{name} as JSON"')[2].partition("</div>")[0]
        assert f'data-label="{value}" data-word="{word}"' in tree
    chosen: dict[str, str | list[str]] = {
        "map_fingerprint": ['["host"]', ""],
        "map_description": ['["count"]', ""],
        "resolved_path": '["outcome", "word"]',
        "resolved_words": "calm",
    }
    page = submit(browser, page, editor_of(page), do="try", **chosen)
    assert "The recovery resolves the alert." in words(page.text)
    assert submit(browser, page, editor_of(page), do="save").status_code == 302
    saved = list_stored_integrations(gatebell, endpoint.project)[0].mapping or {}
    assert saved["description"] == [["count"]]
    assert saved["rules"]["resolved_when"][0]["path"] == ["outcome", "word"]
    worker = script_of(gatebell, endpoint.project, f"alert_management_integrations/{endpoint.id}")
    values = {each["label"]: each["message"] for each in worker.get("/mapping")["values"]}
    assert (values["host"], values["outcome.word"]) == ("sample", "recovery")
    assert values["count"] == "repeat"


def test_a_saved_mapping_and_its_preview_have_the_same_warning(gatebell: LiveGatebell) -> None:
    endpoint, _ = log_of(gatebell)
    at = f"alert_management_integrations/{endpoint.id}/mapping"
    worker = script_of(gatebell, endpoint.project, at)
    rules = {"resolved_when": [{"path": ["state"], "words": ["passing"]}], "is_guess": True}
    given: dict[str, Any] = {"sample": FIRING, "mapping": {"fingerprint": [["node"]]}}
    given["rules"] = rules
    for recovery, warning in (("", True), (json.dumps(RECOVERY), False)):
        saved = worker.put(**given, sample_recovery=recovery).json()
        previewed = worker.post("/preview", **given).json()
        assert saved["never_resolves"] == previewed["never_resolves"]
        assert bool(saved["never_resolves"]) is warning
        _, page = opened(gatebell, endpoint, "{id}/configure")
        assert ("The rule for recoveries is a guess." in words(page.text)) is warning
