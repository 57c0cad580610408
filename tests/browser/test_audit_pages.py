"""The audit log and one's own activity, in light and dark, wide and narrow."""

import pytest
from playwright.sync_api import Page, expect

from domain.accounts.users import get_user
from domain.audit.events import Actor, Event, EventKind, EventSource, store_event
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at
from tests.support.accounts.people import Person, database_of, make_user, now, sign_in
from tests.support.service.live import LiveGatebell

_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture(scope="module")
def admin(live_sqlite: LiveGatebell) -> Person:
    """An administrator to whom much has happened."""
    person = make_user(live_sqlite, name="root", admin=True)
    with database_of(live_sqlite) as session:
        user = get_user(person.username, session=session)
        actor = Actor(id=user.id, name=user.username)
        for kind in EventKind:
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
