"""What releases change for whom: the user's page, the instance's, and the question of settings."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from domain.accounts.users import get_user
from domain.api_usage.storing import ANONYMOUS, Consumer, Count, Counted, Shape, store_counted
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at, problems_of
from tests.support.accounts.administration import forget_settings, store, stored_settings
from tests.support.accounts.people import Person, database_of, make_application, make_user, now
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

SHAPES = (
    Shape("GET", "/api/v4/users", ("page",), ("users-offset-pagination",)),
    Shape("PUT", "/api/v4/projects/:id", ("operations_access_level",), ()),
    Shape("GET", "/api/v4/projects", (), ()),
)


@pytest.fixture(scope="module")
def root(live_sqlite: LiveGatebell) -> Person:
    """An administrator whose token and application use what later releases change."""
    person = make_user(live_sqlite, name="root", admin=True)
    token = make_token(live_sqlite, person, name=NASTY[:100])
    board = make_application(live_sqlite, person, name=NASTY[:100])
    moment = now()
    with database_of(live_sqlite) as session:
        user_id = get_user(person.username, session=session).id
        consumers = (
            Consumer(user_id, None, token.id),
            Consumer(user_id, board.client_id, None),
            ANONYMOUS,
        )
        counted = [
            Counted(each, shape, Count(1_234, moment - timedelta(days=3), moment, "2001:db8::7"))
            for each in consumers
            for shape in SHAPES
        ]
        store_counted(counted, session=session)
    return person


@pytest.fixture(autouse=True)
def early_release(live_sqlite: LiveGatebell) -> Iterator[None]:
    """A release before all changes runs."""
    forget_settings(live_sqlite)
    store(live_sqlite, "release", "15.11")
    yield
    forget_settings(live_sqlite)


@pytest.mark.long
def test_nothing_is_wrong_with_the_pages(
    live_sqlite: LiveGatebell, root: Person, page: Page
) -> None:
    have_signed_in(page, live_sqlite, root)
    problems = [
        problem
        for path in (
            "/-/user_settings/api_changes",
            "/admin/api_usage",
            "/admin/api_usage?change=users-offset-pagination",
        )
        for problem in problems_at(page, live_sqlite.url + path)
    ]
    ask_for_17(live_sqlite, page)
    assert problems + problems_of(page) == []


def test_a_release_is_changed_without_scripts_after_a_question(
    live_sqlite: LiveGatebell, root: Person, plain_page: Page
) -> None:
    have_signed_in(plain_page, live_sqlite, root)
    ask_for_17(live_sqlite, plain_page)
    expect(plain_page.get_by_role("heading", level=1)).to_have_text(
        "Change the running release to 17.0?"
    )
    expect(plain_page.get_by_text("consumers would break within a second")).to_be_visible()
    plain_page.get_by_role("link", name="Cancel").click()
    assert stored_settings(live_sqlite)["release"] == "15.11"

    ask_for_17(live_sqlite, plain_page)
    plain_page.get_by_role("button", name="Change release to 17.0").click()
    expect(plain_page.get_by_text("Saved: Release.")).to_be_visible()
    assert stored_settings(live_sqlite)["release"] == "17.0"


def ask_for_17(live_sqlite: LiveGatebell, page: Page) -> None:
    page.goto(f"{live_sqlite.url}/admin/settings/interfaces-and-records")
    page.get_by_label("Release", exact=True).fill("17.0")
    page.get_by_role("button", name="Save settings").click()
