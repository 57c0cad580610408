"""Charts on the pages of projects, environments, applications and the instance."""

import re
from urllib.parse import quote

import pytest

from domain.access.roles import Role
from tests.support.accounts.administration import get_administrator_browser
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    alice,
    bob,
    make_application,
    make_user,
    open_browser,
    try_to_sign_in,
    unique,
)
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import Endpoint, connect
from tests.support.oauth.oauth_wire import new_pair, refresh
from tests.support.service.live import LiveGatebell

Rows = dict[str, list[str]]


def tables_of(html: str) -> dict[str, Rows]:
    """Return the cells below each chart, by the title of the chart and the label of the row."""
    found = {}
    html = re.sub(r'<span class="visually-hidden">.*?</span>', "", html)
    for figure in re.findall(r'<figure class="chart.*?</figure>', html, re.DOTALL):
        (title,) = re.findall(r"<figcaption[^>]*><span>(.*?)</span>", figure)
        rows = re.findall(r'<tr><th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', figure)
        found[title] = {
            re.sub("<.*?>", "", label): [
                re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", cells)
            ]
            for label, cells in rows
        }
    return found


def strips_of(html: str) -> list[str]:
    """Return the text of each strip of 24 hours, which is a link if the strip is not empty."""
    link = r" aria-hidden.*?</svg> <a [^>]*>(.*?)</a>"
    strip = rf'<svg class="hours"[^>]*?(?: aria-label="([^"]*)"|{link})'
    found = re.findall(strip, html, re.DOTALL)
    return [re.sub("<.*?>", "", label or link) for label, link in found]


@pytest.fixture
def endpoint(gatebell: LiveGatebell) -> Endpoint:
    made = connect(gatebell)
    fields = {"severity": "critical", "platform_environment_name": "production"}
    for number in range(3):
        made.accepted(title=f"a{number}", **fields)
    return made


def test_home_groups_and_projects_show_the_alerts_of_24_hours(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    person = make_user(gatebell)
    give_role(gatebell, endpoint.project, person, Role.DEVELOPER)
    hidden = connect(gatebell)
    hidden.accepted(title="not for reporters")
    give_role(gatebell, hidden.project, person, Role.REPORTER)
    browser = open_browser(gatebell, person)
    assert strips_of(browser.get(gatebell.url).text) == ["3 alerts in the last 24 hours"]
    group = endpoint.project.rpartition("/")[0]
    assert "3 alerts in the last 24 hours" in strips_of(browser.get(f"{gatebell.url}/{group}").text)
    overview = strips_of(browser.get(f"{gatebell.url}/{endpoint.project}").text)
    assert overview[0] == "3 alerts in the last 24 hours"
    assert overview[1].endswith("Hours with received deliveries: 1, with rejected deliveries: 0")
    assert strips_of(browser.get(f"{gatebell.url}/{hidden.project}").text) == []


def test_the_chart_of_an_environment_marks_deployments(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    owner = alice(gatebell)
    give_role(gatebell, endpoint.project, owner, Role.OWNER)
    script = api_caller(gatebell, owner, f"/projects/{quote(endpoint.project, safe='')}")
    for ref in ("v1", "v2"):
        deployed = {"sha": "a" * 40, "ref": ref, "tag": True, "status": "success"}
        json = {**deployed, "environment": "production"}
        script.done("POST", "/deployments", json=json, status=201)
    page = open_browser(gatebell, owner).get(
        f"{gatebell.url}/{endpoint.project}/-/environments/production"
    )
    (table,) = tables_of(page.text).values()
    marked = [cells for cells in table.values() if cells[-1]]
    assert marked[0] == ["3", "v2, v1"]
    assert "\u25b22" in page.text
    link = (
        f"/{endpoint.project}/-/alerts?status=all&amp;environment=production&amp;severity=critical"
    )
    assert f'href="{link}"' in page.text


def test_the_page_of_an_application_counts_tokens_and_rejections(gatebell: LiveGatebell) -> None:
    application = make_application(gatebell, bob(gatebell), trusted=True)
    pair = new_pair(gatebell, application)
    assert refresh(gatebell, application, pair.refresh).status_code == 200
    assert refresh(gatebell, application, "wrong").status_code == 400
    page = get_administrator_browser(gatebell).get(
        f"{gatebell.url}/admin/applications/{application.id}"
    )
    tables = tables_of(page.text)
    counts = {title: sum(int(cell) for (cell,) in rows.values()) for title, rows in tables.items()}
    assert counts == {"Tokens issued": 2, "Rejected requests": 1}
    (link,) = set(re.findall(r'href="([^"]*\?day=[^"]*)#rejected"', page.text))
    browser = get_administrator_browser(gatebell)
    of_day = browser.get(f"{gatebell.url}{link}").text
    assert '<details class="program" id="rejected" open>' in of_day
    assert "Only requests of " in of_day
    other = browser.get(f"{gatebell.url}{link[:-10]}2026-01-31").text
    assert "No requests of " in other
    assert "Rejected requests, newest first" not in other
    assert browser.get(f"{gatebell.url}{link[:-10]}yesterday").status_code == 400


def test_the_administration_counts_deliveries_and_failed_sign_ins(
    gatebell: LiveGatebell, endpoint: Endpoint
) -> None:
    def count() -> dict[str, int]:
        page = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin")
        assert "Deliveries of deleted integrations are not counted." in page.text
        tables = tables_of(page.text)
        return {title: int(next(iter(rows.values()))[-1]) for title, rows in tables.items() if rows}

    before = count()
    endpoint.accepted(title="One more")
    assert endpoint.post(b"{").status_code == 400
    person = make_user(gatebell, name=unique("mistyping"))
    try_to_sign_in(gatebell, person.username, "a wrong password")
    after = count()
    assert after["Deliveries of alerts"] == before["Deliveries of alerts"] + 2
    assert after["Failed sign-ins"] == before.get("Failed sign-ins", 0) + 1
