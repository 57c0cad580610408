"""Calendars at URLs: refreshing, and failures that keep the known absences."""

import gzip
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy.orm import Session

from domain.access.actor import AccessMethod, Actor
from domain.core.errors import InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.delivery.outgoing import deadlines
from domain.paging.on_call.absences import actions as absence_actions
from domain.paging.on_call.absences.calendar_files import CalendarContent
from domain.paging.on_call.absences.imported_calendars import read_calendar_events
from domain.paging.on_call.absences.types import ImportedCalendar, NewImportedCalendar
from domain.paging.on_call.actions import delete_schedule
from models import OnCallAbsence, OnCallImportedCalendar, User
from tests.support.database.work import work_in
from tests.support.notifications.escalations import Escalated
from tests.support.service.calendars import build_calendar
from tests.support.service.certificates import make_certificate
from tests.support.service.message_receiver import Receiver, running_receiver
from web.jobs.on_call_calendars import refresh_calendars
from web.outgoing import client
from web.settings.environment import Settings

HOUR = timedelta(hours=1)
VACATION = "DTSTART;VALUE=DATE:20260310\nDTEND;VALUE=DATE:20260313\nSUMMARY:Secret trip"


class Server:
    """A server with a calendar, and the settings that trust its certificate."""

    def __init__(self, receiver: Receiver, settings: Settings, certificate: Path) -> None:
        self.receiver = receiver
        self.certificate = certificate
        self.settings = settings
        self.receiver.words = build_calendar(VACATION)
        self.respond(200)

    def respond(self, status: int, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.receiver.answer = lambda _request: (status, named)


@pytest.fixture
def server(shop: Escalated, tmp_path: Path) -> Iterator[Server]:
    certificate = make_certificate(tmp_path)
    with running_receiver(certificate=certificate) as receiver:
        yield Server(
            receiver,
            replace(
                shop.settings, trusted_ca_file=certificate, outgoing_private_addresses="127.0.0.0/8"
            ),
            certificate,
        )


def act_as_alice(shop: Escalated, new: NewImportedCalendar) -> ImportedCalendar:
    actor = Actor(means=AccessMethod.PAGE, id=shop.alice.id, name="alice")
    with Session(shop.engine) as session:
        keyring = Keyring(shop.settings.secret_key)
        work = work_in(session, actor=actor, now=shop.now, policies=[keyring])
        made = absence_actions.create_own_calendar(work, new)
        session.commit()
        return made


def add(shop: Escalated, url: str) -> ImportedCalendar:
    return act_as_alice(shop, NewImportedCalendar(name="Vacation", url=url))


def refresh(shop: Escalated, server: Server, after: timedelta = 2 * HOUR) -> OnCallImportedCalendar:
    """Let the worker read the calendars that are due, and return the only calendar."""
    shop.now += after
    refresh_calendars(server.settings, clock=lambda: shop.now)
    (row,) = shop.rows(OnCallImportedCalendar)
    assert isinstance(row, OnCallImportedCalendar)
    return row


def starts(shop: Escalated) -> list[str]:
    return [f"{each.starts_at:%m-%d %H:%M}" for each in shop.rows(OnCallAbsence)]


def test_a_calendar_is_read_every_hour_and_its_url_is_encrypted(
    shop: Escalated, server: Server
) -> None:
    with shop.session() as session:
        session.get_one(User, shop.alice.id).time_zone = "Europe/Berlin"
    server.respond(200, ETag='"one"', Last_Modified="Mon, 02 Mar 2026 10:00:00 GMT")
    made = add(shop, server.receiver.url.replace("https", "webcal"))
    assert (made.host, made.next_refresh_at) == ("127.0.0.1", shop.now)
    row = refresh(shop, server, timedelta(0))
    assert "events" not in str(vars(row))
    assert (row.last_error, row.refreshed_at, row.event_count) == (None, shop.now, 1)
    assert row.next_refresh_at is not None
    assert timedelta(minutes=50) < row.next_refresh_at - shop.now < timedelta(minutes=70)
    assert starts(shop) == ["03-09 23:00"]
    assert "trip" not in str([vars(each) for each in shop.rows(OnCallAbsence)])
    # Nothing is due before.
    refresh(shop, server, timedelta(minutes=40))
    assert len(server.receiver.received) == 1
    before = [each.id for each in shop.rows(OnCallAbsence)]
    server.respond(304)
    row = refresh(shop, server, HOUR)
    assert (row.last_error, row.refreshed_at) == (None, shop.now)
    # The first request of a day is unconditional, because the period has moved.
    server.respond(200)
    refresh(shop, server, 24 * HOUR)
    assert "if-none-match" not in server.receiver.received[-1].headers
    assert [each.id for each in shop.rows(OnCallAbsence)] == before
    server.receiver.words = build_calendar(VACATION.replace("20260310", "20260311"))
    refresh(shop, server)
    assert starts(shop) == ["03-10 23:00"]


def test_a_conditional_request_has_the_validators(shop: Escalated, server: Server) -> None:
    server.respond(200, ETag='"one"', Last_Modified="Mon, 02 Mar 2026 10:00:00 GMT")
    add(shop, server.receiver.url)
    refresh(shop, server, timedelta(0))
    refresh(shop, server)
    headers = server.receiver.received[1].headers
    assert headers["if-none-match"] == '"one"'
    assert headers["if-modified-since"] == "Mon, 02 Mar 2026 10:00:00 GMT"


def test_failures_are_explained_and_keep_the_known_absences(
    shop: Escalated, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(shop, server.receiver.url)
    refresh(shop, server, timedelta(0))
    for status, problem in (
        (404, "The server returned 404 Not Found."),
        (500, "The server returned 500 Internal Server Error."),
        (304, "The server returned 304 Not Modified: redirects are not followed"),
    ):
        server.respond(status)
        row = refresh(shop, server, 28 * HOUR)
        assert (row.last_error or "").startswith(problem)
    with running_receiver() as private:
        server.respond(302, Location=private.url)
        row = refresh(shop, server, 28 * HOUR)
        assert private.received == []
    assert "302 Found: redirects are not followed" in (row.last_error or "")
    server.respond(200)
    for words, problem in (
        (b"<!doctype html><title>Sign in</title>", "The calendar is not in the iCalendar format"),
        (build_calendar(VACATION)[:-8], "The calendar is not in the iCalendar format (.ics)."),
        (b" " * (1 << 20) + b" ", "The response is larger than 1,048,576 bytes."),
    ):
        server.receiver.words = words
        row = refresh(shop, server, 28 * HOUR)
        assert (row.last_error or "").startswith(problem)
    run = deadlines.run_with_deadline
    monkeypatch.setattr(
        client, "run_with_deadline", lambda _seconds, act, *, stop: run(0.2, act, stop=stop)
    )

    def answer_slowly(_request: object) -> tuple[int, dict[str, str]]:
        time.sleep(0.5)
        return 200, {}

    server.receiver.answer = answer_slowly
    row = refresh(shop, server, 28 * HOUR)
    assert "no complete response was received" in (row.last_error or "").lower()
    # The pause doubles with each failure, up to a day.
    assert row.failures == 8
    assert row.next_refresh_at is not None
    assert row.next_refresh_at - shop.now > 20 * HOUR
    assert row.event_count == 1
    assert starts(shop) == ["03-10 00:00"]
    monkeypatch.undo()
    server.respond(200)
    server.receiver.words = build_calendar()
    row = refresh(shop, server, 28 * HOUR)
    assert (row.last_error, row.failures, starts(shop)) == (None, 0, [])


def test_private_addresses_are_blocked(shop: Escalated, server: Server) -> None:
    server.settings = replace(server.settings, outgoing_private_addresses="")
    add(shop, server.receiver.url)
    row = refresh(shop, server, timedelta(0))
    assert server.receiver.received == []
    assert "127.0.0.1 is" in (row.last_error or "")


def test_calendars_of_blocked_users_are_not_read(shop: Escalated, server: Server) -> None:
    add(shop, server.receiver.url)
    with shop.session() as session:
        session.get_one(User, shop.alice.id).state = "blocked"
    refresh(shop, server, timedelta(0))
    assert server.receiver.received == []


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://calendar.example/x.ics", "must begin with https://"),
        ("ftp://calendar.example/x.ics", "must begin with https://"),
        ("https://alice:secret@calendar.example/", "must not contain a username or password"),
    ],
)
def test_urls_that_are_not_secret_are_rejected(shop: Escalated, url: str, problem: str) -> None:
    with pytest.raises(InvalidError, match=problem):
        add(shop, url)


def test_a_file_is_read_once_for_three_years(shop: Escalated, server: Server) -> None:
    yearly = "DTSTART;VALUE=DATE:20200401\nRRULE:FREQ=YEARLY"
    content = build_calendar(yearly, VACATION).decode()
    made = act_as_alice(shop, NewImportedCalendar(name="File", content=content))
    assert (made.host, made.event_count, made.next_refresh_at) == (None, 4, None)
    refresh(shop, server, 100 * HOUR)
    assert len(starts(shop)) == 4


def test_a_schedule_that_is_deleted_while_a_file_is_read_is_not_found(
    shop: Escalated, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = shop.schedule("Primary", shop.alice)

    def delete_meanwhile(*args: Any, **kw: Any) -> CalendarContent:
        with shop.session() as session:
            delete_schedule(shop.work(session), shop.project_view(session), schedule)
        return read_calendar_events(*args, **kw)

    monkeypatch.setattr(absence_actions, "read_calendar_events", delete_meanwhile)
    new = NewImportedCalendar(name="File", content=build_calendar(VACATION).decode())
    with Session(shop.engine) as session:
        work, project = shop.work(session), shop.project_view(session)
        with pytest.raises(NotFoundError):
            absence_actions.create_holiday_calendar(work, project, schedule, new)


def test_unusual_validators_are_not_stored(shop: Escalated, server: Server) -> None:
    server.respond(200, ETag='"a\0b"', Last_Modified="x" * 300)
    add(shop, server.receiver.url)
    row = refresh(shop, server, timedelta(0))
    assert (row.last_error, row.etag, row.last_modified) == (None, None, None)
    assert starts(shop) == ["03-10 00:00"]


def set_zone(shop: Escalated, zone: str) -> None:
    with shop.session() as session:
        session.get_one(User, shop.alice.id).time_zone = zone


def test_days_and_local_times_follow_the_time_zone_of_the_user(
    shop: Escalated, server: Server
) -> None:
    set_zone(shop, "Europe/Berlin")
    local = "DTSTART:20260316T100000\nDURATION:PT6H"
    fixed = "DTSTART:20260318T100000Z\nDURATION:PT6H"
    content = build_calendar(VACATION, local, fixed).decode()
    act_as_alice(shop, NewImportedCalendar(name="File", content=content))
    assert starts(shop) == ["03-09 23:00", "03-16 09:00", "03-18 10:00"]
    set_zone(shop, "America/New_York")
    refresh(shop, server)
    # The clocks of New York have changed by then, and the clocks of Berlin have not.
    assert starts(shop) == ["03-10 04:00", "03-16 14:00", "03-18 10:00"]
    assert f"{next(iter(shop.rows(OnCallAbsence))).ends_at:%m-%d %H:%M}" == "03-13 04:00"
    set_zone(shop, "Europe/Berlin")
    refresh(shop, server)
    refresh(shop, server)
    assert starts(shop) == ["03-09 23:00", "03-16 09:00", "03-18 10:00"]


def test_a_new_time_zone_also_moves_the_days_of_a_url_that_does_not_answer(
    shop: Escalated, server: Server
) -> None:
    add(shop, server.receiver.url)
    refresh(shop, server, timedelta(0))
    assert starts(shop) == ["03-10 00:00"]
    server.respond(500)
    set_zone(shop, "Asia/Tokyo")
    refresh(shop, server)
    assert starts(shop) == ["03-09 15:00"]


def test_slow_servers_do_not_delay_other_calendars(shop: Escalated, server: Server) -> None:
    arrived = Barrier(4, timeout=20)

    def answer_together(_request: object) -> tuple[int, dict[str, str]]:
        arrived.wait()  # fails unless all servers are requested at the same time
        return 200, {}

    with ExitStack() as stack:
        for _ in range(4):
            slow = stack.enter_context(running_receiver(certificate=server.certificate))
            slow.words, slow.answer = build_calendar(VACATION), answer_together
            add(shop, slow.url)
        refresh_calendars(server.settings, clock=lambda: shop.now)
        rows = shop.rows(OnCallImportedCalendar)
    assert [(row.last_error, row.event_count) for row in rows] == [(None, 1)] * 4
    assert starts(shop) == ["03-10 00:00"] * 4


@pytest.mark.parametrize("calendar", [b"\0", build_calendar(VACATION)])
def test_compressed_responses_are_not_unpacked(
    shop: Escalated, server: Server, calendar: bytes
) -> None:
    """A response of a few kilobytes can contain gigabytes."""
    server.respond(200, Content_Encoding="gzip")
    server.receiver.words = gzip.compress(calendar + b" " * (64 << 20))
    add(shop, server.receiver.url)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = refresh(shop, server, timedelta(0))
    assert server.receiver.received[0].headers.get("accept-encoding", "identity") == "identity"
    assert row.last_error == "The calendar is not in the iCalendar format (.ics)."
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10
