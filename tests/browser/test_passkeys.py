"""Passkeys and authenticator apps in a real browser, with Chromium's own authenticator."""

import re
from collections.abc import Iterator

import pyotp
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from tests.support.live import LiveGatebell, NewService, running
from tests.support.people import Person, make_user
from tests.support.second_steps import SECURITY, code_of, give_app, give_recovery_codes, methods_of

SIGN_IN = "/users/sign_in"


@pytest.fixture(scope="module")
def named(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service that is reached by a name: browsers know no passkeys for numbers."""
    with running(new_service(host="localhost")) as live:
        yield live


@pytest.fixture
def charlie(named: LiveGatebell) -> Person:
    return make_user(named, name="charlie")


class Key:
    """The authenticator that Chromium pretends to have."""

    def __init__(self, page: Page) -> None:
        self._chromium: CDPSession = page.context.new_cdp_session(page)
        self._chromium.send("WebAuthn.enable")
        about = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        made = self._chromium.send("WebAuthn.addVirtualAuthenticator", {"options": about})
        self._id = made["authenticatorId"]

    def is_used_by(self, *, owner: bool) -> None:
        """Let it recognize its owner's finger, or somebody else's."""
        self._chromium.send(
            "WebAuthn.setUserVerified", {"authenticatorId": self._id, "isUserVerified": owner}
        )

    def passkeys(self) -> int:
        kept = self._chromium.send("WebAuthn.getCredentials", {"authenticatorId": self._id})
        return len(kept["credentials"])


@pytest.fixture
def key(page: Page) -> Key:
    return Key(page)


def give_password(page: Page, person: Person) -> None:
    page.get_by_label("User name or e-mail address").fill(person.username)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_in(page: Page, named: LiveGatebell, person: Person) -> None:
    page.goto(named.url + SIGN_IN)
    give_password(page, person)
    page.wait_for_url(f"{named.url}/")


def sign_out(page: Page) -> None:
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def add_passkey(page: Page, named: LiveGatebell, person: Person, name: str) -> None:
    page.goto(named.url + SECURITY)
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Current password").fill(person.password)
    page.get_by_role("button", name="Add passkey").click()


def test_a_passkey_is_made_is_the_second_step_and_then_stands_for_everything(
    named: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    sign_in(page, named, charlie)
    add_passkey(page, named, charlie, "My laptop")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    assert key.passkeys() == 1
    page.get_by_role("link", name="I have kept them").click()
    expect(page.locator("main")).to_contain_text("My laptop")

    sign_out(page)
    give_password(page, charlie)
    expect(page.get_by_role("heading", level=1)).to_have_text("One more step")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{named.url}/")
    assert methods_of(named, charlie) in {"pwd hwk mfa", "pwd swk mfa"}

    sign_out(page)
    page.goto(f"{named.url}{SIGN_IN}?next=/groups")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{named.url}/groups")
    assert methods_of(named, charlie) in {"hwk user mfa", "swk user mfa"}


def test_somebody_elses_finger_opens_nothing_and_the_page_says_so(
    named: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    sign_in(page, named, charlie)
    add_passkey(page, named, charlie, "My laptop")
    page.get_by_role("link", name="I have kept them").click()
    sign_out(page)
    key.is_used_by(owner=False)
    button = page.get_by_role("button", name="Sign in with a passkey")
    button.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    expect(button).to_be_enabled()
    key.is_used_by(owner=True)
    button.click()
    page.wait_for_url(f"{named.url}/")


def test_a_wrong_password_makes_no_passkey(
    named: LiveGatebell, charlie: Person, page: Page, key: Key
) -> None:
    sign_in(page, named, charlie)
    page.goto(f"{named.url}{SECURITY}/passkeys/new")
    page.get_by_label("Name", exact=True).fill("My laptop")
    page.get_by_label("Current password").fill("wrong")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("not your current password")
    assert key.passkeys() == 0
    page.get_by_label("Current password").fill(charlie.password)
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    # The same authenticator is asked for one passkey only.
    add_passkey(page, named, charlie, "Twice")
    expect(page.get_by_role("alert")).to_contain_text("already")
    assert key.passkeys() == 1


def test_without_scripts_nobody_is_offered_what_cannot_work_and_the_rest_works(
    browser: Browser, named: LiveGatebell, charlie: Person
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, named, charlie)
    page.goto(f"{named.url}{SECURITY}/passkeys/new")
    expect(page.locator("main")).to_contain_text("An authenticator app works everywhere")
    expect(page.get_by_role("button", name="Add passkey")).to_be_hidden()
    page.goto(f"{named.url}{SECURITY}/authenticator")
    app = pyotp.TOTP(page.locator("#seed").inner_text().replace(" ", ""))
    page.get_by_role("textbox", name="Code").fill(code_of(app))
    page.get_by_label("Current password").fill(charlie.password)
    page.get_by_role("button", name="Turn it on").click()
    codes = page.locator("#recovery-codes").inner_text().split()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as a file").click()
    assert download.value.path().read_text(encoding="utf-8").split()[-10:] == codes
    page.get_by_role("link", name="I have kept them").click()
    sign_out(page)
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    give_password(page, charlie)
    page.get_by_role("textbox", name="Code").fill(code_of(app, steps=1))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{named.url}/")
    context.close()


def problems_of(page: Page) -> list[str]:
    heading = page.get_by_role("heading", level=1).inner_text()
    found = [f"axe: {rule['id']}" for rule in Axe().run(page).response["violations"]]
    is_wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    found += ["scrolls sideways"] if page.evaluate(is_wider) else []
    return [f"{heading}: {problem}" for problem in found]


@pytest.fixture(params=["light wide", "dark narrow"])
def look(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """A browser in one look."""
    scheme, width = request.param.split()
    context = browser.new_context(
        viewport={"width": 1280 if width == "wide" else 360, "height": 800}, color_scheme=scheme
    )
    context.set_default_timeout(30_000)
    yield context
    context.close()


def test_nothing_is_wrong_with_any_of_the_pages(
    named: LiveGatebell, charlie: Person, look: BrowserContext
) -> None:
    page = look.new_page()
    told: list[str] = []
    page.on("console", lambda said: told.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    Key(page)
    problems: list[str] = []

    def look_at(path: str) -> None:
        page.goto(named.url + path)
        problems.extend(problems_of(page))

    look_at(SIGN_IN)
    give_password(page, charlie)
    page.wait_for_url(f"{named.url}/")
    for path in (SECURITY, f"{SECURITY}/authenticator", f"{SECURITY}/passkeys/new"):
        look_at(path)
    add_passkey(page, named, charlie, "A key with a " + "very-long-name" * 5)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your recovery codes")
    problems += problems_of(page)
    give_app(named, charlie)
    give_recovery_codes(named, charlie)
    for path in (SECURITY, f"{SECURITY}/authenticator/remove", f"{SECURITY}/recovery_codes/renew"):
        look_at(path)
    for words in ("Rename", "Remove"):
        page.goto(named.url + SECURITY)
        page.get_by_role("link", name=re.compile(f"{words} A key")).click()
        problems += problems_of(page)
    sign_out(page)
    give_password(page, charlie)
    problems += problems_of(page)
    page.get_by_role("textbox", name="Code").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This code is not right")).to_be_visible()
    problems += problems_of(page)
    assert problems == []
    assert [text for text in told if "422" not in text] == []
