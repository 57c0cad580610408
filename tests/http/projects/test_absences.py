"""Absences and holiday calendars: pages, API, permissions and marks in the chart."""

import re
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from domain.access.roles import Role
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_project, make_user, now, signed_in
from tests.support.accounts.team import give_role
from tests.support.service.calendars import build_calendar
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.spec("J1")
DAY = timedelta(days=1)


class Team(NamedTuple):
    """A schedule in which Alice is always on call, and Olga is a Maintainer."""

    at: str
    alice: Person
    olga: Person
    mine: ApiCaller
    schedule: ApiCaller


@pytest.fixture
def team(gatebell: LiveGatebell) -> Team:
    olga, alice = make_user(gatebell), make_user(gatebell)
    project = make_project(gatebell, olga)
    give_role(gatebell, project, alice, Role.DEVELOPER)
    made = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC"),
        *("--rotation", f"daily {alice.username},{olga.username} 09:00"),
    )
    root = f"/projects/{project.replace('/', '%2F')}/on_call/schedules/{made['id']}"
    return Team(
        f"{gatebell.url}/{project}/-/on_call/schedules/{made['id']}",
        alice,
        olga,
        api_caller(gatebell, alice, "/user/on_call"),
        api_caller(gatebell, olga, root),
    )


def days(start: float, end: float) -> dict[str, Any]:
    """Return a period in days from now."""
    return {
        "starts_at": (now() + DAY * start).isoformat(),
        "ends_at": (now() + DAY * end).isoformat(),
    }


def test_an_absence_is_a_conflict_on_all_pages_until_it_is_deleted(
    gatebell: LiveGatebell, team: Team
) -> None:
    browser, inbox = signed_in(gatebell, team.alice), f"{gatebell.url}/-/on_call"
    page = browser.get(f"{inbox}/absences/new")
    form = form_to(page, "/absences/new")
    start, end = (f"{now() + DAY * each:%Y-%m-%dT%H:%M}" for each in (2, 5))
    sent = submit(browser, page, form, starts_at=start, ends_at=end, note="Wedding")
    assert sent.status_code == 302
    shown = words(browser.get(inbox))
    assert "Absence added." in shown
    assert "Wedding" in shown
    assert "You are on call in Primary from" in shown
    name = team.alice.username
    olga = signed_in(gatebell, team.olga)
    schedule = olga.get(team.at)
    assert " is on call from " in words(schedule)
    assert "but absent. Create an override" in words(schedule)
    assert f"{name}, absent, " in schedule.text
    table = schedule.text[schedule.text.index("Show as table") :]
    cells = re.findall(r'scope="row" role="rowheader">(.*?)</th>', table)
    rows = [" ".join(re.sub("<[^>]*>", "", each).split()) for each in cells]
    marked = [each for each in rows if "bsent" in each]
    assert {each.rpartition(name)[2].strip() for each in marked} == {"Absent", "Partly absent"}
    assert all(each.startswith(name) for each in marked)
    assert any(each.startswith(name) for each in rows if each not in marked)
    assert "Wedding" not in schedule.text
    found = team.schedule.done("GET", "/conflicts")
    assert {each["user"]["username"] for each in found} == {name}
    assert team.mine.done("GET", "")["conflicts"] == found
    # The link is filled in with the conflict.
    link = next(each for each in schedule.text.split('"') if "/overrides/new?starts_at=" in each)
    override = olga.get(f"{gatebell.url}{link.replace('&amp;', '&')}")
    made = submit(olga, override, form_to(override, "/overrides/new"), user=team.olga.username)
    assert made.status_code == 302
    assert team.schedule.done("GET", "/conflicts") == found[1:]

    (absence,) = team.mine.done("GET", "/absences")
    assert (absence["note"], absence["calendar_id"]) == ("Wedding", None)
    page = browser.get(inbox)
    assert submit(browser, page, form_to(page, "/delete")).status_code == 302
    assert "but absent" not in words(browser.get(inbox)) + words(olga.get(team.at))
    assert team.mine.done("GET", "/absences") == team.schedule.done("GET", "/conflicts") == []


def test_a_file_of_absences_is_uploaded_and_removed(gatebell: LiveGatebell, team: Team) -> None:
    browser, inbox = signed_in(gatebell, team.alice), f"{gatebell.url}/-/on_call"
    at = f"{inbox}/absence_calendars/new"
    event = f"DTSTART;VALUE=DATE:{now() + DAY * 3:%Y%m%d}\nSUMMARY:Secret trip"

    def upload(name: str, content: bytes, url: str = "") -> Any:
        page = browser.get(at)
        fields = {**dict(form_to(page, "/absence_calendars/new").fields), "name": name, "url": url}
        fields.pop("file", None)
        files = {"file": ("mine.ics", content)}
        return browser.post(at, data=fields, files=files, allow_redirects=False)

    assert "Enter either a URL or a file." in words(upload("Both", b"x", "https://example.com/"))
    rejected = upload("Page", b"<html>")
    assert rejected.status_code == 422
    assert "The calendar is not in the iCalendar format (.ics)." in words(rejected)
    assert upload("Vacation", build_calendar(event, "DTSTART:nonsense")).status_code == 302
    shown = browser.get(inbox)
    assert "1 absence, read" in words(shown)
    assert "1 event could not be read" in words(shown)
    assert "Secret trip" not in shown.text
    (absence,) = team.mine.done("GET", "/absences")
    # An absence of a calendar is changed only there.
    team.mine.refused("DELETE", f"/absences/{absence['id']}", status=400)
    (calendar,) = team.mine.done("GET", "/absence_calendars")
    team.mine.refused("POST", f"/absence_calendars/{calendar['id']}/refresh", status=400)
    page = browser.get(inbox)
    assert submit(browser, page, form_to(page, f"/{calendar['id']}/delete")).status_code == 302
    assert team.mine.done("GET", "/absences") == team.mine.done("GET", "/absence_calendars") == []


def test_the_url_of_a_calendar_is_never_shown(gatebell: LiveGatebell, team: Team) -> None:
    url = "https://calendar.invalid/private-4711/basic.ics"
    made = team.mine.done(
        "POST", "/absence_calendars", json={"name": "Mine", "url": url}, status=201
    )
    assert made["host"] == "calendar.invalid"
    shown = signed_in(gatebell, team.alice).get(f"{gatebell.url}/-/on_call").text
    assert "calendar.invalid" in shown
    assert "private-4711" not in shown + str(made) + gatebell.log_text()
    again = team.mine.done("POST", f"/absence_calendars/{made['id']}/refresh", status=200)
    assert again["next_refresh_at"] >= made["next_refresh_at"]


def test_holidays_are_marked_and_only_maintainers_change_their_calendars(
    gatebell: LiveGatebell, team: Team
) -> None:
    today = now().date()
    content = build_calendar(
        f"DTSTART;VALUE=DATE:{today + DAY:%Y%m%d}\nSUMMARY:Gatebell Day\nTRANSP:TRANSPARENT"
    ).decode()
    new = {"name": "Public holidays", "content": content}
    made = team.schedule.done("POST", "/holiday_calendars", json=new, status=201)
    assert made["event_count"] == 1
    (holiday,) = team.schedule.done("GET", "/holidays")
    assert holiday == {
        "name": "Gatebell Day",
        "first_day": str(today + DAY),
        "last_day": str(today + DAY),
    }
    alice, olga = signed_in(gatebell, team.alice), signed_in(gatebell, team.olga)
    for browser, can_change in ((alice, False), (olga, True)):
        page = browser.get(team.at)
        assert "<title>Gatebell Day</title>" in page.text
        holiday = today + DAY
        assert f"{holiday.day} {holiday:%b %Y} Gatebell Day" in words(page)
        assert ("Add calendar" in words(page)) == can_change
    assert alice.get(f"{team.at}/holiday_calendars/new").status_code == 403
    assert team.schedule.done("GET", "/conflicts") == []
    page = olga.get(team.at)
    form = form_to(page, f"holiday_calendars/{made['id']}/delete")
    assert submit(olga, page, form).status_code == 302
    assert team.schedule.done("GET", "/holidays") == []


def test_other_users_cannot_change_absences_or_calendars(
    gatebell: LiveGatebell, team: Team
) -> None:
    absence = team.mine.done("POST", "/absences", json=days(1, 2), status=201)
    new = {"name": "Mine", "url": "https://calendar.invalid/"}
    calendar = team.mine.done("POST", "/absence_calendars", json=new, status=201)
    other = api_caller(gatebell, team.olga, "/user/on_call")
    assert other.done("GET", "/absences") == other.done("GET", "/absence_calendars") == []
    other.refused("DELETE", f"/absences/{absence['id']}", status=404)
    other.refused("DELETE", f"/absence_calendars/{calendar['id']}", status=404)
    other.refused("POST", f"/absence_calendars/{calendar['id']}/refresh", status=404)
    team.schedule.refused("DELETE", f"/holiday_calendars/{calendar['id']}", status=404)
    for period in (days(-2, -1), days(2, 1), days(1, 3_000)):
        team.mine.refused("POST", "/absences", json=period, status=400)
    for wrong in ({}, {**new, "content": "x"}, {**new, "url": "http://calendar.invalid/"}):
        team.mine.refused("POST", "/absence_calendars", json={"name": "x", **wrong}, status=400)


def test_all_absences_can_be_seen_and_deleted_on_pages(gatebell: LiveGatebell, team: Team) -> None:
    for number in range(102):
        period = days(number + 1, number + 1.5)
        team.mine.done("POST", "/absences", json={**period, "note": f"No {number}."}, status=201)
    browser, at = signed_in(gatebell, team.alice), f"{gatebell.url}/-/on_call"
    assert "No 0." in words(browser.get(at))
    page = browser.get(at)
    while following := re.search(r'href="([^"]*)" rel="next"', page.text):
        page = browser.get(f"{gatebell.url}{following[1]}")
    assert "No 101." in words(page)
    assert "No 0." not in words(page)
    assert submit(browser, page, form_to(page, "/delete")).status_code == 302


def test_operators_list_add_and_delete_absences(gatebell: LiveGatebell, team: Team) -> None:
    period = days(1, 2)
    times = ("--starts-at", period["starts_at"], "--ends-at", period["ends_at"])
    name = team.alice.username
    made = gatebell.cli("absences", "create", name, *times, "--note", "Moving")
    assert team.mine.done("GET", "/absences") == [made]
    assert gatebell.cli("absences", "list", name)["absences"] == [made]
    assert gatebell.cli("absences", "list", team.olga.username)["absences"] == []
    assert gatebell.cli("absences", "delete", name, str(made["id"]))["deleted"] is True
    assert team.mine.done("GET", "/absences") == []
