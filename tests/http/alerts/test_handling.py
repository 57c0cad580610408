"""Manual actions on alerts in the API, on pages and in the CLI: escalate, page, snooze, renew."""

from datetime import datetime, timedelta

import pytest
import requests

from domain.access.roles import Role
from models import Alert, AlertChange, Project
from tests.support.accounts.administration import find_last_event
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import alice, database_of, now, signed_in
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.integration_pages import words
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


def begin(gatebell: LiveGatebell, title: str) -> tuple[Endpoint, ApiCaller]:
    """Return a project with an alert, and an API caller for that alert."""
    endpoint = connect(gatebell)
    endpoint.accepted(title=title)
    at = f"/projects/{endpoint.project.replace('/', '%2F')}/alert_management_alerts/1"
    return endpoint, api_caller(gatebell, alice(gatebell), at)


def do(browser: requests.Session, endpoint: Endpoint, what: str, **values: str) -> str:
    """Submit a form of the alert's page, and return the text of the page that follows."""
    page = browser.get(f"{endpoint.service}/{endpoint.project}/-/alerts/1")
    answer = submit(browser, page, form_to(page, f"/alerts/1/{what}"), **values)
    assert answer.status_code == 302, answer.text
    return words(browser.get(endpoint.service + answer.headers["Location"]).text)


@pytest.mark.both_databases
def test_the_api_starts_and_ends_a_snooze(gatebell: LiveGatebell) -> None:
    _, call = begin(gatebell, "Snoozed by API")
    view = call.done("POST", "/snooze", json={"duration": "4h"})
    assert view["state"] == "snoozed"
    assert view["sentence"].startswith("Snoozed until ")
    event = find_last_event(gatebell, "Snoozed by API")
    assert (event.kind, event.details["iid"]) == ("alert.snoozed", 1)
    alert = call.done("GET")
    assert (alert["status"], alert["snoozed_until"]) == ("acknowledged", view["snoozed_until"])
    assert call.done("GET", "/paging") == view
    entries = call.done("GET", "/activity")
    assert [each["kind"] for each in entries] == ["handling", "status"]
    assert call.done("POST", "/wake")["snoozed_until"] is None
    assert find_last_event(gatebell, "Snoozed by API").kind == "alert.woken"
    assert call.done("GET")["status"] == "triggered"
    at = (now() + timedelta(days=8)).isoformat()
    for wrong, why in (
        ({}, "Exactly one of `duration`, `until` and `tomorrow`"),
        ({"duration": "1h", "tomorrow": True}, "Exactly one of `duration`, `until` and `tomorrow`"),
        ({"until": at}, "A snooze must end between 1m and 1w from now."),
        ({"duration": "10s"}, "A snooze must end between 1m and 1w from now."),
    ):
        assert why in call.refused("POST", "/snooze", json=wrong, status=400)
    call.refused("POST", "/wake", status=409)
    call.refused("POST", "/renew", status=409)
    call.refused("POST", "/escalate", status=409)
    call.done("PUT", json={"status": "resolved"})
    call.refused("POST", "/snooze", json={"tomorrow": True}, status=409)


@pytest.mark.long
def test_the_page_of_an_alert_offers_all_manual_actions(gatebell: LiveGatebell) -> None:
    endpoint, call = begin(gatebell, "Handled by page")
    dev = person_for(gatebell, Role.DEVELOPER)
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    mate = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, mate, Role.MAINTAINER)
    assert f"@{mate.username} has no confirmed contact, so no page was sent." in do(
        browser, endpoint, "page", user=mate.username
    )
    address = f"{mate.username}@pager.example"
    gatebell.cli("contacts", "create", mate.username, "--type", "email", "--address", address)
    text = do(browser, endpoint, "page", user=mate.username)
    assert f"@{mate.username} is being paged." in text
    assert f"@{dev.username} paged @{mate.username}" in text
    event = find_last_event(gatebell, "Handled by page")
    assert (event.kind, event.details["person"]) == ("alert.person_paged", mate.username)

    assert "Enter the time at which the snooze ends." in do(
        browser, endpoint, "snooze", **{"for": "until"}
    )
    text = do(browser, endpoint, "snooze", **{"for": "1h"})
    assert "Snoozed until" in text
    listed = words(browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts").text)
    assert "Snoozed, ends" in listed
    text = do(browser, endpoint, "wake")
    assert f"@{dev.username} reopened it before its snooze ended" in text

    policy = gatebell.cli(
        *("escalations", "create", endpoint.project, "--name", "Night", "--default"),
        *("--step", f"0s user:{mate.username}", "--acknowledgement-timeout", "30m"),
    )
    assert policy["acknowledgement_timeout_seconds"] == 1800
    assert policy["summary"].endswith("Acknowledgements expire after 30 min.")
    call.done("PUT", json={"status": "acknowledged"})
    # The policy also covers alerts that are older than the policy.
    view = call.done("POST", "/renew")
    assert (view["state"], view["escalation_policy"]) == ("acknowledged", "Night")
    reader = signed_in(gatebell, alice(gatebell))
    assert "Still on it" in reader.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1").text


def test_the_page_names_the_recipient_of_an_escalation_and_undoes_it(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    mate = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, mate, Role.MAINTAINER)
    steps = (f"0s user:{mate.username}", f"1h user:{mate.username}")
    words_of_steps = [word for step in steps for word in ("--step", step)]
    gatebell.cli(
        *("escalations", "create", endpoint.project, "--name", "Night", "--default"),
        *words_of_steps,
    )
    endpoint.accepted(title="Escalated by page")
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    url = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    label = f"Escalate to @{mate.username}"
    wait_until(lambda: label in words(browser.get(url).text), "the alert is escalated")
    text = do(browser, endpoint, "escalate")
    assert f"Escalating to @{mate.username} in 5 s" in text
    assert label not in text
    assert "The escalation was canceled." in do(browser, endpoint, "escalate/undo")
    assert label in words(browser.get(url).text)


def test_the_command_line_snoozes_and_pages(gatebell: LiveGatebell) -> None:
    endpoint, call = begin(gatebell, "Handled by command")
    view = gatebell.cli("alerts", "snooze", endpoint.project, "1", "--tomorrow")
    assert view["snoozed_until"].endswith("T09:00:00.000Z")
    assert gatebell.cli("alerts", "paging", endpoint.project, "1") == view
    gatebell.cli("alerts", "wake", endpoint.project, "1")
    refused = gatebell.run_cli("alerts", "page", endpoint.project, "1", "nobody-here")
    assert "is not a member who can see the alerts" in refused.stderr
    refused = gatebell.run_cli("alerts", "escalate", endpoint.project, "1")
    assert "No escalation policy applies to this alert." in refused.stderr
    vias = [each["via"] for each in call.done("GET", "/activity")]
    assert "on the command line" in vias


def test_unprocessed_changes_are_shown_on_every_page(
    gatebell: LiveGatebell,
) -> None:
    endpoint, call = begin(gatebell, "Not processed")
    policy = ("--name", "Night", "--default", "--step", f"0s user:{alice(gatebell).username}")
    gatebell.cli("escalations", "create", endpoint.project, *policy)
    assert call.done("GET", "/paging")["state"] is None
    hook = gatebell.cli("webhooks", "create", endpoint.project, "--url", "https://a.example/hook")
    fail_to_process(gatebell, endpoint.project, since=now() - timedelta(seconds=40))
    view = call.done("GET", "/paging")
    assert view["state"] == "unprocessed"
    assert "not processed yet, waiting for 4" in view["sentence"]
    assert "failed twice" in view["sentence"]
    assert 40 <= view["waiting_seconds"] < 50
    shown = gatebell.cli("alerts", "paging", endpoint.project, "1")
    assert shown["state"] == "unprocessed"
    page = signed_in(gatebell, alice(gatebell)).get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    text = words(page.text)
    assert "not processed yet, waiting for 4" in text
    assert "Pages are sent only when an alert opens" not in text
    assert "the default policy, because no route matches" in text
    assert "Incident rules for this alert are not processed yet, waiting for 4" in text
    browser = signed_in(gatebell, alice(gatebell))
    for path in ("incidents", f"settings/webhooks/{hook['id']}/deliveries"):
        listed = words(browser.get(f"{gatebell.url}/{endpoint.project}/-/{path}").text)
        assert "Changes to alerts are not processed yet, waiting for" in listed
    report = words(browser.get(f"{gatebell.url}/{endpoint.project}/-/on_call/reports").text)
    assert "Nobody was paged. Changes to alerts are not processed yet, waiting for" in report
    # An unprocessed alert can be escalated and acknowledged.
    assert call.done("POST", "/escalate")["escalation_policy"] == "Night"
    assert gatebell.cli("alerts", "escalate", endpoint.project, "1")["state"] == "escalated"


def fail_to_process(gatebell: LiveGatebell, path: str, *, since: datetime) -> None:
    """Queue changes of an alert that the worker failed to process twice."""
    with database_of(gatebell) as session:
        alert = session.query(Alert).join(Project).filter(Project.path == path).one()
        session.add_all(
            AlertChange(
                follower=follower,
                project_id=alert.project_id,
                alert_id=alert.id,
                kind="opened",
                severity=alert.severity,
                created_at=since,
                tries=2,
                next_try_at=now() + timedelta(minutes=4),
            )
            for follower in ("escalations", "incidents", "webhooks")
        )
        session.commit()
