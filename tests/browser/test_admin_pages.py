"""The administration, in light and dark, wide and narrow, and pressed by a person."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from domain.accounts.users import get_user
from models import User
from tests.browser.doors import have_signed_in
from tests.browser.looks import NASTY, problems_at
from tests.browser.page_lists.identity_pages import add_provider, remove_providers
from tests.support.accounts.administration import forget_settings, store, stored_settings
from tests.support.accounts.people import (
    CALLBACK,
    Person,
    database_of,
    make_application,
    make_user,
    set_state,
    sign_in,
    unique,
)
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell


@pytest.fixture(scope="module")
def root(live_sqlite: LiveGatebell) -> Person:
    return make_user(live_sqlite, name="root", admin=True)


@pytest.fixture(scope="module")
def addresses(live_sqlite: LiveGatebell, root: Person) -> Iterator[list[str]]:
    """Where one of everything is shown."""
    owner = make_user(live_sqlite, name="owner")
    with database_of(live_sqlite) as session:
        user_id = get_user(owner.username, session=session).id
        user = session.get_one(User, user_id)
        user.name, user.must_change_password = NASTY, True
    set_state(live_sqlite, make_user(live_sqlite, name="locked"), "locked")
    nasty = (CALLBACK, "http://a.example/")
    made = make_application(live_sqlite, owner, name=NASTY[:100], redirect_uris=nasty)
    connect(live_sqlite).accepted(title="It works")
    live_sqlite.cli(
        *("applications", "create", "Wiki", "--owner", root.username, "--scopes", "openid"),
        *("--redirect-uri", CALLBACK, "--trusted", "--instance-wide"),
    )
    live_sqlite.cli("keys", "rotate")
    provider_id = add_provider(live_sqlite, NASTY, unique("idp"))
    store(live_sqlite, "page_size", "5")
    store(live_sqlite, "oauth2_device_grant_flow", "false")
    yield [
        *("/admin", "/admin/notifications"),
        *(f"/admin/users?group={group}" for group in ("people", "locked")),
        *("/admin/users?search=nobody-at-all", "/admin/users/new", f"/admin/users/{user_id}"),
        *("/admin/member_roles", "/admin/member_roles/new"),
        *("/admin/identity_providers", "/admin/identity_providers/new"),
        "/admin/identity_providers/new?preset=entra",
        "/admin/identity_providers/new?preset=github",
        f"/admin/identity_providers/{provider_id}",
        *(f"/admin/users/{user_id}/delete", f"/admin/users/{user_id}/edit"),
        *("/admin/applications", "/admin/applications?of=users", "/admin/applications/new"),
        *(f"/admin/applications/{made.id}{end}" for end in ("", "/edit", "/delete")),
        *("/admin/settings", "/admin/settings/feature-flags", "/admin/settings/address"),
        *("/admin/settings/applications-and-tokens", "/admin/settings/rate-limits"),
        *("/admin/settings/interfaces-and-records", "/admin/settings/appearance", "/admin/keys"),
        *("/admin/registry", "/admin/api_usage", "/admin/api_usage?search=nobody-at-all"),
    ]
    forget_settings(live_sqlite)
    remove_providers(live_sqlite)


@pytest.fixture
def desk(live_sqlite: LiveGatebell, page: Page, root: Person) -> Page:
    """A page of the administrator's."""
    have_signed_in(page, live_sqlite, root)
    return page


@pytest.mark.long
def test_nothing_is_wrong_with_any_page(
    live_sqlite: LiveGatebell, desk: Page, addresses: list[str]
) -> None:
    problems = [
        problem for address in addresses for problem in problems_at(desk, live_sqlite.url + address)
    ]
    assert problems == []


def test_a_password_is_reset_and_revealed_on_a_telephone(
    live_sqlite: LiveGatebell, desk: Page
) -> None:
    desk.set_viewport_size({"width": 360, "height": 800})
    charlie = make_user(live_sqlite, name="charlie")
    desk.goto(f"{live_sqlite.url}/admin/users?search={charlie.username}")
    desk.get_by_role("link", name=charlie.username).click()
    desk.locator("summary", has_text="Reset password").click()
    desk.get_by_role("button", name="Reset password").click()
    password = desk.locator("#new-password")
    expect(password).to_be_hidden()
    desk.locator("summary", has_text="Reveal").click()
    expect(password).to_be_visible()
    helped = Person(username=charlie.username, email="", password=password.inner_text())
    page = sign_in(live_sqlite, helped).get(f"{live_sqlite.url}/groups")
    assert page.url.endswith("/-/user_settings/security")


def test_a_setting_is_changed_and_taken_back(live_sqlite: LiveGatebell, desk: Page) -> None:
    forget_settings(live_sqlite)
    desk.goto(f"{live_sqlite.url}/admin/settings")
    desk.get_by_role("link", name="Change applications and tokens").click()
    field = desk.get_by_label("Refresh replay")
    field.fill("61")
    desk.get_by_role("button", name="Save settings").click()
    expect(field).to_be_focused()
    expect(field).to_have_value("61")
    field.fill("30")
    field.press("Enter")  # is no way back by accident
    expect(desk.get_by_text("Saved: Refresh replay.")).to_be_visible()
    assert stored_settings(live_sqlite) == {"refresh_replay_seconds": "30"}
    desk.get_by_role("button", name="Reset for Refresh replay").click()
    expect(field).to_have_value("10")
    assert stored_settings(live_sqlite) == {}
