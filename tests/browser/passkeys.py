"""Actions of users with an authenticator."""

from playwright.sync_api import CDPSession, Page, expect

from tests.support.accounts.people import Person
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import SECURITY


class Key:
    """Chromium's virtual authenticator."""

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
        """Recognize the finger of the owner or of another person."""
        self._chromium.send(
            "WebAuthn.setUserVerified", {"authenticatorId": self._id, "isUserVerified": owner}
        )

    def passkeys(self) -> int:
        kept = self._chromium.send("WebAuthn.getCredentials", {"authenticatorId": self._id})
        return len(kept["credentials"])

    def put_away(self) -> None:
        """Remove the authenticator from the page."""
        self._chromium.send("WebAuthn.disable")
        self._chromium.detach()


def give_password(page: Page, person: Person) -> None:
    page.get_by_label("Username or email address").fill(person.username)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page: Page) -> None:
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def add_passkey(page: Page, localhost: LiveGatebell, person: Person, name: str) -> None:
    page.goto(localhost.url + SECURITY)
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Current password").fill(person.password)
    page.get_by_role("button", name="Add passkey").click()
