"""How people come to be signed in."""

from playwright.sync_api import Page

from tests.support.accounts.people import Person, signed_in
from tests.support.service.live import LiveGatebell


def sign_in(page: Page, gatebell: LiveGatebell, person: Person) -> None:
    """Sign in on the page that is for it."""
    page.goto(f"{gatebell.url}/users/sign_in")
    page.get_by_label("User name or email address").fill(person.email)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{gatebell.url}/")


def have_signed_in(page: Page, gatebell: LiveGatebell, person: Person) -> None:
    """Let somebody have signed in before: the sign-in is shared, so do not end it."""
    cookies = signed_in(gatebell, person).cookies.get_dict()
    page.context.add_cookies(
        [{"name": name, "value": cookies[name], "url": gatebell.url} for name in cookies]
    )
