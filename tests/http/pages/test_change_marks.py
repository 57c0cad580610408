"""The marks of pages, which change only when something changes that the pages show."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_project, make_user, now, signed_in
from tests.support.accounts.team import browser_of
from tests.support.alerts.heartbeats import heartbeat
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


class Shop:
    """A project of a new user with an open alert, and its pages."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.gatebell = gatebell
        self.owner: Person = make_user(gatebell)
        self.project = make_project(gatebell, self.owner)
        self.endpoint: Endpoint = connect(gatebell, self.project)
        self.browser = signed_in(gatebell, self.owner)
        self.api: ApiCaller = api_caller(
            gatebell, self.owner, f"/projects/{quote(self.project, safe='')}"
        )
        self.endpoint.accepted(title="Disk full")

    def get(self, page: str) -> requests.Response:
        """Request the mark of a page; a path without a slash is below the project."""
        path = page if page.startswith("/") else f"/{self.project}/-/{page}"
        return self.browser.get(
            f"{self.gatebell.url}{path.removesuffix('/-/')}",
            params={"_part": "mark"},
            allow_redirects=False,
        )

    def read(self, page: str) -> dict[str, Any]:
        answer = self.get(page)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def mark(self, page: str) -> str:
        return str(self.read(page)["mark"])

    def alert(self, method: str, path: str, *, status: int = 200, **sent: Any) -> Any:
        at = f"/alert_management_alerts/{path}"
        return self.api.done(method, at, status=status, json=sent)


@pytest.fixture
def shop(gatebell: LiveGatebell) -> Shop:
    return Shop(gatebell)


def test_a_page_contains_its_mark_and_the_number_of_open_alerts(shop: Shop) -> None:
    shop.endpoint.accepted(title="Disk full again")
    for page in ("/", "/-/alerts", f"/{shop.project}", "alerts", "alerts/1"):
        path = page if page.startswith("/") else f"/{shop.project}/-/{page}"
        html = shop.browser.get(f"{shop.gatebell.url}{path}").text
        given = shop.get(page)
        assert given.headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in given.headers
        assert given.json()["open"] == "2", page
        assert f'data-mark="{given.json()["mark"]}"' in html, page
        assert re.search(r"<title>\(2\) \w", html) or "<title>(2) #1 " in html, page
    assert shop.read("on_call")["open"] is None


def test_the_mark_of_an_alert_changes_with_the_alert(shop: Shop) -> None:
    shop.endpoint.accepted(title="another")
    marks = [shop.mark("alerts/1")]
    shop.alert("PUT", "1", assignee=shop.owner.username)
    marks.append(shop.mark("alerts/1"))
    shop.alert("POST", "1/notes", status=201, body="I restarted the pod.")
    marks.append(shop.mark("alerts/1"))
    shop.api.done("PUT", "/alert_management_alerts/1", json={"status": "acknowledged"})
    marks.append(shop.mark("alerts/1"))
    shop.endpoint.accepted(title="Disk full")
    marks.append(shop.mark("alerts/1"))
    shop.api.done("POST", "/incidents", status=201, json={"alerts": [1]})
    marks.append(shop.mark("alerts/1"))
    shop.api.done(
        "POST", "/silences", status=201, json={"matchers": "service=mail", "duration": "1h"}
    )
    marks.append(shop.mark("alerts/1"))
    assert len(set(marks)) == len(marks)

    shop.alert("POST", "2/notes", status=201, body="This is about another alert.")
    assert shop.mark("alerts/1") == marks[-1]


@pytest.mark.parametrize("page", ["/", "/-/alerts", "/-/", "alerts"])
def test_the_mark_of_a_list_changes_with_open_alerts(shop: Shop, page: str) -> None:
    page = f"/{shop.project}" if page == "/-/" else page
    marks = [shop.mark(page)]
    shop.endpoint.accepted(title="another")
    marks.append(shop.mark(page))
    shop.api.done("PUT", "/alert_management_alerts/1", json={"status": "acknowledged"})
    marks.append(shop.mark(page))
    shop.endpoint.accepted(title="another")
    marks.append(shop.mark(page))
    shop.api.done("PUT", "/alert_management_alerts/2", json={"status": "resolved"})
    marks.append(shop.mark(page))
    assert len(set(marks)) == len(marks)
    assert shop.read(page)["open"] == "1"

    elsewhere = connect(shop.gatebell, make_project(shop.gatebell, make_user(shop.gatebell)))
    elsewhere.accepted(title="an alert of a stranger")
    assert shop.mark(page) == marks[-1]


def test_the_mark_of_an_incident_changes_with_it_and_its_alerts(shop: Shop) -> None:
    shop.api.done("POST", "/incidents", status=201, json={"alerts": [1]})
    marks = [shop.mark("incidents/1")]
    shop.api.done("PUT", "/incidents/1", json={"assignees": [shop.owner.username]})
    marks.append(shop.mark("incidents/1"))
    shop.api.done("POST", "/incidents/1/notes", status=201, json={"body": "It is the database."})
    marks.append(shop.mark("incidents/1"))
    shop.alert("POST", "1/notes", status=201, body="The disk is full.")
    marks.append(shop.mark("incidents/1"))
    shop.api.done("PUT", "/incidents/1", json={"status": "acknowledged"})
    marks.append(shop.mark("incidents/1"))
    assert len(set(marks)) == len(marks)

    shop.endpoint.accepted(title="unrelated")
    assert shop.mark("incidents/1") == marks[-1]


def test_the_mark_of_a_schedule_changes_with_overrides_and_with_the_users_on_call(
    shop: Shop,
) -> None:
    made = shop.api.done(
        "POST", "/on_call/schedules", status=201, json={"name": "Primary", "time_zone": "UTC"}
    )
    shop.api.done("POST", "/incidents", status=201, json={"alerts": [1]})
    # Alerts, incidents and projects show who is on call.
    pages = (
        "on_call",
        f"on_call/schedules/{made['id']}",
        "alerts/1",
        "incidents/1",
        f"/{shop.project}",
    )
    before = [shop.mark(page) for page in pages]
    shift = {
        "user": shop.owner.username,
        "starts_at": (now() - timedelta(hours=1)).isoformat(),
        "ends_at": (now() + timedelta(hours=1)).isoformat(),
    }
    shop.api.done("POST", f"/on_call/schedules/{made['id']}/overrides", status=201, json=shift)
    after = [shop.mark(page) for page in pages]
    assert all(old != new for old, new in zip(before, after, strict=True))
    shop.endpoint.accepted(title="unrelated")
    assert [shop.mark(page) for page in pages[:2]] == after[:2]


def test_the_marks_of_deliveries_and_heartbeats_change_with_requests(shop: Shop) -> None:
    job = heartbeat(shop.gatebell, project=shop.project)
    pages = (
        f"settings/integrations/{shop.endpoint.id}/deliveries",
        "heartbeats",
        f"heartbeats/{job.id}",
    )
    before = [shop.mark(page) for page in pages]
    assert [shop.mark(page) for page in pages] == before
    shop.endpoint.accepted(title="Disk full")
    job.ping()
    after = [shop.mark(page) for page in pages]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert shop.endpoint.post(b"no JSON").status_code == 400
    assert shop.mark(pages[0]) != after[0]


def test_marks_have_the_permissions_of_their_pages(shop: Shop) -> None:
    marks = ("alerts", "alerts/1", "on_call", "heartbeats")
    stranger, guest = (browser_of(shop.gatebell, shop.project, role) for role in (None, Role.GUEST))
    for page in marks:
        url = f"{shop.gatebell.url}/{shop.project}/-/{page}?_part=mark"
        for browser in (stranger, guest):
            usual = browser.get(url.partition("?")[0], allow_redirects=False).status_code
            assert usual in {403, 404}
            assert browser.get(url, allow_redirects=False).status_code == usual
        anonymous = shop.gatebell.http().get(url, allow_redirects=False)
        assert anonymous.status_code == 302
        assert "/users/sign_in" in anonymous.headers["Location"]
    assert shop.get("alerts/99").status_code == 404


def test_an_update_leaves_messages_for_the_page_that_the_user_opens(shop: Shop) -> None:
    url = f"{shop.gatebell.url}/{shop.project}/-/alerts/1"
    token = re.search(r'name="csrf_token" value="([^"]+)"', shop.browser.get(url).text)
    assert token
    browser = shop.browser
    changed = browser.post(
        f"{url}/escalate/undo", data={"csrf_token": token[1]}, allow_redirects=False
    )
    assert changed.status_code == 302, changed.text
    update = browser.get(url, headers={"Gatebell-Update": "1"}).text
    assert "Nothing to undo" not in update
    assert "Nothing to undo" in browser.get(url).text
