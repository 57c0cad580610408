"""On-call calendars at secret URLs, read with calendar libraries."""

import re
from html import unescape
from typing import Any

import icalendar
import pytest
import requests
from ical.calendar_stream import IcsCalendarStream
from sqlalchemy import select

from domain.access.roles import Role
from models import OnCallFeed
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    database_of,
    make_project,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.accounts.team import give_role, take_role
from tests.support.service.live import LiveGatebell
from tests.support.service.secrets_seen import SECRETS
from tests.support.wire.html_forms import form_to, submit

ADDRESS = re.compile(r'<code id="calendar-address">([^<]+)</code>')


class Subscriber:
    """A developer who shares the rotation of a project's schedule with its owner."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.gatebell = gatebell
        self.owner, self.person = make_user(gatebell), make_user(gatebell, name="bob")
        self.project = make_project(gatebell, self.owner)
        give_role(gatebell, self.project, self.person, Role.DEVELOPER)
        names = f"{self.owner.username},{self.person.username}"
        made = gatebell.cli(
            *("schedules", "create", self.project, "--name", "Primary"),
            *("--time-zone", "Europe/Berlin", "--rotation", f"daily {names} 09:00"),
        )
        self.id = made["id"]
        self.browser = signed_in(gatebell, self.person)
        self.page = f"{gatebell.url}/{self.project}/-/on_call/schedules/{self.id}"

    def press(self, action: str) -> requests.Response:
        page = self.browser.get(self.page)
        return submit(self.browser, page, form_to(page, action))

    def subscribe(self) -> str:
        """Create a new calendar URL, which only the page of the response shows."""
        page = self.press("/calendar")
        assert page.headers["Cache-Control"] == "no-store"
        (found,) = ADDRESS.findall(page.text)
        address = unescape(found)
        SECRETS.remember(address.rpartition("/")[2].removesuffix(".ics"))
        return address


@pytest.fixture
def subscriber(gatebell: LiveGatebell) -> Subscriber:
    return Subscriber(gatebell)


def read(address: str, **headers: str) -> requests.Response:
    return requests.get(address, headers=headers, timeout=10)


def events_of(answer: requests.Response) -> list[Any]:
    """Return the events of a calendar."""
    (calendar,) = icalendar.Calendar.from_ical(answer.content, multiple=True)
    return calendar.walk("VEVENT")


@pytest.mark.long
def test_a_calendar_has_the_shifts_that_the_api_lists(subscriber: Subscriber) -> None:
    address = subscriber.subscribe()
    answer = read(address)
    assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
    events = events_of(answer)
    path = f"/projects/{subscriber.project.replace('/', '%2F')}/on_call/schedules/{subscriber.id}"
    script = api_caller(subscriber.gatebell, subscriber.person, path)
    ahead = script.done("GET", "/shifts")[1:10]
    starts = {f"{each['DTSTART'].dt:%Y-%m-%dT%H:%M:%S.000Z}": each for each in events}
    for shift in ahead:
        event = starts[shift["starts_at"]]
        assert event["DTEND"].dt.isoformat() == shift["ends_at"].replace(".000Z", "+00:00")
        assert event["SUMMARY"].startswith(shift["users"][0]["name"])
    assert len({each["UID"] for each in events}) == len(events)
    half = events_of(read(f"{address}?shifts=mine"))
    assert 0 < len(half) < len(events)
    assert {str(each["SUMMARY"]) for each in half} == {"Bob: Primary"}
    # Another library reads the same events.
    assert len(IcsCalendarStream.calendar_from_ics(answer.text).events) == len(events)
    assert read(address, **{"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert read(f"{address}?shifts=theirs").status_code == 400


@pytest.mark.long
def test_a_calendar_url_ends_with_a_reset_and_with_lost_access(
    subscriber: Subscriber,
) -> None:
    gatebell, former = subscriber.gatebell, subscriber.subscribe()
    assert "You have a calendar URL" in subscriber.browser.get(subscriber.page).text
    assert former not in subscriber.browser.get(subscriber.page).text
    address = subscriber.subscribe()
    assert [read(each).status_code for each in (former, address)] == [404, 200]
    token = address.rpartition("/")[2]
    with database_of(gatebell) as session:
        rows = session.scalars(
            select(OnCallFeed).where(OnCallFeed.schedule_id == subscriber.id)
        ).all()
        assert [row.last_read_at is not None for row in rows] == [True]
        assert all(token.encode() not in row.digest for row in rows)
    give_role(gatebell, subscriber.project, subscriber.person, Role.REPORTER)
    refusal = read(address)
    assert refusal.status_code == 404
    take_role(gatebell, subscriber.project, subscriber.person)
    assert read(address).status_code == 404
    give_role(gatebell, subscriber.project, subscriber.person, Role.DEVELOPER)
    assert read(address).status_code == 200
    subscriber.press("/calendar/end")
    assert read(address).status_code == 404
    address = subscriber.subscribe()
    gatebell.cli("users", "lock", subscriber.person.username)
    assert read(address).status_code == 404
    for wrong in ("gbf-" + "x" * 49, "x", "gbf-%00", "%F0%9F%A6%8A"):
        assert read(f"{gatebell.url}/-/on_call/{wrong}.ics").status_code == 404


@pytest.mark.long
def test_each_member_has_a_separate_calendar_url(subscriber: Subscriber) -> None:
    address = subscriber.subscribe()
    other = signed_in(subscriber.gatebell, subscriber.owner)
    page = other.get(subscriber.page)
    assert "You have a calendar URL" not in page.text
    submit(other, page, form_to(page, "/calendar"))
    assert read(address).status_code == 200
    # A request without the page's form is rejected.
    posted = {"csrf_token": "forged"}
    assert other.post(f"{subscriber.page}/calendar", data=posted, timeout=10).status_code == 400


@pytest.mark.both_databases
def test_the_personal_calendar_contains_own_shifts_of_all_schedules(subscriber: Subscriber) -> None:
    gatebell, person = subscriber.gatebell, subscriber.person
    group = subscriber.project.split("/")[0]
    give_role(gatebell, group, person, Role.DEVELOPER)
    names = f"{subscriber.owner.username},{person.username}"
    gatebell.cli(
        *("schedules", "create", group, "--name", "Nights", "--time-zone", "UTC"),
        *("--rotation", f"weekly {names} mon 20:00"),
    )
    call = api_caller(gatebell, person, "/user/on_call/calendar")
    call.refused("GET", status=404)
    page = subscriber.browser.get(f"{gatebell.url}/-/on_call")
    shown = submit(subscriber.browser, page, form_to(page, "/calendar"))
    assert shown.headers["Cache-Control"] == "no-store"
    (former,) = (unescape(each) for each in ADDRESS.findall(shown.text))
    SECRETS.remember(former.rpartition("/")[2].removesuffix(".ics"))
    theirs = f"Primary ({subscriber.project})", f"Nights ({group})"
    assert titles(former) == set(theirs)
    assert call.done("GET")["last_read_at"] is not None
    # A new URL replaces the old URL; the schedule's URL is separate.
    of_schedule = subscriber.subscribe()
    address = call.done("POST", status=201)["url"]
    SECRETS.remember(address.rpartition("/")[2].removesuffix(".ics"))
    assert [read(each).status_code for each in (former, address, of_schedule)] == [404, 200, 200]
    events = events_of(read(address))
    # Shifts of other users have no event.
    mine = {event["DTSTART"].dt for event in events_of(read(f"{of_schedule}?shifts=mine"))}
    assert mine == {each["DTSTART"].dt for each in events if each["SUMMARY"] == theirs[0]}
    assert len({each["UID"] for each in events}) == len(events)
    # Shifts disappear with the role, and return with it.
    give_role(gatebell, group, person, Role.REPORTER)
    assert titles(address) == {theirs[0]}
    give_role(gatebell, subscriber.project, person, Role.REPORTER)
    assert titles(address) == set()
    give_role(gatebell, group, person, Role.DEVELOPER)
    assert titles(address) == set(theirs)
    gatebell.cli("users", "lock", person.username)
    assert read(address).status_code == 404
    gatebell.cli("users", "unlock", person.username)
    subscriber.browser = open_browser(gatebell, person)  # Locking the user ended the other session.
    page = subscriber.browser.get(f"{gatebell.url}/-/on_call")
    assert "You have a calendar URL" in page.text
    submit(subscriber.browser, page, form_to(page, "/calendar/end"))
    assert read(address).status_code == 404
    made = gatebell.cli("on-call", "renew-calendar", person.username)["url"]
    SECRETS.remember(made.rpartition("/")[2].removesuffix(".ics"))
    assert titles(made) == set(theirs)
    call.done("DELETE", status=204)
    call.refused("DELETE", status=404)


@pytest.mark.long
@pytest.mark.both_databases
def test_calendars_follow_a_transferred_project(subscriber: Subscriber) -> None:
    gatebell, group = subscriber.gatebell, subscriber.project.split("/")[0]
    person, owner = make_user(gatebell, name="carol"), subscriber.owner
    give_role(gatebell, group, person, Role.DEVELOPER)
    names = f"{person.username},{owner.username}"
    for place, name in ((subscriber.project, "Days"), (group, "Nights")):
        given = ("--time-zone", "UTC", "--rotation", f"daily {names} 09:00")
        made = gatebell.cli("schedules", "create", place, "--name", name, *given)
        if name == "Days":
            subscriber.id = made["id"]
            subscriber.page = f"{gatebell.url}/{place}/-/on_call/schedules/{made['id']}"
    subscriber.browser = signed_in(gatebell, person)
    of_days = subscriber.subscribe()
    own = gatebell.cli("on-call", "renew-calendar", person.username)["url"]
    SECRETS.remember(own.rpartition("/")[2].removesuffix(".ics"))
    before = {str(each["UID"]) for each in events_of(read(own))}
    assert titles(own) == {f"Days ({subscriber.project})", f"Nights ({group})"}
    # The user has no role in the new group, so only the shifts of the old group remain.
    elsewhere = f"{group}-elsewhere"
    gatebell.cli("groups", "create", elsewhere, "--owner", owner.username)
    gatebell.cli("projects", "transfer", subscriber.project, elsewhere)
    assert (read(of_days).status_code, titles(own)) == (404, {f"Nights ({group})"})
    give_role(gatebell, elsewhere, person, Role.DEVELOPER)
    assert read(of_days).status_code == 200
    assert titles(own) == {f"Days ({elsewhere}/shop)", f"Nights ({group})"}
    # Calendar programs recognize the same events in the new place.
    assert {str(each["UID"]) for each in events_of(read(own))} == before
    # Deletion of a schedule also deletes its shifts and its URL.
    gatebell.cli("schedules", "delete", f"{elsewhere}/shop", str(subscriber.id))
    assert (read(of_days).status_code, titles(own)) == (404, {f"Nights ({group})"})


def titles(address: str) -> set[str]:
    """Return the titles of the events of a calendar."""
    return {str(each["SUMMARY"]) for each in events_of(read(address))}
