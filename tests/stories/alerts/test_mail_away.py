"""The mail server is unavailable for a day: every message arrives once, and its link works."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from domain.accounts.lifecycle.password_reset import RESET_LINK_PURPOSE as PASSWORD
from domain.accounts.lifecycle.sign_up import SIGN_UP_LINK_PURPOSE as SIGN_UP
from domain.accounts.sign_up import SIGN_UP_LINK_LIFETIME as SIGN_UP_LIFETIME
from domain.housekeeping.pruning import Retention, prune_expired_rows
from models import Mail, User
from tests.http.accounts.sign_in.test_forgotten_password import ask_for
from tests.http.api.projects.test_invitations_api import invite
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    submit_form_by_ending,
)
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    make_user,
    now,
    sign_in,
)
from tests.support.accounts.resource_tokens import script_of
from tests.support.accounts.sign_ups import (
    create_account_from_link,
    make_newcomer,
    request_sign_up_link,
    seal_test_value,
    sign_up_link,
    unseal_test_value,
)
from tests.support.mail.mail_server import Mailbox, ReceivedEmail, running_mail_server
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.ports import free_port
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words
from web.jobs.mail import send_mail
from web.jobs.retention import deactivate_idle_accounts
from web.settings.environment import parse_settings

SETTINGS = {
    "MAIL_URL": f"smtp://127.0.0.1:{free_port()}",
    "SIGN_UP": "approval",
    "INVITATIONS_CREATE_ACCOUNTS": "yes",
    "DEACTIVATE_AFTER_DAYS": "40",
}
DAY = timedelta(days=1)


@dataclass
class Night:
    """A service whose email the test sends, with its own clock."""

    service: LiveGatebell
    mailbox: Mailbox
    began: datetime = field(default_factory=now)

    def send(self, moment: datetime, port: int | None = None) -> None:
        """Send due messages; without a port, the server is unavailable."""
        environment = dict(self.service.environment)
        if port is not None:
            environment["MAIL_URL"] = f"smtp://127.0.0.1:{port}"
        send_mail(parse_settings(environment), clock=lambda: moment)

    def next_try(self) -> datetime | None:
        with database_of(self.service) as session:
            return session.scalar(select(func.min(Mail.send_at)))

    def be_away(self, until: datetime) -> None:
        """Try to send due messages without success until a time, and prune as the worker does."""
        moment = self.next_try()
        while moment is not None and moment < until:
            self.send(moment)
            moment = self.next_try()
        with Session(self.service.engine()) as session:
            kept = Retention(keep_deliveries=1, keep_for=DAY)
            prune_expired_rows(kept, session=session, now=until, commit_batch=session.commit)

    def come_back(self, moment: datetime) -> None:
        """Send all waiting messages as soon as they are due."""
        with running_mail_server(self.mailbox) as port:
            due = self.next_try()
            while due is not None:
                moment = max(moment, due)
                self.send(moment, port)
                due = self.next_try()

    def message_to(self, email: str) -> ReceivedEmail:
        """Return the only message to an address."""
        (found,) = (
            message
            for message, recipients in zip(
                self.mailbox.messages, self.mailbox.recipients, strict=True
            )
            if recipients == [email]
        )
        return found

    def link_to(self, email: str) -> str:
        """Return the link in the only message to an address."""
        text = self.message_to(email).text
        lines: list[str] = text.splitlines()
        return next(line for line in lines if line.startswith(self.service.url))


@pytest.fixture(params=["sqlite", "postgres"])
def night(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[Night]:
    with running(new_service(request.param, only="app", **SETTINGS)) as service:
        yield Night(service, Mailbox())


@dataclass(frozen=True)
class People:
    """Users who wait for a message."""

    #: A visitor who requested a sign-up link, and users whose accounts were approved and rejected.
    new: Person
    approved: Person
    rejected: Person
    invited: Person
    forgetful: Person
    idle: Person


def wait_for_mail(service: LiveGatebell) -> People:
    """Trigger a message to each user."""
    people = People(
        new=make_newcomer(),
        approved=make_newcomer(),
        rejected=make_newcomer(),
        invited=make_newcomer(),
        forgetful=make_user(service),
        idle=_idle(service),
    )
    decisions = ((people.approved, "/approve"), (people.rejected, "/reject"))
    for person, _ in decisions:
        link = sign_up_link(service, person.email)
        _forget_messages_to(service, person)
        assert create_account_from_link(service, link, person).status_code == 302
    for person, decision in decisions:
        assert submit_form_by_ending(
            service, f"/admin/users/{find_user_id(service, person)}", decision
        ).is_redirect
    assert request_sign_up_link(service, people.new.email).status_code == 302
    owner = make_user(service)
    invite(script_of(service, owner), make_project(service, owner), people.invited.email)
    assert ask_for(service, people.forgetful.username)[1].status_code == 302
    deactivate_idle_accounts(parse_settings(service.environment))
    return people


def _idle(service: LiveGatebell) -> Person:
    person = make_user(service, name="eve")
    long_ago = now() - timedelta(days=60)
    with database_of(service) as session:
        user = User.username == person.username
        session.execute(update(User).where(user).values(created_at=long_ago))
    return person


def _forget_messages_to(service: LiveGatebell, person: Person) -> None:
    """Delete the message whose link the test has already read."""
    with database_of(service) as session:
        session.query(Mail).filter_by(recipient=person.email).delete()


@pytest.mark.long
def test_all_messages_arrive_after_a_day_without_a_mail_server(night: Night) -> None:
    service, administrator = night.service, get_shared_administrator(night.service)
    people, back = wait_for_mail(service), night.began + DAY + timedelta(hours=1)
    night.be_away(back)
    assert night.mailbox.messages == []
    night.come_back(back)
    reached = sorted(recipient for (recipient,) in night.mailbox.recipients)
    everybody = (*vars(people).values(), administrator)
    assert reached == sorted(person.email for person in everybody), "each once"

    assert_expired_links_lead_to_new_ones(night, people)
    # Invitations are valid for weeks, and the other links contain no secrets.
    assert create_account_from_link(
        service, night.link_to(people.invited.email), people.invited
    ).is_redirect
    assert night.link_to(people.approved.email) == f"{service.url}/users/sign_in"
    assert "was approved" in night.message_to(people.approved.email).text
    sign_in(service, people.approved)
    assert "was not approved" in night.message_to(people.rejected.email).text
    assert (
        get_administrator_browser(service).get(night.link_to(administrator.email)).status_code
        == 200
    )
    notice = " ".join(night.message_to(people.idle.email).text.split())
    assert f"will be deactivated on {(night.began + timedelta(days=7)).date()}" in notice
    sign_in(service, people.idle)


def assert_expired_links_lead_to_new_ones(night: Night, people: People) -> None:
    """Open expired links for a sign-up and a new password."""
    service, day = night.service, SIGN_UP_LIFETIME.total_seconds() + 60
    browser = service.http()
    page = browser.get(aged(night.link_to(people.new.email), SIGN_UP, day))
    assert "This link has expired or is incomplete. Sign up again to get a new one." in words(page)
    assert 'href="/users/sign_up">Sign up' in page.text
    assert request_sign_up_link(service, people.new.email, browser=browser).is_redirect
    page = browser.get(aged(night.link_to(people.forgetful.email), PASSWORD, day))
    assert "This link has expired or is incomplete. Request a new one." in words(page)
    answer = submit(browser, page, form_with(page, "login"), login=people.forgetful.username)
    assert answer.is_redirect


def aged(link: str, purpose: str, age: float) -> str:
    """Return a link as it was created `age` seconds ago."""
    begin, _, text = link.rpartition("/")
    return f"{begin}/{seal_test_value(unseal_test_value(text, purpose), purpose, age=age)}"
