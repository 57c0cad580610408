"""Environments: created by alerts or by users, each with a page of its open alerts."""

import re
from html import unescape
from urllib.parse import quote

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import browser_of
from tests.support.alerts.senders import Endpoint, connect, item, webhook
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("postgres")

ROW = re.compile(r'/-/alerts/\d+"><bdi>([^<]*)</bdi>')


def list_of(browser: requests.Session, endpoint: Endpoint, query: str = "") -> requests.Response:
    return browser.get(f"{endpoint.service}/{endpoint.project}/-/environments{query}")


def links(page: requests.Response) -> dict[str, str]:
    """Return the URLs of the listed environments by their names."""
    assert page.status_code == 200, page.text
    found = re.findall(r'href="([^"]*/-/environments/[^"]*)"><bdi>([^<]*)</bdi>', page.text)
    return {name: address for address, name in found}


@pytest.mark.spec("J4", "I10", "I13")
def test_the_page_of_an_environment_lists_its_open_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="in production", platform_environment_name="production")
    endpoint.accepted(title="nowhere")
    metrics = connect(gatebell, endpoint.project, kind="prometheus", name="Metrics")
    labels = {"alertname": "m", "platform_environment_name": "production"}
    metrics.post(webhook(item("m", labels=labels), item("n")))
    endpoint.accepted(
        title="over", platform_environment_name="production", end_time="2026-01-01T00:00:00Z"
    )
    browser = browser_of(gatebell, endpoint.project, Role.DEVELOPER)
    addresses = links(list_of(browser, endpoint))
    assert list(addresses) == ["production"]
    page = browser.get(gatebell.url + addresses["production"])
    assert sorted(ROW.findall(page.text)) == ["in production", "m"]
    assert "2 open alerts." in page.text
    assert "3 alerts" in page.text
    assert (
        f'href="{addresses["production"]}"'
        in browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1").text
    )


ODD_NAMES = (
    *("..", "../../groups", "a//b", "~1", "/", "%2e%2e", "a?b#c", "review/new shop", "x\ny"),
    *("生产", "<script>alert(1)</script>", "\u202eevil", "\u200b", "-", "x" * 300, "a\x00b"),
    "{{7*7}}",
)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J4")
def test_environments_with_unusual_names_have_a_page(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    before: set[str] = set()
    for number, name in enumerate(ODD_NAMES):
        endpoint.accepted(title=f"found {number}", platform_environment_name=name)
        page = list_of(browser, endpoint)
        addresses = set(links(page).values())
        (address,) = addresses - before
        before = addresses
        assert address.startswith(f"/{endpoint.project}/-/environments/"), name
        shown = browser.get(gatebell.url + address)
        assert shown.status_code == 200, name
        assert ROW.findall(shown.text) == [f"found {number}"], name
        assert "<script>alert" not in page.text + shown.text, name


@pytest.mark.long
@pytest.mark.spec("J4")
def test_a_maintainer_creates_and_deletes_an_environment(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    page = list_of(browser, endpoint)
    form = form_with(page, "name")
    made = submit(browser, page, form_with(page, "name"), name=" staging ")
    page = browser.get(gatebell.url + made.headers["Location"])
    assert "No open alerts here" in page.text
    for name in ("", "  ", "x" * 256, "a\x00b", "a\nb", "\u202e"):
        assert submit(browser, page, form, name=name).status_code == 422, name
    again = submit(browser, page, form, name="staging")
    assert again.status_code == 422
    assert "The environment staging already exists." in again.text
    gone = submit(browser, page, form_to(page, "/delete"))
    assert "staging was deleted" in browser.get(gatebell.url + gone.headers["Location"]).text
    assert browser.get(gatebell.url + made.headers["Location"]).status_code == 404


def set_status(gatebell: LiveGatebell, endpoint: Endpoint, status: str) -> None:
    """Set the status of a project's first alert on its page."""
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/{endpoint.project}/-/alerts/1")
    assert submit(browser, page, form_to(page, "/status"), status=status).ok


def delete_environment(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    """Delete the only environment of a project."""
    browser = signed_in(gatebell, alice(gatebell))
    page = list_of(browser, endpoint)
    (address,) = links(page).values()
    page = browser.get(gatebell.url + address)
    assert submit(browser, page, form_to(page, "/delete")).ok
    assert links(list_of(browser, endpoint)) == {}


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J4")
def test_a_report_or_a_reopened_alert_restores_a_deleted_environment(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    report = {"title": "a", "platform_environment_name": "live"}
    browser = signed_in(gatebell, alice(gatebell))
    endpoint.accepted(**report)
    for others in ([], [{"title": "Other"}]):
        set_status(gatebell, endpoint, "ignored")
        delete_environment(gatebell, endpoint)
        assert endpoint.post_json([report, *others])[0]["iid"] == 1
        assert list(links(list_of(browser, endpoint))) == ["live"]
    # A reopened alert restores the environment too.
    set_status(gatebell, endpoint, "resolved")
    delete_environment(gatebell, endpoint)
    set_status(gatebell, endpoint, "triggered")
    assert list(links(list_of(browser, endpoint))) == ["live"]


@pytest.mark.long
def test_an_alert_links_to_its_environment_while_it_exists(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(platform_environment_name="live / \u00e9 ?")
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts/1"
    (link,) = re.findall(r'href="([^"]*/-/environments/[^"]+)"', browser.get(address).text)
    assert browser.get(gatebell.url + unescape(link)).status_code == 200
    set_status(gatebell, endpoint, "resolved")
    delete_environment(gatebell, endpoint)
    page = browser.get(address).text
    assert "live / \u00e9 ?" in page
    assert f"{endpoint.project}/-/environments/" not in page


@pytest.mark.both_databases
@pytest.mark.spec("L4")
def test_a_search_for_environments_needs_three_characters(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for name in ("production", "pre-production", "50%-canary", "test"):
        endpoint.accepted(platform_environment_name=name)
    browser = signed_in(gatebell, alice(gatebell))
    short = list_of(browser, endpoint, "?search=pr")
    assert short.status_code == 400
    assert "at least 3 characters" in short.text
    assert list(links(list_of(browser, endpoint, "?search=PROD"))) == [
        "pre-production",
        "production",
    ]
    assert list(links(list_of(browser, endpoint, f"?search={quote('50%')}"))) == ["50%-canary"]
    assert links(list_of(browser, endpoint, f"?search={quote('%%%')}")) == {}
    assert links(list_of(browser, endpoint, "?search=%00%00%00")) == {}


@pytest.mark.both_databases
def test_the_list_of_environments_is_paginated(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    names = [f"e{number:02}" for number in range(25)]
    labels = ({"alertname": name, "platform_environment_name": name} for name in names)
    endpoint.post(webhook(*(item(each["alertname"], labels=each) for each in labels)))
    browser = signed_in(gatebell, alice(gatebell))
    first = list_of(browser, endpoint)
    found = re.search(r'href="([^"]*)" rel="next"', first.text)
    assert found is not None
    second = browser.get(gatebell.url + found[1].replace("&amp;", "&"))
    assert [*links(first), *links(second)] == names


def api(
    gatebell: LiveGatebell, endpoint: Endpoint, path: str, *, method: str = "GET", **given: object
) -> requests.Response:
    at = f"/projects/{quote(endpoint.project, safe='')}/environments"
    return api_caller(gatebell, alice(gatebell), at)(method, path, json=given or None)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J4", "L4")
def test_the_api_lists_shows_creates_and_deletes_environments(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(platform_environment_name="Production/EU")
    made = api(gatebell, endpoint, "", method="POST", name="staging")
    assert made.status_code == 201
    listed = api(gatebell, endpoint, "")
    assert listed.headers["X-Total"] == "2"
    first, second = listed.json()
    assert second == made.json()
    assert first.keys() == {"id", "name", "slug", "external_url", "state", "created_at"}
    assert (first["name"], first["state"], first["external_url"]) == (
        "Production/EU", "available", None,
    )  # fmt: skip
    assert re.fullmatch(r"production-eu-[0-9a-z]{6}", first["slug"])
    assert second["slug"] == "staging"
    assert api(gatebell, endpoint, f"/{second['id']}").json() == second
    assert api(gatebell, endpoint, "?name=staging").json() == [second]
    assert api(gatebell, endpoint, "?name=stag").json() == []
    assert api(gatebell, endpoint, "?search=STAG").json() == [second]
    assert api(gatebell, endpoint, "", method="POST", name="staging").status_code == 400
    for query in ("?search=ab", "?search=%C3%A4%C3%A4", "?search=a", "?name=a&search=abc"):
        answer = api(gatebell, endpoint, query)
        # A conflict of two parameters is not an error of a single field.
        keys = {"error"} if "&" in query else {"error", "errors"}
        assert (answer.status_code, answer.json().keys()) == (400, keys), query
    page = browser_of(gatebell, endpoint.project, Role.OWNER).get(
        f"{gatebell.url}/{endpoint.project}/-/environments/Production/EU"
    )
    assert (page.status_code, "Delete environment" in page.text) == (200, False)
    in_use = api(gatebell, endpoint, f"/{first['id']}", method="DELETE")
    assert in_use.status_code == 409
    assert "has open alerts" in in_use.json()["message"]
    assert api(gatebell, endpoint, f"/{second['id']}", method="DELETE").status_code == 204
    assert api(gatebell, endpoint, f"/{second['id']}").status_code == 404


@pytest.mark.long
@pytest.mark.both_databases
def test_an_environment_is_stopped_until_its_next_deployment(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(platform_environment_name="staging")
    (made,) = api(gatebell, endpoint, "").json()
    browser = browser_of(gatebell, endpoint.project, Role.MAINTAINER)
    address = f"{gatebell.url}/{endpoint.project}/-/environments/staging"
    page = browser.get(address)
    submit(browser, page, form_to(page, "/stop"))
    page = browser.get(address)
    assert ">Stopped</span>" in page.text
    assert "Stop environment" not in page.text
    assert ">Stopped</span>" in list_of(browser, endpoint).text
    stopped = api(gatebell, endpoint, f"/{made['id']}")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
    again = api(gatebell, endpoint, f"/{made['id']}/stop", method="POST")
    assert (again.status_code, again.json()) == (200, stopped.json())
    endpoint.accepted(title="an alert starts nothing", platform_environment_name="staging")
    assert api(gatebell, endpoint, "?states=stopped").json() == [stopped.json()]
    for others in ("?states=available", "?states=stopping"):
        assert api(gatebell, endpoint, others).json() == []
    deployment = {"environment": "staging", "sha": "a" * 40, "ref": "main"}
    reported = requests.post(
        f"{gatebell.url}/api/v4/projects/{quote(endpoint.project, safe='')}/deployments",
        headers={"PRIVATE-TOKEN": make_token(gatebell, alice(gatebell)).clear},
        json={**deployment, "tag": False, "status": "success"},
        timeout=20,
    )
    assert (reported.status_code, reported.json()["environment"]["state"]) == (201, "available")
    assert api(gatebell, endpoint, "?states=available").json() == [made]
