"""From no account to a signed-in page: with real e-mail, by the keyboard, in every look."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import problems_of
from tests.support.accounts.sign_ups import newcomer
from tests.support.alerts.monitoring import wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import NewService, running
from tests.support.service.secrets_seen import SECRETS

pytestmark = pytest.mark.one_database("sqlite")


def test_somebody_new_gets_a_link_and_makes_an_account(new_service: NewService, page: Page) -> None:
    mailbox = Mailbox()
    with (
        running_mail_server(mailbox) as port,
        running(
            new_service("sqlite", MAIL_URL=f"smtp://127.0.0.1:{port}", SIGN_UP="open")
        ) as service,
    ):
        person = newcomer()
        SECRETS.remember(person.password)
        page.goto(f"{service.url}/users/sign_in?next=/-/user_settings/profile")
        page.get_by_role("link", name="Sign up").press("Enter")
        expect(page.get_by_label("E-mail address")).to_be_focused()
        problems = problems_of(page)
        page.keyboard.type(person.email)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Look into your mail")

        wait_until(lambda: bool(mailbox.messages), "the link arrives")
        found = re.search(r"http\S+/users/sign_up/\S+", mailbox.messages[0].get_content())
        assert found is not None
        SECRETS.remember(found[0].rpartition("/")[2])
        page.goto(found[0])
        expect(page.get_by_role("heading", level=1)).to_have_text("Make your account")
        expect(page.get_by_label("User name")).to_be_focused()
        problems += problems_of(page)
        for text in (person.username, "Dora Day", person.password, person.password):
            page.keyboard.type(text)
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Profile")
        expect(page.get_by_label("Name", exact=True)).to_have_value("Dora Day")

        page.context.clear_cookies()
        page.goto(found[0])
        expect(page.get_by_role("status")).to_contain_text("There is an account for")
    assert problems == []
