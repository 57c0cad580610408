"""Bulk changes of the status of alerts, and undoing them."""

import re
from collections import Counter
from datetime import timedelta
from time import monotonic, sleep

import pytest
import requests
from sqlalchemy import insert, select, update

from domain.access.roles import Role
from models import Alert, AlertBatch, Project
from tests.support.accounts.people import alice, database_of, make_project, now, signed_in
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("sqlite")

_PATIENCE_SECONDS = 120
#: Number of alerts in the project; lists count fewer.
MANY = 1_030


def with_many(gatebell: LiveGatebell) -> Endpoint:
    """Return an endpoint with alerts of two services; `mail` has more alerts than one slice."""
    endpoint = connect(gatebell)
    with database_of(gatebell) as session:
        project_id = session.scalar(select(Project.id).where(Project.path == endpoint.project))
        common = {"project_id": project_id, "item_index": 0, "hosts": "", "events": 1}
        rows = [
            {
                **common,
                "iid": number,
                "status": "acknowledged" if number % 2 else "triggered",
                "severity": 1,
                "title": f"alert {number}",
                "service": "mail" if number <= MANY else "web",
                "started_at": now() - timedelta(minutes=number),
                "last_event_at": now(),
                "created_at": now(),
            }
            for number in range(1, MANY + 11)
        ]
        session.execute(insert(Alert), rows)
    return endpoint


def statuses(gatebell: LiveGatebell, project: str) -> dict[int, str]:
    """Return the status of each alert by its number."""
    with database_of(gatebell) as session:
        rows = session.execute(
            select(Alert.iid, Alert.status).join(Project).where(Project.path == project)
        )
        return dict(rows.all())


def finished(browser: requests.Session, url: str) -> requests.Response:
    """Poll the page of a bulk change until the change is finished."""
    end = monotonic() + _PATIENCE_SECONDS
    while monotonic() < end:
        page = browser.get(url)
        if not re.search('data-state="(running|undoing)"', page.text):
            return page
        sleep(0.2)
    pytest.fail("the change was not finished")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_bulk_change_of_all_matches_is_confirmed_and_undone(
    gatebell: LiveGatebell,
) -> None:
    endpoint = with_many(gatebell)
    before = statuses(gatebell, endpoint.project)
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts?service=mail")
    assert "All 1,000+ alerts that match" in words(page)
    form = form_to(page, "/alerts/status")
    asked = submit(browser, page, form, every="yes", status="resolved")
    assert f"Resolve {MANY:,} alerts?" in asked.text
    assert "<dt>Service</dt><dd><bdi>mail</bdi></dd>" in asked.text
    # Nothing changes before the confirmation.
    assert statuses(gatebell, endpoint.project) == before

    begun = submit(browser, asked, form_to(asked, "/alerts/status"), status="resolved")
    url = gatebell.url + begun.headers["Location"]
    # The page may show no progress, because the change can already be finished.
    with database_of(gatebell) as session:
        batch = session.get_one(AlertBatch, int(url.rpartition("/")[2]))
        assert batch.matched == MANY
    done = finished(browser, url)
    assert f"{MANY:,} alerts are now resolved" in done.text
    after = statuses(gatebell, endpoint.project)
    assert Counter(after.values()) == {"resolved": MANY, "triggered": 5, "acknowledged": 5}

    # Another user changes the status of one alert and sets it to resolved again.
    other = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    for status in ("triggered", "resolved"):
        shown = other.get(f"{gatebell.url}/{endpoint.project}/-/alerts/7")
        submit(other, shown, form_to(shown, "/alerts/7/status"), status=status)
    submit(browser, done, form_to(done, "/undo"))
    undone = finished(browser, url)
    assert f"{MANY - 1:,} of {MANY:,} alerts were restored." in undone.text
    assert statuses(gatebell, endpoint.project) == before | {7: "resolved"}
    assert "/undo" not in undone.text


@pytest.mark.long
def test_a_bulk_change_is_undone_from_its_notice(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number in range(3):
        endpoint.accepted(title=f"alert {number}")
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts?search=alert")
    form = form_to(page, "/alerts/status")
    answer = submit(browser, page, form, iid=["1", "3"], status="ignored")
    told = browser.get(gatebell.url + answer.headers["Location"])
    assert "2 alerts are now ignored." in told.text
    stranger = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    undo = form_to(told, "/undo")
    address = gatebell.url + undo.action
    token = form_to(stranger.get(f"{gatebell.url}/groups/new"), "/groups/new").value("csrf_token")
    assert stranger.post(address, data={"csrf_token": token}).status_code == 404
    answer = submit(browser, told, undo)
    assert answer.headers["Location"].endswith("/-/alerts?search=alert")
    told = browser.get(gatebell.url + answer.headers["Location"])
    assert "2 alerts were restored." in told.text
    assert set(statuses(gatebell, endpoint.project).values()) == {"triggered"}
    activity = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1").text
    assert "reopened it by undoing a change" in activity
    # A second click on the same button changes nothing, and shows the same result.
    again = submit(browser, told, undo)
    told = browser.get(gatebell.url + again.headers["Location"])
    assert "2 alerts were restored." in told.text


@pytest.mark.long
def test_a_bulk_change_in_all_projects_skips_read_only_alerts(gatebell: LiveGatebell) -> None:
    person = person_for(gatebell, Role.DEVELOPER)
    mine, seen = (make_project(gatebell, alice(gatebell)) for _ in range(2))
    give_role(gatebell, mine, person, Role.DEVELOPER)
    give_role(gatebell, seen, person, Role.REPORTER)
    for path in (mine, seen):
        connect(gatebell, path).accepted(title="pump stopped", service="pumps")
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/-/alerts?service=pumps")
    assert "1\u20131 of 1" in page.text
    with database_of(gatebell) as session:
        ids = session.scalars(
            select(Alert.id).join(Project).where(Project.path.in_((mine, seen)))
        ).all()
    form = form_to(page, "/-/alerts/status")
    submit(browser, page, form, id=[*map(str, ids), "x", "9" * 30], status="acknowledged")
    assert statuses(gatebell, mine) == {1: "acknowledged"}
    assert statuses(gatebell, seen) == {1: "triggered"}
    asked = submit(browser, page, form, every="yes", status="resolved")
    assert "Resolve 1 alert?" in asked.text
    submit(browser, asked, form_to(asked, "/-/alerts/status"), status="resolved")
    assert statuses(gatebell, mine) == {1: "resolved"}
    assert statuses(gatebell, seen) == {1: "triggered"}


def test_a_bulk_change_cannot_be_undone_after_a_day(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="alert")
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts")
    answer = submit(browser, page, form_to(page, "/alerts/status"), iid="1", status="resolved")
    told = browser.get(gatebell.url + answer.headers["Location"])
    undo = form_to(told, "/undo")
    number = int(undo.action.split("/")[-2])
    with database_of(gatebell) as session:
        old = update(AlertBatch).where(AlertBatch.id == number)
        session.execute(old.values(created_at=now() - timedelta(days=1, minutes=1)))
    assert submit(browser, told, undo).status_code == 422
    assert statuses(gatebell, endpoint.project) == {1: "resolved"}
