"""The release schedule to subscribe to, as programs of others read it."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import feedparser
import pytest
import requests
from ical.calendar import Calendar
from ical.calendar_stream import IcsCalendarStream

from domain.releases.schedule import SCHEDULE
from tests.support.accounts.administration import forget_settings
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")

ATOM, ICS = "/help/releases.atom", "/help/releases.ics"
DATES = "17.0=2024-05-16 17.3=2024-08-15 18.0=2025-05-15"


@pytest.fixture(autouse=True)
def as_before(gatebell: LiveGatebell) -> Iterator[None]:
    """The service is shared: nothing is changed before a test, nor after it."""
    forget_settings(gatebell)
    yield
    forget_settings(gatebell)


def get(gatebell: LiveGatebell, path: str, **headers: str) -> requests.Response:
    return gatebell.http().get(gatebell.url + path, headers=headers)


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


@pytest.mark.spec("M2", "M5")
@pytest.mark.both_databases
def test_a_reader_of_feeds_is_told_every_change(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        read = feed_of(gatebell)
    assert read.feed.id == read.feed.links[0].href == f"{gatebell.url}{ATOM}"
    assert read.feed.author
    assert read.feed.updated == max(each.updated for each in read.entries)
    assert [each.title for each in read.entries] == [each.title for each in reversed(SCHEDULE)]
    assert len({each.id for each in read.entries}) == len(SCHEDULE)
    users = next(each for each in read.entries if each.title.startswith("Offset pagination of /us"))
    assert users.id == users.link == f"{gatebell.url}/help/releases/users-offset-pagination"
    assert users.summary.startswith("Release 17.0 (2024-05-16). A page above 1 is refused. Use ")
    assert users.updated_parsed >= users.published_parsed
    assert [each.term for each in users.tags] == ["rest", "release-17.0"]


def test_a_name_with_signs_of_xml_breaks_no_feed(gatebell: LiveGatebell) -> None:
    name = '<b>A & "B"</b>; C, \\D'
    with changed_settings(gatebell, instance_name=name, release_dates=DATES):
        assert feed_of(gatebell).feed.author == name
        assert "Releases of" in get(gatebell, ICS).text
        calendar_of(gatebell)


@pytest.mark.spec("M5")
@pytest.mark.both_databases
def test_a_calendar_has_the_releases_that_change_something_and_have_a_date(
    gatebell: LiveGatebell,
) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        events = calendar_of(gatebell).events
    assert [(each.summary, each.dtstart, each.dtend) for each in events] == [
        (
            f"Release {release}: {count} changes of interfaces",
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


def test_a_release_that_comes_later_keeps_its_event(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates="18.0=2025-05-15"):
        first = calendar_of(gatebell).events[0]
    with changed_settings(gatebell, release_dates="18.0=2025-06-19"):
        second = calendar_of(gatebell).events[0]
    assert first.uid == second.uid
    assert (first.dtstart, second.dtstart) == (date(2025, 5, 15), date(2025, 6, 19))
    assert second.dtstamp > first.dtstamp


def test_one_may_subscribe_to_a_part(gatebell: LiveGatebell) -> None:
    with changed_settings(gatebell, release_dates=DATES):
        read = feed_of(gatebell, f"{ATOM}?interface=oauth")
        events = calendar_of(gatebell, f"{ICS}?interface=oauth").events
    assert [each.tags[0].term for each in read.entries] == ["oauth"]
    assert read.feed.id == f"{gatebell.url}{ATOM}?interface=oauth"
    assert [each.summary for each in events] == ["Release 17.0: 1 change of interfaces"]
    assert len(feed_of(gatebell, f"{ATOM}?release=99.0").entries) == 0


@pytest.mark.parametrize("path", [ATOM, ICS])
def test_what_has_not_changed_is_not_sent_again(gatebell: LiveGatebell, path: str) -> None:
    first = get(gatebell, path)
    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert "Set-Cookie" not in first.headers
    again = get(gatebell, path, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    with changed_settings(gatebell, release_dates=DATES):
        later = get(gatebell, path, **{"If-None-Match": first.headers["ETag"]})
    assert later.status_code == 200


@pytest.mark.parametrize("path", [ATOM, ICS])
def test_a_filter_that_means_nothing_is_refused(gatebell: LiveGatebell, path: str) -> None:
    found = get(gatebell, f"{path}?interface=soap")
    assert found.status_code == 400
    assert "interface must be one of rest, graphql" in found.json()["error"]
