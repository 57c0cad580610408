"""The release schedule /help/releases: changes by release, on pages, in feeds and in a calendar."""

import re
import shlex
from collections.abc import Iterator
from datetime import date
from html import unescape
from typing import Any

import feedparser
import pytest
import requests
from ical.calendar import Calendar
from ical.calendar_stream import IcsCalendarStream

from domain.releases.schedule import SCHEDULE
from domain.releases.scheduled_changes import ReleaseChangeState
from tests.support.accounts.administration import forget_settings, get_administrator_browser
from tests.support.accounts.people import make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

PAGES = "/help/releases"
#: Paths below the schedule that other pages and feeds use.
TAKEN = {"check", "changes", "feed", "calendar", "mine"}


@pytest.fixture(autouse=True)
def as_before(gatebell: LiveGatebell) -> Iterator[None]:
    """Reset the settings of the shared service before and after each test."""
    forget_settings(gatebell)
    yield
    forget_settings(gatebell)


def get(gatebell: LiveGatebell, path: str = PAGES, **headers: str) -> requests.Response:
    return gatebell.http().get(gatebell.url + path, headers=headers)


def page_of(gatebell: LiveGatebell, path: str = PAGES) -> str:
    found = get(gatebell, path)
    assert found.status_code == 200, found.text
    return unescape(found.text)


def ids_in(page: str) -> list[str]:
    return re.findall(rf'rowheader"><a href="{PAGES}/([^"]+)"', page)


def row_of(page: str, change_id: str) -> str:
    rows: list[str] = re.findall(r'<tr role="row">.*?</tr>', page, re.DOTALL)
    return next(row for row in rows if f"{PAGES}/{change_id}" in row)


@pytest.mark.long
@pytest.mark.spec("M2", "M5")
def test_every_change_is_listed_by_release_with_its_state(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release="17.0", release_dates="18.0=2025-05-15"):
        page = page_of(gatebell)
    newest_first = sorted(SCHEDULE, key=lambda each: each.effective_release, reverse=True)
    assert ids_in(page) == [each.id for each in newest_first]
    assert re.findall(r"<h2 id=.*>(.*)</h2>", page) == [
        f"Release {each}" for each in ("18.0", "17.5", "17.0", "16.7", "16.0")
    ]
    marks = re.findall(r'<li class="(past|running|ahead)"><a href="#release-([0-9.]+)"', page)
    assert marks == [
        *(("ahead", each) for each in ("18.0", "17.5")),
        ("running", "17.0"),
        *(("past", each) for each in ("16.7", "16.0")),
    ]
    assert "This service runs release 17.0." in page
    assert "removal can happen any time in the month before the release" in page
    assert "15 May 2025" in page
    assert ">In effect<" in row_of(page, "users-offset-pagination")
    assert ">Announced<" in row_of(page, "registry-tags-offset-pagination")
    assert ">Announced, not available here<" in row_of(page, "ci-lint-ref")
    assert ">In effect<" in row_of(page, "tls-versions"), "TLS 1.1 is refused in every release"


def test_no_changes_are_announced_when_all_are_in_force(gatebell: LiveGatebell) -> None:
    page = page_of(gatebell)
    assert "No changes are announced for later releases." in page
    assert "why clients that were written for an older release receive different responses" in page
    assert "removal can happen any time in the month before the release" in page
    assert ids_in(page_of(gatebell, f"{PAGES}?state=announced")) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("release=17.5", {"tls-versions"}),
        ("interface=oauth", {"jwks-alias"}),
        ("interface=graphql&state=in_force", set()),
        ("release=&interface=&state=", {each.id for each in SCHEDULE}),
        ("state=not_hosted", {each.id for each in SCHEDULE if not each.hosted}),
    ],
)
def test_the_list_is_filtered(gatebell: LiveGatebell, query: str, expected: set[str]) -> None:
    page = page_of(gatebell, f"{PAGES}?{query}")
    assert set(ids_in(page)) == expected
    assert ("No matching changes" in page) is not bool(expected)


@pytest.mark.parametrize("query", ["release=99.0", "interface=soap", "state=gone", "colour=red"])
def test_an_unknown_filter_is_rejected(gatebell: LiveGatebell, query: str) -> None:
    assert get(gatebell, f"{PAGES}?{query}").status_code == 400


def test_feeds_have_the_filter_of_the_list(gatebell: LiveGatebell) -> None:
    page = page_of(gatebell, f"{PAGES}?interface=ci&release=17.0")
    for path in (f"{PAGES}.atom", f"{PAGES}.ics", "/api/v4/releases/changes"):
        assert f'href="{path}?release=17.0&interface=ci"' in page


@pytest.mark.spec("M2", "M5")
def test_every_change_has_a_page_with_all_its_details(gatebell: LiveGatebell) -> None:
    for change in SCHEDULE:
        page = page_of(gatebell, f"{PAGES}/{change.id}")
        assert f"<h1>{change.title}</h1>" in page
        for fact in (change.after, change.replacement, change.interface.label):
            assert f"<dd>{fact}</dd>" in page, change.id
        for match in change.matches:
            assert f"<code>{match}</code>" in page, change.id
        assert "Not specified" not in page
        assert (f"<dd>Release {change.release}</dd>") in page
        assert ("Not available here" in page) is not change.hosted


@pytest.mark.long
@pytest.mark.spec("M5")
def test_the_page_of_a_change_shows_its_release_date(gatebell: LiveGatebell) -> None:
    dates = "17.0=2024-05-16 18.0=2025-05-15"
    with changed_settings(gatebell, release="17.0", release_dates=dates):
        before = page_of(gatebell, f"{PAGES}/notes-confidentiality")
        tags = page_of(gatebell, f"{PAGES}/registry-tags-offset-pagination")
        users = page_of(gatebell, f"{PAGES}/users-offset-pagination")
    day = '(<time datetime="2025-05-15">15 May 2025</time>)'
    assert f"Announced for release 18.0 {day}" in tags
    assert f"Announced for release 18.0 {day}" in before
    assert 'In effect since release 17.0 (<time datetime="2024-05-16">16 May 2024</time>)' in users
    versions = page_of(gatebell, f"{PAGES}/tls-versions")
    already = "Announced for release 17.5, but already in effect on this service in every release."
    assert already in versions


def test_the_page_of_a_change_shows_requests_before_and_after(gatebell: LiveGatebell) -> None:
    page = page_of(gatebell, f"{PAGES}/users-offset-pagination")
    for release in ("16.7", "17.0"):
        assert (
            f"curl --header 'Platform-Release: {release}' \\\n"
            "  --header 'PRIVATE-TOKEN: …' \\\n"
            f"  '{gatebell.url}/api/v4/users?page=2'"
        ) in page
    writing = page_of(gatebell, f"{PAGES}/runner-registration")
    assert "curl --request POST --header 'Platform-Release: 17.0'" in writing
    assert "  --data 'token=…' \\\n" in writing
    # A header cannot relax a limit, and unavailable interfaces cannot be tried.
    for change_id in ("api-rate-limits", "ci-lint-ref"):
        assert "curl" not in page_of(gatebell, f"{PAGES}/{change_id}")


#: Statuses of the requests on the page of each change: before and after.
STATUSES = {
    "users-offset-pagination": (200, 400),
    "jwks-alias": (200, 404),
    "runner-registration": (404, 410),
    "instance-runners-reset-registration-token": (404, 410),
}


@pytest.mark.spec("M2", "M3")
@pytest.mark.parametrize("change_id", STATUSES)
def test_the_shown_requests_behave_as_before_and_after_the_change(
    gatebell: LiveGatebell, change_id: str
) -> None:
    token = make_token(gatebell, make_user(gatebell)).clear
    page = page_of(gatebell, f"{PAGES}/{change_id}")
    shown = [
        unescape(each.replace("…", token))
        for each in re.findall(r'<code id="(?:former|later)">(.*?)</code>', page, re.DOTALL)
    ]
    assert tuple(send(gatebell, each) for each in shown) == STATUSES[change_id]


def send(gatebell: LiveGatebell, command: str) -> int:
    """Send the request of a curl command and return the status."""
    words = iter(shlex.split(command)[1:])
    method, headers, data, url = "GET", {}, {}, ""
    for word in words:
        if word == "--request":
            method = next(words)
        elif word == "--header":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "--data":
            name, _, value = next(words).partition("=")
            data[name] = value
        else:
            url = word
    return gatebell.http().request(method, url, headers=headers, data=data).status_code


def test_an_unknown_change_is_not_found(gatebell: LiveGatebell) -> None:
    found = get(gatebell, f"{PAGES}/nothing-of-the-kind")
    assert found.status_code == 404
    assert "This change is not on the release schedule." in found.text


def test_no_change_has_the_path_of_another_page() -> None:
    assert TAKEN.isdisjoint(each.id for each in SCHEDULE)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", each.id) for each in SCHEDULE)
    assert {each.value for each in ReleaseChangeState}.isdisjoint(each.id for each in SCHEDULE)


def test_the_schedule_links_to_the_checker(gatebell: LiveGatebell) -> None:
    for path in (PAGES, f"{PAGES}/ci-job-jwt"):
        assert f'href="{PAGES}/check"' in page_of(gatebell, path)
    assert get(gatebell, f"{PAGES}/check").status_code == 200


@pytest.mark.spec("M5")
def test_pages_link_to_the_schedule(gatebell: LiveGatebell) -> None:
    link = f'href="{PAGES}"'
    alice = signed_in(gatebell, make_user(gatebell))
    for path in ("/", "/help/errors"):
        assert link in alice.get(gatebell.url + path).text
    settings = (
        get_administrator_browser(gatebell)
        .get(f"{gatebell.url}/admin/settings/interfaces-and-records")
        .text
    )
    assert f"{link}>View changes by release</a>" in settings


# Feeds and calendars, read with independent libraries.


ATOM, ICS = "/help/releases.atom", "/help/releases.ics"
DATES = "17.0=2024-05-16 17.3=2024-08-15 18.0=2025-05-15"


def feed_of(gatebell: LiveGatebell, path: str = ATOM) -> Any:
    found = get(gatebell, path)
    assert found.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    read = feedparser.parse(found.content)
    assert (read.bozo, read.version) == (False, "atom10")
    return read


def calendar_of(gatebell: LiveGatebell, path: str = ICS) -> Calendar:
    found = get(gatebell, path)
    assert found.headers["Content-Type"] == "text/calendar; charset=utf-8"
    assert all(len(line) <= 75 for line in found.content.split(b"\r\n"))
    return IcsCalendarStream.calendar_from_ics(found.text)


@pytest.mark.long
@pytest.mark.spec("M2", "M5")
@pytest.mark.both_databases
def test_the_feed_contains_every_change(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        read = feed_of(gatebell)
    assert read.feed.id == read.feed.links[0].href == f"{gatebell.url}{ATOM}"
    assert read.feed.author
    assert read.feed.updated == max(each.updated for each in read.entries)
    assert [each.title for each in read.entries] == [each.title for each in reversed(SCHEDULE)]
    assert len({each.id for each in read.entries}) == len(SCHEDULE)
    users = next(each for each in read.entries if each.title.startswith("Offset pagination of /us"))
    assert users.id == users.link == f"{gatebell.url}/help/releases/users-offset-pagination"
    what = "Release 17.0 (2024-05-16). Requests with page above 1 are rejected. Use "
    assert users.summary.startswith(what)
    assert users.updated_parsed >= users.published_parsed
    assert [each.term for each in users.tags] == ["rest", "release-17.0"]


@pytest.mark.long
def test_an_instance_name_with_xml_characters_is_escaped_in_feeds(gatebell: LiveGatebell) -> None:
    name = '<b>A & "B"</b>; C, \\D'
    with changed_settings(gatebell, instance_name=name, release_dates=DATES):
        assert feed_of(gatebell).feed.author == name
        assert "Releases of" in get(gatebell, ICS).text
        calendar_of(gatebell)


@pytest.mark.long
@pytest.mark.spec("M5")
@pytest.mark.both_databases
def test_the_calendar_contains_dated_releases_with_changes(
    gatebell: LiveGatebell,
) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        events = calendar_of(gatebell).events
    assert [(each.summary, each.dtstart, each.dtend) for each in events] == [
        (
            f"Release {release}: {count} interface changes",
            day,
            date.fromordinal(day.toordinal() + 1),
        )
        for release, day in (("17.0", date(2024, 5, 16)), ("18.0", date(2025, 5, 15)))
        for count in [sum(each.release == release for each in SCHEDULE)]
    ]
    for event, release in zip(events, ("17.0", "18.0"), strict=True):
        assert event.uid == f"release-{release}@localhost"
        assert str(event.url) == f"{gatebell.url}/help/releases?release={release}"
        for change in SCHEDULE:
            assert (change.id in (event.description or "")) is (change.release == release)


def test_without_dates_a_calendar_is_empty(gatebell: LiveGatebell) -> None:
    assert calendar_of(gatebell).events == []


@pytest.mark.long
def test_a_postponed_release_keeps_its_event(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates="18.0=2025-05-15"):
        first = calendar_of(gatebell).events[0]
    with changed_settings(gatebell, release_dates="18.0=2025-06-19"):
        second = calendar_of(gatebell).events[0]
    assert first.uid == second.uid
    assert (first.dtstart, second.dtstart) == (date(2025, 5, 15), date(2025, 6, 19))
    assert second.dtstamp > first.dtstamp


@pytest.mark.long
def test_feeds_and_calendars_can_be_filtered(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        read = feed_of(gatebell, f"{ATOM}?interface=oauth")
        events = calendar_of(gatebell, f"{ICS}?interface=oauth").events
    assert [each.tags[0].term for each in read.entries] == ["oauth"]
    assert read.feed.id == f"{gatebell.url}{ATOM}?interface=oauth"
    assert [each.summary for each in events] == ["Release 17.0: 1 interface change"]
    assert len(feed_of(gatebell, f"{ATOM}?release=99.0").entries) == 0


@pytest.mark.long
@pytest.mark.parametrize("path", [ATOM, ICS])
def test_an_unchanged_feed_is_answered_with_304(gatebell: LiveGatebell, path: str) -> None:
    first = get(gatebell, path)
    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert "Set-Cookie" not in first.headers
    again = get(gatebell, path, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    with changed_settings(gatebell, release_dates=DATES):
        later = get(gatebell, path, **{"If-None-Match": first.headers["ETag"]})
    assert later.status_code == 200


@pytest.mark.parametrize("path", [ATOM, ICS])
def test_feeds_reject_an_unknown_filter(gatebell: LiveGatebell, path: str) -> None:
    found = get(gatebell, f"{path}?interface=soap")
    assert found.status_code == 400
    assert "`interface` must be one of rest, graphql" in found.json()["error"]
