"""The administration, in light and dark, wide and narrow, and pressed by a person."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from domain.accounts.users import get_user
from tests.browser.test_every_page import NASTY, problems_of
from tests.support.administration import forget_settings, store, stored_settings
from tests.support.live import LiveGatebell
from tests.support.people import (
    CALLBACK,
    Person,
    database_of,
    make_application,
    make_user,
    set_state,
    sign_in,
)
from tests.support.senders import connect


@pytest.fixture(scope="module")
def root(live_sqlite: LiveGatebell) -> Person:
    return make_user(live_sqlite, name="root", admin=True)


@pytest.fixture(scope="module")
def addresses(live_sqlite: LiveGatebell, root: Person) -> Iterator[list[str]]:
    """Where one of everything is shown."""
    owner = make_user(live_sqlite, name="owner")
    with database_of(live_sqlite) as session:
        user = get_user(owner.username, session=session)
        user.name, user.must_change_password, user_id = NASTY, True, user.id
    set_state(live_sqlite, make_user(live_sqlite, name="locked"), "locked")
    nasty = (CALLBACK, "http://a.example/")
    made = make_application(live_sqlite, owner, name=NASTY[:100], redirect_uris=nasty)
    connect(live_sqlite).accepted(title="It works")
    live_sqlite.cli(
        *("applications", "create", "Wiki", "--owner", root.username, "--scopes", "openid"),
        *("--redirect-uri", CALLBACK, "--trusted", "--instance-wide"),
    )
    live_sqlite.cli("keys", "rotate")
    store(live_sqlite, "page_size", "5")
    store(live_sqlite, "oauth2_device_grant_flow", "false")
    yield [
        "/admin",
        *(f"/admin/users?group={group}" for group in ("people", "locked", "bots")),
        *("/admin/users?search=nobody-at-all", "/admin/users/new", f"/admin/users/{user_id}"),
        *("/admin/applications", "/admin/applications?of=users", "/admin/applications/new"),
        *(f"/admin/applications/{made.id}{end}" for end in ("", "/edit", "/delete")),
        *("/admin/settings", "/admin/settings/feature-flags", "/admin/settings/address"),
        "/admin/settings/applications-and-tokens",
        *("/admin/settings/interfaces-and-records", "/admin/keys"),
    ]
    forget_settings(live_sqlite)


@pytest.fixture(params=["light wide", "dark narrow"])
def look(
    request: pytest.FixtureRequest, browser: Browser, live_sqlite: LiveGatebell, root: Person
) -> Iterator[Page]:
    """A page of the administrator's, in one look."""
    scheme, width = request.param.split()
    context = browser.new_context(
        viewport={"width": 1280 if width == "wide" else 360, "height": 800}, color_scheme=scheme
    )
    context.set_default_timeout(30_000)
    for name, value in sign_in(live_sqlite, root).cookies.get_dict().items():
        context.add_cookies([{"name": name, "value": value, "url": live_sqlite.url}])
    yield context.new_page()
    context.close()


def test_nothing_is_wrong_with_any_page(
    live_sqlite: LiveGatebell, look: Page, addresses: list[str]
) -> None:
    problems = [
        problem for address in addresses for problem in problems_of(look, live_sqlite.url + address)
    ]
    assert problems == []


@pytest.mark.parametrize("look", ["dark narrow"], indirect=True)
def test_a_password_is_reset_and_revealed(live_sqlite: LiveGatebell, look: Page) -> None:
    charlie = make_user(live_sqlite, name="charlie")
    look.goto(f"{live_sqlite.url}/admin/users?search={charlie.username}")
    look.get_by_role("link", name=charlie.username).click()
    look.locator("summary", has_text="Reset password").click()
    look.get_by_role("button", name="Reset password").click()
    password = look.locator("#new-password")
    expect(password).to_be_hidden()
    look.locator("summary", has_text="Reveal").click()
    expect(password).to_be_visible()
    helped = Person(username=charlie.username, email="", password=password.inner_text())
    page = sign_in(live_sqlite, helped).get(f"{live_sqlite.url}/groups")
    assert page.url.endswith("/-/user_settings/security")


@pytest.mark.parametrize("look", ["light wide"], indirect=True)
def test_a_setting_is_changed_and_taken_back(live_sqlite: LiveGatebell, look: Page) -> None:
    forget_settings(live_sqlite)
    look.goto(f"{live_sqlite.url}/admin/settings")
    look.get_by_role("link", name="Change applications and tokens").click()
    field = look.get_by_label("Refresh replay")
    field.fill("61")
    look.get_by_role("button", name="Save settings").click()
    expect(field).to_be_focused()
    expect(field).to_have_value("61")
    field.fill("30")
    field.press("Enter")  # is no way back by accident
    expect(look.get_by_text("Saved: Refresh replay.")).to_be_visible()
    assert stored_settings(live_sqlite) == {"refresh_replay_seconds": "30"}
    look.get_by_role("button", name="Back to that for Refresh replay").click()
    expect(field).to_have_value("10")
    assert stored_settings(live_sqlite) == {}
