"""The audit log and one's own activity, in light and dark, wide and narrow."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from domain.accounts.users import get_user
from domain.audit.events import (
    STREAMED_ONLY,
    Actor,
    Event,
    EventKind,
    EventSource,
    store_event,
)
from models import AuditStream
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at
from tests.support.accounts.people import Person, database_of, make_user, now, sign_in
from tests.support.service.live import LiveGatebell
from tests.support.service.receiver import running_receiver

_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture(scope="module")
def admin(live_sqlite: LiveGatebell) -> Person:
    """An administrator to whom much has happened."""
    person = make_user(live_sqlite, name="root", admin=True)
    with database_of(live_sqlite) as session:
        user = get_user(person.username, session=session)
        actor = Actor(id=user.id, name=user.username)
        for kind in set(EventKind) - STREAMED_ONLY:
            for event in (
                Event(
                    kind=kind, user_id=user.id, subject="Deploy Board", details={"scopes": "api"}
                ),
                Event(kind=kind, user_id=user.id, subject=NASTY, details={NASTY[:40]: NASTY}),
            ):
                source = EventSource(actor=actor, address="2001:db8:1234:5678:9abc:def0:1234:5678")
                store_event(event, source, session=session, now=now())
    return person


@pytest.fixture
def desk(live_sqlite: LiveGatebell, page: Page, admin: Person) -> Page:
    """A page of the administrator's."""
    have_signed_in(page, live_sqlite, admin)
    return page


@pytest.mark.long
def test_nothing_is_wrong_with_the_pages(live_sqlite: LiveGatebell, desk: Page) -> None:
    addresses = (
        "/admin/audit",
        "/admin/audit?kind=token.revoked&since=2026-01-01",
        "/-/user_settings/activity",
    )
    problems = [
        problem for address in addresses for problem in problems_at(desk, live_sqlite.url + address)
    ]
    assert problems == []


@pytest.fixture
def failing(live_sqlite: LiveGatebell) -> Iterator[str]:
    """A destination to which nothing could be delivered for days, and which lost events."""
    made = live_sqlite.cli("audit-streams", "create", "--url", "http://127.0.0.1:1/" + "x" * 200)
    before = now() - timedelta(days=3)
    with database_of(live_sqlite) as session:
        stream = session.get_one(AuditStream, made["id"])
        stream.failing_since = stream.last_failed_at = stream.last_dropped_at = before
        stream.tries, stream.dropped, stream.last_error = 40, 1_000, "it refused the connection"
        stream.next_try_at = now() + timedelta(hours=1)
        stream.previous_secret_expires_at = now() + timedelta(hours=1)
    yield f"{live_sqlite.url}/admin/audit_streams/{made['id']}"
    live_sqlite.cli("audit-streams", "delete", str(made["id"]))


@pytest.mark.long
def test_nothing_is_wrong_with_the_pages_of_streams(
    live_sqlite: LiveGatebell, desk: Page, failing: str
) -> None:
    base = f"{live_sqlite.url}/admin/audit_streams"
    addresses = (failing, base, f"{base}/new", f"{live_sqlite.url}/admin")
    assert [problem for address in addresses for problem in problems_at(desk, address)] == []


def test_the_overview_leads_to_a_destination_that_fails(
    live_sqlite: LiveGatebell, desk: Page, failing: str
) -> None:
    desk.goto(f"{live_sqlite.url}/admin")
    expect(desk.get_by_role("heading", name="Action needed")).to_be_visible()
    desk.get_by_role("link", name="Open audit stream").click()
    expect(desk).to_have_url(failing)


def test_a_destination_is_added_and_its_secret_revealed(
    live_sqlite: LiveGatebell, desk: Page
) -> None:
    with running_receiver() as receiver:
        desk.goto(f"{live_sqlite.url}/admin/audit_streams/new")
        desk.get_by_label("URL").fill(receiver.url)
        desk.get_by_role("button", name="Add destination").click()
        desk.get_by_text("Reveal").click()
        expect(desk.get_by_text("whsec_")).to_be_visible()
        desk.get_by_role("button", name="Send test event").click()
        expect(desk.get_by_text("Test event delivered: 204")).to_be_visible()
        desk.get_by_text("Delete destination").first.click()
        desk.get_by_role("button", name="Delete destination").click()
        expect(desk.get_by_text("was deleted")).to_be_visible()
    assert receiver.of("audit_stream.tested")


def test_a_filter_is_chosen_and_taken_back(live_sqlite: LiveGatebell, desk: Page) -> None:
    desk.goto(f"{live_sqlite.url}/admin/audit")
    desk.get_by_label("Event").select_option("Token revoked")
    desk.get_by_role("button", name="Filter").click()
    expect(desk.get_by_role("row").filter(has_text="Token revoked").first).to_be_visible()
    expect(desk.get_by_role("row").filter(has_text="Token rotated")).to_have_count(0)
    desk.get_by_role("link", name="Show all").click()
    expect(desk.get_by_label("Event")).to_have_value("")


def test_another_browser_is_signed_out(
    live_sqlite: LiveGatebell, desk: Page, admin: Person
) -> None:
    desk.set_viewport_size({"width": 360, "height": 800})
    other = live_sqlite.http()
    other.headers["User-Agent"] = _AGENT
    other.cookies.update(sign_in(live_sqlite, admin).cookies)
    desk.goto(f"{live_sqlite.url}/-/user_settings/activity")
    before = desk.get_by_text("You are signed in with").text_content()
    desk.get_by_role("table").first.locator("summary").first.click()
    desk.get_by_role("button", name="Sign out this browser").locator("visible=true").click()
    expect(desk.get_by_text("You are signed out of")).to_be_visible()
    assert desk.get_by_text("You are signed in with").text_content() != before
