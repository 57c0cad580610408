"""Days and hours of charts lead to lists with exactly what they count."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import quote

import pytest
import requests
from sqlalchemy import select, update

from domain.access.roles import Role
from models import Alert, Project, User
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    Person,
    database_of,
    make_user,
    now,
    open_browser,
    try_to_sign_in,
)
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases


def set_other_day(gatebell: LiveGatebell, person: Person) -> None:
    """Set a time zone in which the current day is not the day in UTC."""
    zone = "Pacific/Kiritimati" if now().hour >= 10 else "Pacific/Honolulu"
    with database_of(gatebell) as session:
        session.execute(update(User).where(User.username == person.username).values(time_zone=zone))


def linked_rows(html: str, title: str) -> dict[str, int]:
    """Return the URLs of the rows of a chart's table, with their last number."""
    figures = re.findall(r'<figure class="chart.*?</figure>', html, re.DOTALL)
    (figure,) = (each for each in figures if f"<span>{title}</span>" in each)
    rows = re.findall(r'<tr><th scope="row"[^>]*><a href="(.*?)">.*?</th>(.*?)</tr>', figure)
    # The bars are links too, but the Tab key skips them.
    for href, _ in rows:
        assert f'<a class="column" href="{href}" tabindex="-1">' in figure
    numbers = {href: re.findall(r'<td class="number">([\d,]+)</td>', cells) for href, cells in rows}
    return {unescape(href): int(found[-1]) for href, found in numbers.items()}


def strip_links(html: str) -> list[str]:
    """Return the URLs of the hours of the first strip, and the URL of all hours."""
    strip = re.search(r'<svg class="hours".*?</svg> <a [^>]*>', html, re.DOTALL)
    return re.findall(r'href="(.*?)"', unescape(strip[0])) if strip else []


def alerts_in(html: str) -> int:
    return len(set(re.findall(r"/-/alerts/(\d+)\"", html)))


class Member:
    """A maintainer in another time zone, whose project has three new alerts and two old ones."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.gatebell, self.endpoint = gatebell, connect(gatebell)
        person = make_user(gatebell)
        self.group = self.endpoint.project.rpartition("/")[0]
        give_role(gatebell, self.group, person, Role.OWNER)
        set_other_day(gatebell, person)
        self.person, self.browser = person, open_browser(gatebell, person)
        self._store_old_alerts()
        for number in range(3):
            self.endpoint.accepted(title=f"new {number}", platform_environment_name="production")

    def _store_old_alerts(self) -> None:
        """Store two alerts that were received two days ago, and that started five days ago."""
        received, started = now() - timedelta(days=2), now() - timedelta(days=5)
        with database_of(self.gatebell) as session:
            project_id = session.scalar(
                select(Project.id).where(Project.path == self.endpoint.project)
            )
            for number in (901, 902):
                session.add(
                    Alert(
                        project_id=project_id,
                        iid=number,
                        item_index=0,
                        status="triggered",
                        severity=1,
                        title="old",
                        hosts="",
                        events=1,
                        started_at=started,
                        last_event_at=received,
                        created_at=received,
                        environment="production",
                    )
                )

    def get(self, path: str) -> str:
        page: requests.Response = self.browser.get(f"{self.gatebell.url}{path}")
        assert page.status_code == 200, page.text
        return page.text


@pytest.fixture
def member(gatebell: LiveGatebell) -> Member:
    return Member(gatebell)


@pytest.fixture
def endpoint(member: Member) -> Endpoint:
    return member.endpoint


def test_a_day_leads_to_the_alerts_that_it_counts(member: Member, endpoint: Endpoint) -> None:
    project = endpoint.project
    for path, title in (
        (f"/{project}/-/alerts", "Alerts opened in the last 14 days"),
        ("/-/alerts", "Alerts opened in the last 14 days"),
        (f"/{project}/-/environments/production", "Alerts opened in the last 14 days"),
        (f"/{project}/-/on_call/reports?period=last_week", "Alerts by day"),
        (f"/groups/{member.group}/-/on_call/reports?period=last_week", "Alerts by day"),
    ):
        found = linked_rows(member.get(path), title)
        assert sorted(found.values()) == [2, 3], path
        for href, count in found.items():
            page = member.get(href)
            assert alerts_in(page) == count, href
            (chip,) = re.findall(r'<a href="([^"]*)"><span>(?:Received|Started): <bdi>', page)
            assert alerts_in(member.get(unescape(chip))) == 5


def test_the_api_filters_alerts_by_the_same_times(member: Member, endpoint: Endpoint) -> None:
    call = api_caller(member.gatebell, member.person, scopes="read_alerts")
    url = f"/projects/{quote(endpoint.project, safe='')}/alert_management_alerts"
    day = f"{now() - timedelta(days=1):%Y-%m-%d}"
    for query, titles in (
        ({"created_before": day}, {"old"}),
        ({"created_after": day}, {"new 0", "new 1", "new 2"}),
        ({"started_before": day, "created_after": day}, set()),
    ):
        found = call.done("GET", url, params={"status": "all", **query})
        assert {each["title"] for each in found} == titles
    assert "created_after" in call.refused("GET", url, params={"created_after": "yesterday"})


def test_an_hour_leads_to_its_alerts_and_deliveries(member: Member, endpoint: Endpoint) -> None:
    project = endpoint.project
    for path in ("", f"/{member.group}", f"/{project}"):
        hour, whole = strip_links(member.get(path))
        assert (alerts_in(member.get(hour)), alerts_in(member.get(whole))) == (3, 3)
    page = member.get(f"/{project}/-/settings/integrations")
    hour, whole = strip_links(page)
    assert "Hours with received deliveries: 1, with rejected deliveries: 0" in page
    for href in (hour, whole):
        log = member.get(href)
        assert len(re.findall(r"/deliveries/\d+\"", log)) == 3
        assert "Received: " in log
    earlier = whole.partition("&received_before")[0].replace("after", "before")
    assert "No matching deliveries" in member.get(earlier)


def test_a_mark_leads_to_the_deployments_of_its_day(member: Member, endpoint: Endpoint) -> None:
    call = api_caller(
        member.gatebell, member.person, f"/projects/{quote(endpoint.project, safe='')}"
    )
    json = {"sha": "a" * 40, "ref": "v7", "tag": True, "status": "success"}
    call.done("POST", "/deployments", json={**json, "environment": "production"}, status=201)
    address = f"/{endpoint.project}/-/environments/production"
    (href,) = set(re.findall(r'href="([^"]*\?day=[^"]*)"', member.get(address)))
    page = member.get(href)
    assert f"Day: {now().day} {now():%b %Y} (UTC)" in page
    assert "<bdi>v7</bdi>" in page
    other = re.sub(r"day=[\d-]+", "day=2026-01-01", href)
    assert "No deployments on this day" in member.get(other)


def test_days_of_the_administration_lead_to_their_lists(member: Member, endpoint: Endpoint) -> None:
    gatebell = member.gatebell
    administrator = make_user(gatebell, admin=True)
    set_other_day(gatebell, administrator)
    member.browser = open_browser(gatebell, administrator)
    assert endpoint.post(b"{").status_code == 400
    try_to_sign_in(gatebell, member.person.username, "a wrong password")
    overview = member.get("/admin")
    for href, count in linked_rows(overview, "Deliveries of alerts").items():
        page = member.get(href)
        text = "delivery" if count == 1 else "deliveries"
        assert f"{count:,} {text} in this period" in page
        assert page.count('data-label="Outcome"') == min(count, 20)
        assert "Received: " in page
    for href, count in linked_rows(overview, "Failed sign-ins").items():
        assert member.get(href).count('data-label="When"') == min(count, 20), href
