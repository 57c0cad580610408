"""Recognition of tools from a pasted payload, and new integrations with the proposed mapping."""

import json

import pytest

from domain.access.roles import Role
from domain.alerts.parsing.incoming_alert import Severity
from tests.http.api.projects.test_projects_api import made, path_of, script_of
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.integration_pages import address, opened, words
from tests.support.alerts.scripts import script_of as project_script_of
from tests.support.alerts.senders import PAYLOADS, Endpoint, connect
from tests.support.alerts.tool_messages import load_messages
from tests.support.database.stored import (
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("postgres")


def pasted(module: str, message: str = "firing") -> str:
    return json.dumps(getattr(load_messages(module), message))


@pytest.mark.long
def test_a_pasted_payload_creates_an_integration_with_a_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    sample = pasted("uptime_kuma")
    found = submit(browser, page, form_to(page, "/new#proposal"), do="recognize", sample=sample)
    seen = words(found.text)
    assert "Recognized: Uptime Kuma." in seen
    assert "heartbeat.status is “1”" in seen
    assert "Shop Critical Triggered" in seen
    added = submit(browser, found, form_with(found, "name"))
    assert added.status_code == 302
    row = list_stored_integrations(gatebell, endpoint.project)[-1]
    assert (row.name, row.type) == ("Uptime Kuma", "http")
    assert row.mapping is not None
    assert row.mapping["title"][0] == ["monitor", "name"]
    secret = browser.get(address(gatebell, endpoint.project, "{id}/credentials", row.id))
    kuma = Endpoint(
        id=row.id,
        project=endpoint.project,
        url=f"{gatebell.url}/{endpoint.project}/alerts/notify/x/{row.endpoint_identifier}.json",
        key=secret.text.partition('<code id="authorization-key">')[2].partition("<")[0],
        service=gatebell.url,
    )
    assert kuma.post(sample.encode()).json() == [{"iid": 1, "title": "Shop"}]
    kuma.post(pasted("uptime_kuma", "recovery").encode())
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.status == "resolved"


def test_the_api_recognizes_a_tool_and_saves_its_mapping(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    script = script_of(gatebell, person_for(gatebell, Role.MAINTAINER))
    give_role(gatebell, endpoint.project, person_for(gatebell, Role.MAINTAINER), Role.MAINTAINER)
    url = f"{path_of(endpoint.project)}/alert_management_integrations"
    text = {"sample": pasted("uptime_kuma")}
    found = made(script.send_request("POST", f"{url}/recognize", json=text), 200)
    assert (found["tool"], found["type"], found["never_resolves"]) == ("Uptime Kuma", "http", None)
    assert (found["alert"]["title"], found["alert"]["severity"]) == ("Shop", "critical")
    array = {"sample": [json.loads(text["sample"])]}
    assert (
        made(script.send_request("POST", f"{url}/recognize", json=array), 200)["tool"]
        == "Uptime Kuma"
    )
    mapping = {name: found[name] for name in ("sample", "mapping", "rules")}
    saved = made(script.send_request("PUT", f"{url}/{endpoint.id}/mapping", json=mapping), 200)
    assert (saved["mapping"], saved["rules"]) == (found["mapping"], found["rules"])
    endpoint.post(pasted("uptime_kuma").encode())
    endpoint.post(pasted("uptime_kuma", "recovery").encode())
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert (alert.title, alert.status) == ("Shop", "resolved")

    unknown = {"sample": {"summary": "Disk full", "prio": "high"}}
    guessed = made(script.send_request("POST", f"{url}/recognize", json=unknown), 200)
    assert (guessed["tool"], guessed["alert"]["title"]) == (None, "Disk full")
    for wrong in ("{", '"text"', "[]", 7):
        assert (
            script.send_request("POST", f"{url}/recognize", json={"sample": wrong}).status_code
            == 400
        )


#: Unknown tools with different notations: nested, in pairs, in objects with one key, sentences,
#: switches, and lists of new and removed problems.
_UNKNOWN = "apexping cisco_catalyst_center hydrozen snyk teams_card xmatters"


@pytest.mark.parametrize("tool", _UNKNOWN.split())
def test_messages_of_an_unknown_tool_open_join_and_resolve_an_alert(
    gatebell: LiveGatebell, tool: str
) -> None:
    project = connect(gatebell).project
    worker = project_script_of(gatebell, project, "alert_management_integrations")
    text = (PAYLOADS / "unknown" / f"{tool}.json").read_text(encoding="utf-8")
    messages = json.loads(text)
    given = {"sample": messages["firing"], **{n: messages[n] for n in ("repeat", "recovery")}}
    found = worker.post("/recognize", **given).json()
    assert (found["repeat"]["joins"], found["recovery"]["resolves"]) == (True, True)
    new = {name: found[name] for name in ("type", "sample", "mapping", "rules")}
    added = made(worker.post("", name=tool, **new))
    assert added["has_mapping"] is True
    saved = worker.get(f"/{added['id']}/mapping")
    assert (saved["mapping"], saved["rules"]) == (found["mapping"], found["rules"])

    endpoint = Endpoint(
        id=added["id"], project=project, url=added["url"], key=added["key"], service=gatebell.url
    )
    for name in ("firing", "repeat", "other", "recovery"):
        endpoint.post_json(messages[name])
    first, other = list_stored_alerts(gatebell, project)
    assert messages["expected"]["title"].casefold() in first.title.casefold()
    assert found["alert"]["severity"] in messages["expected"]["severity"]
    assert (first.events, first.status, other.status) == (2, "resolved", "triggered")


def test_an_integration_is_not_created_with_a_wrong_mapping(gatebell: LiveGatebell) -> None:
    project = connect(gatebell).project
    worker = project_script_of(gatebell, project, "alert_management_integrations")
    for wrong in (
        {"mapping": {"title": [["summary"]]}},
        {"sample": {"summary": "Disk full"}, "mapping": {"title": [[]]}},
        {"sample": {"summary": "Disk full"}, "rules": {"resolved_when": [{"path": ["state"]}]}},
    ):
        assert worker.post("", type="http", name="Wrong", **wrong).status_code == 400, wrong
    assert [each["name"] for each in worker.get()] == ["Hook"]


@pytest.mark.parametrize("key", ["\x00", "\ud800", "\u202ehost", "", "a.b", '"'])
def test_the_mapping_for_unusual_keys_can_be_saved(gatebell: LiveGatebell, key: str) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "new")
    payload = {"title": "Disk", "rule": {"name": "disk"}, key: {"host": "web-1", "status": "down"}}
    found = submit(
        browser, page, form_to(page, "/new#proposal"), do="recognize", sample=json.dumps(payload)
    )
    assert found.status_code == 200
    assert submit(browser, found, form_with(found, "name"), name="Other").status_code == 302
    row = list_stored_integrations(gatebell, endpoint.project)[-1]
    assert ([key, "host"] in (row.mapping or {}).get("hosts", [])) is (key != "\ud800")
    for shown in ("{id}/configure", "{id}/test", "{id}/credentials"):
        assert browser.get(address(gatebell, endpoint.project, shown, row.id)).status_code == 200


def test_an_embedded_sample_may_be_as_large_as_a_text(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    script = project_script_of(gatebell, endpoint.project, "alert_management_integrations")
    sample = {"title": "Disk", "host": "web-1", "items": [{"a": 1}] * 7_000}
    for given in (json.dumps(sample, separators=(",", ":")), sample, [sample]):
        assert script.post("/recognize", sample=given).status_code == 200


def test_an_unreadable_payload_is_rejected_and_stays_in_the_form(gatebell: LiveGatebell) -> None:
    browser, page = opened(gatebell, connect(gatebell), "new")
    for text, said in (
        ("{", "The sample is not JSON"),
        ('"text"', "The sample is a string"),
        (json.dumps({"alerts": [], "groupKey": "", "receiver": "x"}), "Missing or malformed"),
    ):
        answer = submit(browser, page, form_to(page, "/new#proposal"), do="recognize", sample=text)
        assert answer.status_code == 422
        assert said in words(answer.text)
        assert dict(form_to(answer, "/new#proposal").fields)["sample"].strip() == text


@pytest.mark.long
def test_an_unknown_severity_word_is_added_by_one_click(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk", severity="warning")
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.parse_warnings == ["Unknown severity “warning”: treated as critical."]
    browser, log = opened(gatebell, endpoint, "{id}/deliveries")
    assert "The sender uses “warning”." in words(log.text)
    fix = browser.get(log.url.replace("/deliveries", "/warnings/unknown_severity"))
    assert "1 stored report has the severity critical because of these words" in words(fix.text)
    submit(browser, fix, form_to(fix, "/warnings/unknown_severity"))
    assert endpoint.accepted(title="Other", severity="Warning")["iid"] == 2
    second = list_stored_alerts(gatebell, endpoint.project)[-1]
    assert second.severity == Severity.LOW.rank
    assert second.severity_reason is not None
    assert "which this integration maps to low" in second.severity_reason
    again = opened(gatebell, endpoint, "{id}/deliveries")[1]
    assert "The sender uses" not in words(again.text)
    configure = opened(gatebell, endpoint, "{id}/configure")[1]
    assert "warning = low" in configure.text


@pytest.mark.long
def test_a_proposed_mapping_is_saved_with_its_severity_words(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    read = submit(browser, page, form_with(page, "sample"), do="read", sample=pasted("nagios"))
    saved = submit(browser, read, form_with(read, "sample"), do="save")
    assert saved.status_code == 302, words(saved.text)
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.mapping is not None
    assert row.mapping["description"] == [["SERVICEOUTPUT"], ["HOSTOUTPUT"]]
    assert row.mapping["rules"]["severity_words"]["warning"] == "low"
    # After another save, the table of severity words is the integration's own table.
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    submit(browser, page, form_to(page, "/severity_words"), words="warning = high")
    submit(browser, page, form_with(page, "sample"), do="save")
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.mapping is not None
    assert row.mapping["rules"]["severity_words"] == {"warning": "high"}
    assert row.mapping["rules"]["resolved_when"][0]["words"] == ["recovery"]


def test_severity_words_of_alertmanager_can_be_translated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    form = form_to(page, "/severity_words")
    assert submit(browser, page, form, words="sev9 = info\r\nbad line").status_code == 302
    assert list_stored_integrations(gatebell, endpoint.project)[0].mapping is None
    submit(browser, page, form, words="Sev9 = info\r\n\r\n")
    assert list_stored_integrations(gatebell, endpoint.project)[0].mapping == {
        "rules": {"severity_words": {"sev9": "info"}}
    }


def test_amazon_sns_notifications_are_accepted_and_foreign_urls_are_not_confirmed(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    kind = {"Content_Type": "text/plain; charset=UTF-8"}
    sent = endpoint.post(
        pasted("amazon_sns").encode(), x_amz_sns_message_type="Notification", **kind
    )
    assert sent.status_code == 200
    assert endpoint.post(pasted("amazon_sns").encode(), **kind).status_code == 415
    asked = {
        **json.loads(pasted("amazon_sns")),
        "Type": "SubscriptionConfirmation",
        "Token": "1",
        "SubscribeURL": "https://sns.example.com/",
    }
    refused = endpoint.post(
        json.dumps(asked).encode(), x_amz_sns_message_type="SubscriptionConfirmation", **kind
    )
    assert refused.status_code == 422
    assert "SubscribeURL is not an https URL of Amazon SNS" in refused.json()["message"]
    ended = endpoint.post(
        json.dumps(asked).encode(), x_amz_sns_message_type="UnsubscribeConfirmation", **kind
    )
    assert ended.json() == []
    *_, last = list_stored_deliveries(gatebell, endpoint.project)
    assert last.parse_warnings == [
        "The subscription to arn:aws:sns:eu-central-1:111122223333:deploys has ended."
    ]
