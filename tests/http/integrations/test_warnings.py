"""Warnings about deliveries, from the page and the API to a saved fix."""

import html
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from models import Delivery, Integration, Project
from tests.support.accounts.people import now
from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.scripts import Script, script_of
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.database.stored import (
    change,
    list_stored_alerts,
    list_stored_deliveries,
    list_stored_integrations,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_to, submit

_BY_MESSAGE: dict[str, Any] = {
    "title": [["check", "name"]],
    "hosts": [["server"]],
    "fingerprint": [["messageId"]],
    "rules": {"resolved_when": [{"path": ["state"], "operator": "is", "words": ["up"]}]},
}
_BY_CHECK = {**_BY_MESSAGE, "fingerprint": [["check", "name"]]}
_PAGE = "{id}/warnings/repeats_open_alerts"


def message(number: int, *, host: str = "web-1", state: str = "down") -> dict[str, Any]:
    return {
        "messageId": f"7c9e6679-7425-40de-944b-e07fc1f9{number:04}",
        "check": {"name": "Disk usage", "output": f"Disk is {number}% full"},
        "server": host,
        "state": state,
    }


def mapped(gatebell: LiveGatebell, mapping: dict[str, Any] | None) -> Endpoint:
    """Create an HTTP endpoint with a mapping."""
    endpoint = connect(gatebell)
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(mapping=mapping))
    return endpoint


def repeating(gatebell: LiveGatebell) -> Endpoint:
    """Create an endpoint at which each of six repeats about two hosts opens an alert."""
    endpoint = mapped(gatebell, _BY_MESSAGE)
    for number in range(6):
        endpoint.post_json(message(number, host=f"web-{number % 2 + 1}"))
    return endpoint


def script(gatebell: LiveGatebell, endpoint: Endpoint, **given: Any) -> Script:
    found = script_of(gatebell, endpoint.project, "alert_management_integrations", **given)
    return Script(found.api, f"{found.at}/{endpoint.id}")


def warnings_of(gatebell: LiveGatebell, endpoint: Endpoint) -> dict[str, dict[str, Any]]:
    found = script(gatebell, endpoint).get("/warnings")
    return {each["kind"]: each for each in found}


def followed(
    browser: requests.Session, page: requests.Response, label: str, gatebell: LiveGatebell
) -> requests.Response:
    """Follow the only button with this label."""
    (found,) = re.findall(rf'<a class="button small" href="([^"]*)">{label}', page.text)
    return browser.get(gatebell.url + html.unescape(found))


@pytest.mark.both_databases
def test_a_click_on_the_fix_makes_repeats_join(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    browser, configure = opened(gatebell, endpoint, "{id}/configure")
    log = opened(gatebell, endpoint, "{id}/deliveries")[1]
    for page in (configure, log):
        assert "Repeats open new alerts : 4, most recently" in words(page.text)
    fix = followed(browser, log, "Preview the fix", gatebell)
    seen = words(fix.text)
    assert "In the last 6 deliveries, 4 reports would have joined 2 alerts, and 0 reports" in seen
    assert "Alerts opened 6 2 Reports that join an alert 0 4 Alerts resolved 0 0" in seen
    assert "Resolved when state is “up”" in seen
    assert list_stored_integrations(gatebell, endpoint.project)[0].mapping == _BY_MESSAGE

    saved = submit(browser, fix, form_to(fix, "/warnings/repeats_open_alerts"))
    log = browser.get(gatebell.url + saved.headers["Location"])

    assert "Mapping saved. It applies to new deliveries." in words(log.text)
    assert "Repeats open new alerts" not in words(log.text)
    ((first,), (repeat,), (other,)) = (
        endpoint.post_json(message(n, host=f"web-{host}")) for n, host in ((7, 1), (8, 1), (9, 2))
    )
    assert first["iid"] == repeat["iid"] != other["iid"]
    endpoint.post_json(message(10, state="up"))
    statuses = {each.iid: each.status for each in list_stored_alerts(gatebell, endpoint.project)}
    assert (statuses[first["iid"]], statuses[other["iid"]]) == ("resolved", "triggered")
    events = script_of(gatebell, endpoint.project, "audit_events").get()
    assert "mapping saved" in json.dumps(events)


@pytest.mark.both_databases
def test_the_fix_of_the_api_is_a_body_for_the_mapping(gatebell: LiveGatebell) -> None:
    endpoint = mapped(gatebell, None)
    for number, host, state in ((1, "web-1", "down"), (2, "web-2", "down"), (3, "web-1", "up")):
        endpoint.post_json(message(number, host=host, state=state))

    found = warnings_of(gatebell, endpoint)["never_resolved"]

    assert "Messages in which state is “up” are not read as recoveries." in found["details"]
    assert (found["fix"]["deliveries"], found["fix"]["after"]["resolved"]) == (3, 1)
    sent = script(gatebell, endpoint)
    assert sent.put("/mapping", **found["fix"]).status_code == 200
    assert sent.put("/mapping", **found["fix"]).status_code == 409
    assert "never_resolved" not in warnings_of(gatebell, endpoint)
    (one,), (two,) = (endpoint.post_json(message(n, host=f"web-{n}")) for n in (1, 2))
    endpoint.post_json(message(8, host="web-2", state="up"))
    statuses = {each.iid: each.status for each in list_stored_alerts(gatebell, endpoint.project)}
    assert (statuses[one["iid"]], statuses[two["iid"]]) == ("triggered", "resolved")


@pytest.mark.both_databases
def test_hosts_that_share_an_alert_are_separated(gatebell: LiveGatebell) -> None:
    endpoint = mapped(gatebell, _BY_CHECK)
    endpoint.post_json(message(1))
    endpoint.post_json(message(2, host="web-2", state="up"))
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert "Different hosts share an alert : 1" in words(page.text)
    fix = followed(browser, page, "Preview the fix", gatebell)
    assert "Reports that change the alert of another host 1 0" in words(fix.text)
    submit(browser, fix, form_to(fix, "/warnings/shared_identity"))
    (first,) = endpoint.post_json(message(3))
    endpoint.post_json(message(4, host="web-2", state="up"))
    statuses = {each.iid: each.status for each in list_stored_alerts(gatebell, endpoint.project)}
    assert statuses[first["iid"]] == "triggered"


@pytest.mark.both_databases
def test_a_sender_without_recoveries_is_found_after_a_day(gatebell: LiveGatebell) -> None:
    endpoint = mapped(gatebell, _BY_MESSAGE)
    for number in range(3):
        endpoint.post_json(message(number, host=f"web-{number}"))
    assert warnings_of(gatebell, endpoint) == {}
    (first, *_) = list_stored_deliveries(gatebell, endpoint.project)
    earlier = update(Delivery).where(Delivery.id == first.id)
    change(gatebell, earlier.values(received_at=now() - timedelta(hours=30)))
    found = warnings_of(gatebell, endpoint)["never_resolved"]
    assert "No recovery has arrived." in found["details"]
    assert found["fix"] is None
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    form = followed(browser, page, "Resolve alerts after a time", gatebell)
    assert 'id="resolve_after_minutes"' in form.text
    script(gatebell, endpoint).put(resolve_after_minutes=60)
    assert warnings_of(gatebell, endpoint) == {}


def test_the_severity_of_each_unknown_word_is_chosen(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    for number, severity in enumerate(("sev-9", "<b>odd", "sev-9")):
        endpoint.post(
            webhook(
                item(
                    f"Disk {number}",
                    labels={"alertname": "Disk", "n": str(number), "severity": severity},
                )
            )
        )
    found = warnings_of(gatebell, endpoint)["unknown_severity"]
    assert found["severity_words"] == {"sev-9": "critical", "<b>odd": "critical"}
    assert (found["count"], found["fix"]) == (3, None)
    browser, page = opened(gatebell, endpoint, "{id}/configure")
    fix = followed(browser, page, "Choose severities", gatebell)
    assert "<b>odd" not in fix.text
    form = form_to(fix, "/warnings/unknown_severity")
    wrong = submit(browser, fix, form, severity=["low", "loud"])
    assert wrong.headers["Location"].endswith("/warnings/unknown_severity")
    assert submit(browser, fix, form, severity=["low", "high"]).status_code == 302
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.mapping == {"rules": {"severity_words": {"sev-9": "low", "<b>odd": "high"}}}
    assert "unknown_severity" not in warnings_of(gatebell, endpoint)


@pytest.mark.both_databases
def test_a_sender_that_is_only_rejected_is_told_what_to_change(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for _ in range(2):
        endpoint.post(b"{}", Authorization="Bearer wrong", User_Agent="Grafana")
    assert warnings_of(gatebell, endpoint) == {}
    endpoint.post(b"{}", Content_Type="text/plain", User_Agent="curl/8")
    found = warnings_of(gatebell, endpoint)["only_rejected"]
    assert found["count"] >= 3
    assert "415 for curl at 127.0.0.1" in found["details"]
    assert "use --json instead of --data" in found["details"]
    assert "401 for Grafana at 127.0.0.1: The authorization key is wrong." in found["details"]
    browser, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert "Authorization" in followed(browser, page, "View credentials", gatebell).text
    endpoint.accepted(title="Works")
    assert warnings_of(gatebell, endpoint) == {}

    metrics = connect(gatebell, kind="prometheus")
    for _ in range(3):
        assert metrics.send(title="Disk full", hosts="web-1").status_code == 422
    assert warnings_of(gatebell, metrics)["only_rejected"]["right_type"] == "http"
    browser, page = opened(gatebell, metrics, "{id}/configure")
    assert page.text.count("Add an integration of the right type") >= 1
    change(gatebell, update(Integration).where(Integration.id == metrics.id).values(active=False))
    assert "only_rejected" not in warnings_of(gatebell, metrics)


@pytest.mark.both_databases
def test_a_fix_is_not_saved_over_a_changed_mapping(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    browser, fix = opened(gatebell, endpoint, _PAGE)
    form = form_to(fix, "/warnings/repeats_open_alerts")
    other = {**_BY_MESSAGE, "service": [["server"]]}
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(mapping=other))
    for given in (form.value("fix"), "{", "[]", ""):
        answer = submit(browser, fix, form, fix=given)
        assert answer.headers["Location"].endswith("/warnings/repeats_open_alerts"), given
        assert list_stored_integrations(gatebell, endpoint.project)[0].mapping == other
        browser.get(gatebell.url + answer.headers["Location"])
    answer = submit(browser, fix, form)
    again = browser.get(gatebell.url + answer.headers["Location"])
    assert "The mapping has changed in the meantime." in words(again.text)
    submit(browser, again, form_to(again, "/warnings/repeats_open_alerts"))
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.mapping is not None
    assert row.mapping["service"] == [["server"]]
    assert row.mapping["fingerprint"] != [["messageId"]]


def test_deleted_bodies_and_unknown_names_cause_no_error(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    mine = update(Delivery).where(Delivery.integration_id == endpoint.id)
    change(gatebell, mine.values(body=None))
    assert warnings_of(gatebell, endpoint) == {}
    _, fix = opened(gatebell, endpoint, _PAGE)
    assert "The latest deliveries do not cause this warning." in words(fix.text)
    assert opened(gatebell, endpoint, "{id}/warnings/nonsense")[1].url.endswith("/deliveries")
    link = connect(gatebell, kind="external")
    assert opened(gatebell, link, _PAGE)[1].status_code == 404
    assert opened(gatebell, link, "{id}/configure")[1].status_code == 200


@pytest.mark.parametrize("role", [None, Role.DEVELOPER])
def test_other_users_see_no_warnings(gatebell: LiveGatebell, role: Role | None) -> None:
    endpoint = repeating(gatebell)
    _, page = opened(gatebell, endpoint, _PAGE, role)
    assert page.status_code == (403 if role else 404)
    assert "Disk usage" not in page.text
    if role:
        refused = script(gatebell, endpoint, role=role).send("GET", "/warnings")
        assert refused.status_code == 403
    read = script(gatebell, endpoint, scopes="read_api")
    assert len(read.get("/warnings")) == 1


def test_an_archived_project_shows_warnings_without_buttons(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    browser, fix = opened(gatebell, endpoint, _PAGE)
    mine = update(Project).where(Project.path == endpoint.project)
    change(gatebell, mine.values(archived_at=now()))
    _, page = opened(gatebell, endpoint, "{id}/deliveries")
    assert "Repeats open new alerts" in page.text
    assert "Preview the fix" not in page.text
    assert "Save mapping" not in opened(gatebell, endpoint, _PAGE)[1].text
    refused = submit(browser, fix, form_to(fix, "/warnings/repeats_open_alerts"))
    assert refused.status_code == 403
    assert list_stored_integrations(gatebell, endpoint.project)[0].mapping == _BY_MESSAGE


def test_recoveries_at_a_joined_integration_are_not_missed(gatebell: LiveGatebell) -> None:
    endpoint = mapped(gatebell, _BY_MESSAGE)
    for number in range(3):
        endpoint.post_json(message(number, host=f"web-{number}"))
    first = update(Delivery).where(
        Delivery.id == list_stored_deliveries(gatebell, endpoint.project)[0].id
    )
    change(gatebell, first.values(received_at=now() - timedelta(hours=30)))
    assert "never_resolved" in warnings_of(gatebell, endpoint)
    other = connect(gatebell, endpoint.project)
    script(gatebell, endpoint).put(joined_with=[other.id])
    assert warnings_of(gatebell, endpoint) == {}


@pytest.mark.both_databases
def test_one_of_several_users_saves_the_fix(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    fix = warnings_of(gatebell, endpoint)["repeats_open_alerts"]["fix"]
    user = script(gatebell, endpoint)
    other = {**fix, "mapping": {**fix["mapping"], "service": [["server"]]}}
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda body: user.put("/mapping", **body), [fix, other] * 2))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]


def test_the_free_tier_has_no_fix_by_a_mapping(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    with changed_settings(gatebell, tier="free"):
        assert warnings_of(gatebell, endpoint)["repeats_open_alerts"]["fix"] is None
    assert warnings_of(gatebell, endpoint)["repeats_open_alerts"]["fix"] is not None


def test_the_command_prints_a_fix_that_another_command_saves(gatebell: LiveGatebell) -> None:
    endpoint = repeating(gatebell)
    command = ("integrations", "warnings", endpoint.project, str(endpoint.id))
    printed = json.loads(gatebell.run_cli(*command).stdout)
    (warning,) = printed["warnings"]
    assert warning["kind"] == "repeats_open_alerts"
    assert warning["fix"]["after"]["opened"] == 2
    saving = ("integrations", "map", endpoint.project, str(endpoint.id), "-")
    done = gatebell.run_cli(*saving, stdin=json.dumps(warning["fix"]))
    assert done.returncode == 0, done.stderr
    assert list_stored_integrations(gatebell, endpoint.project)[0].mapping != _BY_MESSAGE
