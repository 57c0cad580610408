"""Passkeys and authenticator apps in a real browser, with Chromium's virtual authenticator."""

import re

import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.browser.passkeys import Key, add_passkey, give_password, sign_out
from tests.support.accounts.people import Person, make_user
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    SECURITY,
    code_of,
    give_app,
    give_recovery_codes,
    methods_of,
)

SIGN_IN = "/users/sign_in"


@pytest.fixture
def charlie(localhost: LiveGatebell) -> Person:
    return make_user(localhost, name="charlie")


@pytest.mark.long
def test_a_passkey_is_added_and_used_with_and_without_a_password(
    localhost: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    have_signed_in(page, localhost, charlie)
    add_passkey(page, localhost, charlie, "My laptop")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    assert key.passkeys() == 1
    page.get_by_role("link", name="I have saved my codes").click()
    expect(page.locator("main")).to_contain_text("My laptop")

    sign_out(page)
    give_password(page, charlie)
    expect(page.get_by_role("heading", level=1)).to_have_text("Two-factor authentication")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{localhost.url}/")
    assert methods_of(localhost, charlie) in {"pwd hwk mfa", "pwd swk mfa"}

    sign_out(page)
    page.goto(f"{localhost.url}{SIGN_IN}?next=/groups")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{localhost.url}/groups")
    assert methods_of(localhost, charlie) in {"hwk user mfa", "swk user mfa"}


@pytest.mark.long
def test_an_unrecognized_finger_is_rejected_with_a_message(
    localhost: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    have_signed_in(page, localhost, charlie)
    add_passkey(page, localhost, charlie, "My laptop")
    page.get_by_role("link", name="I have saved my codes").click()
    sign_out(page)
    key.is_used_by(owner=False)
    button = page.get_by_role("button", name="Sign in with a passkey")
    button.click()
    expect(page.get_by_role("alert")).to_contain_text("The request was canceled")
    expect(button).to_be_enabled()
    key.is_used_by(owner=True)
    button.click()
    page.wait_for_url(f"{localhost.url}/")


def test_no_passkey_is_added_with_a_wrong_password(
    localhost: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    have_signed_in(page, localhost, charlie)
    page.goto(f"{localhost.url}{SECURITY}/passkeys/new")
    page.get_by_label("Name", exact=True).fill("My laptop")
    page.get_by_label("Current password").fill("wrong")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("The current password is incorrect")
    assert key.passkeys() == 0
    page.get_by_label("Current password").fill(charlie.password)
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    # An authenticator can only have one passkey for a user.
    add_passkey(page, localhost, charlie, "Twice")
    expect(page.get_by_role("alert")).to_contain_text("already")
    assert key.passkeys() == 1


@pytest.mark.long
def test_without_scripts_authenticator_apps_are_offered_instead(
    plain_page: Page, localhost: LiveGatebell, charlie: Person
) -> None:
    page = plain_page
    have_signed_in(page, localhost, charlie)
    page.goto(f"{localhost.url}{SECURITY}/passkeys/new")
    expect(page.locator("main")).to_contain_text("Use an authenticator app instead")
    expect(page.get_by_role("button", name="Add passkey")).to_be_hidden()
    page.goto(f"{localhost.url}{SECURITY}/authenticator")
    app = pyotp.TOTP(page.locator("#seed").inner_text().replace(" ", ""))
    page.get_by_role("textbox", name="Code").fill(code_of(app))
    page.get_by_label("Current password").fill(charlie.password)
    page.get_by_role("button", name="Turn on").click()
    codes = page.locator("#recovery-codes").inner_text().split()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as a file").click()
    assert download.value.path().read_text(encoding="utf-8").split()[-10:] == codes
    page.get_by_role("link", name="I have saved my codes").click()
    sign_out(page)
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    give_password(page, charlie)
    page.get_by_role("textbox", name="Code").fill(code_of(app, steps=1))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{localhost.url}/")


@pytest.mark.long
@pytest.mark.usefixtures("key")
def test_the_pages_of_passkeys_have_no_problems(
    localhost: LiveGatebell, charlie: Person, page: Page, told: list[str]
) -> None:
    problems: list[str] = []

    def look_at(path: str) -> None:
        page.goto(localhost.url + path)
        problems.extend(problems_of(page))

    look_at(SIGN_IN)
    give_password(page, charlie)
    page.wait_for_url(f"{localhost.url}/")
    for path in (SECURITY, f"{SECURITY}/authenticator", f"{SECURITY}/passkeys/new"):
        look_at(path)
    add_passkey(page, localhost, charlie, "A key with a " + "very-long-name" * 5)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    problems += problems_of(page)
    give_app(localhost, charlie)
    give_recovery_codes(localhost, charlie)
    for path in (SECURITY, f"{SECURITY}/authenticator/remove", f"{SECURITY}/recovery_codes/renew"):
        look_at(path)
    for words in ("Rename", "Remove"):
        page.goto(localhost.url + SECURITY)
        page.get_by_role("link", name=re.compile(f"{words} A key")).click()
        problems += problems_of(page)
    sign_out(page)
    give_password(page, charlie)
    problems += problems_of(page)
    page.get_by_role("textbox", name="Code").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This code is wrong")).to_be_visible()
    problems += problems_of(page)
    assert problems == []
    assert told == []
