"""Links for a new account and a new password, with real email and with the keyboard."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from domain.core.randomness import generate_random_password
from tests.browser.looks import problems_of
from tests.support.accounts.people import Person, make_user
from tests.support.accounts.sign_ups import make_newcomer
from tests.support.alerts.monitoring import wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.secrets_seen import SECRETS

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture(scope="module")
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture(scope="module")
def service(new_service: NewService, mailbox: Mailbox) -> Iterator[LiveGatebell]:
    """A service with open sign-up and its worker, which sends email to the mailbox."""
    with (
        running_mail_server(mailbox) as port,
        running(new_service("sqlite", MAIL_URL=f"smtp://127.0.0.1:{port}", SIGN_UP="open")) as live,
    ):
        yield live


def link_to(mailbox: Mailbox, person: Person) -> str:
    """Return the newest link in a message to a person, after the message has arrived."""

    def texts() -> list[str]:
        sent = zip(mailbox.messages, mailbox.recipients, strict=True)
        return [message.text for message, to in sent if to == [person.email]]

    wait_until(lambda: bool(texts()), "the link arrives")
    found = re.search(r"http\S+/users/(?:password|sign_up)/\S+", texts()[-1])
    assert found is not None
    SECRETS.remember(found[0].rpartition("/")[2])
    return found[0]


@pytest.mark.long
def test_a_visitor_creates_an_account_with_a_link(
    service: LiveGatebell, mailbox: Mailbox, page: Page
) -> None:
    person = make_newcomer()
    SECRETS.remember(person.password)
    page.goto(f"{service.url}/users/sign_in?next=/-/user_settings/profile")
    page.get_by_role("link", name="Sign up").press("Enter")
    expect(page.get_by_label("Email address")).to_be_focused()
    problems = problems_of(page)
    page.keyboard.type(person.email)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Check your email")

    link = link_to(mailbox, person)
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Create your account")
    expect(page.get_by_label("Username")).to_be_focused()
    problems += problems_of(page)
    for text in (person.username, "Dora Day", person.password, person.password):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Profile")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Dora Day")

    page.context.clear_cookies()
    page.goto(link)
    expect(page.get_by_role("status")).to_contain_text("An account for")
    assert problems == []


@pytest.mark.long
def test_a_user_resets_a_password_with_a_link_and_signs_in(
    service: LiveGatebell, mailbox: Mailbox, page: Page
) -> None:
    person, new = make_user(service), generate_random_password()
    SECRETS.remember(new)
    page.goto(f"{service.url}/users/sign_in")
    page.get_by_role("link", name="Forgot your password?").press("Enter")
    expect(page.get_by_label("Username or email address")).to_be_focused()
    problems = problems_of(page)
    page.keyboard.type(person.email)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("a link was sent to its email address")

    link = link_to(mailbox, person)
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose a new password")
    expect(page.get_by_label("New password", exact=True)).to_be_focused()
    problems += problems_of(page)
    page.keyboard.type(new)
    page.keyboard.press("Tab")
    page.keyboard.type(new)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Sign in with your new password")
    page.get_by_label("Username or email address").fill(person.username)
    page.get_by_label("Password", exact=True).fill(new)
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation").first).to_be_visible()

    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Reset your password")
    expect(page.locator("main")).to_be_visible()
    problems += problems_of(page)
    assert problems == []
