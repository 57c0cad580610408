"""From a forgotten password to a new one: with real e-mail, by the keyboard, in every look."""

import re
from email.message import EmailMessage

import pytest
from playwright.sync_api import Page, expect

from domain.randomness import random_password
from tests.browser.looks import problems_of
from tests.support.accounts.people import make_user
from tests.support.alerts.monitoring import wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import NewService, running
from tests.support.service.secrets_seen import SECRETS

pytestmark = pytest.mark.one_database("sqlite")


def test_somebody_in_a_hurry_gets_a_link_and_signs_in(new_service: NewService, page: Page) -> None:
    mailbox = Mailbox()
    with (
        running_mail_server(mailbox) as port,
        running(new_service("sqlite", MAIL_URL=f"smtp://127.0.0.1:{port}")) as service,
    ):
        person, new = make_user(service), random_password()
        SECRETS.remember(new)
        page.goto(f"{service.url}/users/sign_in")
        page.get_by_role("link", name="Forgot your password?").press("Enter")
        expect(page.get_by_label("User name or e-mail address")).to_be_focused()
        problems = problems_of(page)
        page.keyboard.type(person.email)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("a link is on its way")

        wait_until(lambda: bool(mailbox.messages), "the link arrives")
        (message,) = mailbox.messages
        page.goto(link_in(message))
        expect(page.get_by_role("heading", level=1)).to_have_text("Choose a new password")
        expect(page.get_by_label("New password", exact=True)).to_be_focused()
        problems += problems_of(page)
        page.keyboard.type(new)
        page.keyboard.press("Tab")
        page.keyboard.type(new)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Sign in with the new one")
        page.get_by_label("User name or e-mail address").fill(person.username)
        page.get_by_label("Password", exact=True).fill(new)
        page.keyboard.press("Enter")
        expect(page.get_by_role("navigation").first).to_be_visible()

        page.goto(link_in(message))
        expect(page.get_by_role("heading", level=1)).to_have_text("Forgotten password")
        expect(page.locator("main")).to_be_visible()
        problems += problems_of(page)
    assert problems == []


def link_in(message: EmailMessage) -> str:
    found = re.search(r"http\S+/users/password/\S+", message.get_content())
    assert found is not None
    SECRETS.remember(found[0].rpartition("/")[2])
    return found[0]
