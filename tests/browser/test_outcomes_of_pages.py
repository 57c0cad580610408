"""The page of an alert tells what became of each message, and lists tell that nobody answered."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from domain.access.roles import Role
from models import Escalation
from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import Person, alice, database_of, make_project, make_user, now
from tests.support.accounts.team import give_role
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import Endpoint, connect
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.receiver import Receiver, running_receiver


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def telephone() -> Iterator[Receiver]:
    """A messaging service that refuses everything."""
    with running_receiver(Receiver(answer=lambda _request: (503, {}))) as receiver:
        yield receiver


@pytest.fixture
def live(new_service: NewService, mailbox: Mailbox, telephone: Receiver) -> Iterator[LiveGatebell]:
    """A service with its worker, whose contacts are on this machine."""
    with running_mail_server(mailbox) as port:
        service = new_service(
            "sqlite",
            MAIL_URL=f"smtp://127.0.0.1:{port}",
            OUTGOING_CONTACT_HOSTS=f"127.0.0.1:{telephone.port}",
        )
        with running(service) as gatebell:
            yield gatebell


def paging(live: LiveGatebell, person: Person, receiver: Receiver) -> Endpoint:
    """Connect a monitor to a project that pages a person, whose own contact refuses."""
    project = make_project(live, alice(live))
    give_role(live, project, person, Role.DEVELOPER)
    chat = ("--type", "apprise", "--address", receiver.contact_url, "--label", "Chat")
    live.cli("contacts", "create", person.username, *chat)
    step = ("--step", f"0s user:{person.username}")
    live.cli("escalations", "create", project, "--name", "nights", *step, "--default")
    return connect(live, project)


@pytest.mark.long
@pytest.mark.spec("J1")
def test_an_alert_tells_what_became_of_its_pages(
    live: LiveGatebell, mailbox: Mailbox, telephone: Receiver, page: Page
) -> None:
    sleeper = make_user(live)
    monitor = paging(live, sleeper, telephone)
    iid = monitor.accepted(title="Disk full on web-1", severity="critical")["iid"]
    wait_until(lambda: bool(mailbox.messages), "the address of the account gets the page")
    have_signed_in(page, live, sleeper)
    page.goto(f"{live.url}/{monitor.project}/-/alerts/{iid}")
    section = page.locator("#escalation")
    expect(section).to_contain_text(f"Paged @{sleeper.username}")
    expect(section).to_contain_text("Chat: 1 failure so far, tried again")
    expect(section).to_contain_text("e-mail: accepted")
    assert problems_of(page) == []

    with database_of(live) as session:  # as if the time to answer were over
        session.execute(update(Escalation).values(next_at=now()))
    page.goto(f"{live.url}/{monitor.project}/-/alerts")
    for _ in range(100):
        if page.get_by_text("Nobody answered").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    expect(page.get_by_text("Nobody answered")).to_be_visible()
    assert problems_of(page) == []
