"""Signs users in."""

from playwright.sync_api import Page

from tests.support.accounts.people import Person, signed_in
from tests.support.service.live import LiveGatebell


def sign_in(page: Page, gatebell: LiveGatebell, person: Person) -> None:
    """Sign in with the sign-in page."""
    page.goto(f"{gatebell.url}/users/sign_in")
    page.get_by_label("Username or email address").fill(person.email)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{gatebell.url}/")


def have_signed_in(page: Page, gatebell: LiveGatebell, person: Person) -> None:
    """Set the cookies of a shared session, which tests must not end."""
    cookies = signed_in(gatebell, person).cookies.get_dict()
    page.context.add_cookies(
        [{"name": name, "value": cookies[name], "url": gatebell.url} for name in cookies]
    )
