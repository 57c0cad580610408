"""From an alert to its acknowledgement, and the delivery status of messages on the alert's page."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import update

from domain.access.roles import Role
from models import Escalation
from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import Person, alice, database_of, make_project, make_user, now
from tests.support.accounts.team import give_role
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import Endpoint, connect
from tests.support.mail.mail_server import Mailbox, ReceivedEmail, running_mail_server
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.message_receiver import Receiver, running_receiver

_LINK = re.compile(r"Acknowledge it: (\S+)")
_LINK_TO_MANY = re.compile(r"Acknowledge all 3, or some of them: (\S+)")


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def live(new_service: NewService, mailbox: Mailbox) -> Iterator[LiveGatebell]:
    """A service with its worker, which sends email to the mailbox."""
    with (
        running_mail_server(mailbox) as port,
        running(new_service("sqlite", MAIL_URL=f"smtp://127.0.0.1:{port}")) as service,
    ):
        yield service


@pytest.fixture
def telephone(browser: Browser) -> Iterator[Page]:
    """A phone in dark mode, without a signed-in user and without scripts."""
    context = browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme="dark",
        java_script_enabled=False,
        is_mobile=True,
        has_touch=True,
    )
    yield context.new_page()
    context.close()


def watched_project(live: LiveGatebell, sleeper: Person, waker: Person) -> Endpoint:
    """Connect a monitor to a project that pages one user and, five seconds later, another one."""
    owner = alice(live)
    project = make_project(live, owner)
    for person in (sleeper, waker):
        give_role(live, project, person, Role.DEVELOPER)
        address = f"{person.username}@telephones.example"
        live.cli("contacts", "create", person.username, "--type", "email", "--address", address)
    steps = (
        f"0s user:{sleeper.username}",
        f"10s user:{waker.username}",
        f"10m user:{owner.username}",
    )
    chosen = [word for step in steps for word in ("--step", step)]
    live.cli("escalations", "create", project, "--name", "nights", *chosen, "--default")
    return connect(live, project)


def mail_to(mailbox: Mailbox, person: Person) -> list[ReceivedEmail]:
    to = f"{person.username}@telephones.example"
    sent = zip(mailbox.messages, mailbox.recipients, strict=True)
    return [message for message, recipients in sent if recipients == [to]]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_second_user_acknowledges_the_alert_from_the_message(
    live: LiveGatebell, mailbox: Mailbox, telephone: Page, page: Page
) -> None:
    sleeper, waker = make_user(live), make_user(live)
    monitor = watched_project(live, sleeper, waker)
    monitor.accepted(title="Disk full on web-1", severity="critical")

    wait_until(lambda: bool(mail_to(mailbox, waker)), "the second person is paged")
    assert len(mail_to(mailbox, sleeper)) == 1
    (message,) = mail_to(mailbox, waker)
    assert "Disk full on web-1" in message["Subject"]
    link = _LINK.search(message.text)
    assert link is not None

    telephone.goto(link[1])
    button = telephone.get_by_role("button", name="Acknowledge")
    expect(telephone.locator("main")).to_contain_text("Disk full on web-1")
    button.tap()
    expect(telephone.locator("main")).to_contain_text(f"as @{waker.username}")

    # The next morning the link still works, and the alert shows who acknowledged it and how.
    telephone.goto(link[1])
    expect(button).to_have_count(0)
    have_signed_in(page, live, sleeper)
    page.goto(f"{live.url}/{monitor.project}/-/alerts/1")
    activity = page.locator("main")
    expect(activity).to_contain_text("Acknowledged")
    expect(activity).to_contain_text(waker.username)
    page.goto(link[1])
    assert problems_of(page) == []
    assert len(mailbox.messages) == 2


@pytest.mark.long
def test_one_of_several_alerts_is_not_acknowledged_on_a_phone(
    live: LiveGatebell, mailbox: Mailbox, telephone: Page, page: Page
) -> None:
    sleeper, waker = make_user(live), make_user(live)
    monitor = watched_project(live, sleeper, waker)
    titles = ("Disk full on web-1", "Queue grows", "Certificate expires")
    monitor.post_json([{"title": each, "severity": "critical"} for each in titles])
    wait_until(lambda: bool(mail_to(mailbox, sleeper)), "the first person gets a digest")
    link = _LINK_TO_MANY.search(mail_to(mailbox, sleeper)[0].text)
    assert link is not None
    page.goto(link[1])
    assert problems_of(page) == []
    telephone.goto(link[1])
    telephone.get_by_role("checkbox", name="Queue grows").uncheck()
    telephone.get_by_role("button", name="Acknowledge selected alerts").tap()
    expect(telephone.get_by_text("2 alerts acknowledged")).to_be_visible()
    expect(telephone.get_by_text("1 alert still needs attention.")).to_be_visible()
    # A second tap at the same place must not acknowledge the remaining alert.
    expect(telephone.locator("main").get_by_role("button")).to_have_count(0)
    telephone.get_by_role("link", name="Show 1 remaining alert").tap()
    expect(telephone.get_by_role("heading", level=1)).to_have_text("Acknowledge 1 alert?")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Acknowledge 1 alert?")
    assert problems_of(page) == []


# Delivery status of each message


@pytest.fixture
def chat() -> Iterator[Receiver]:
    """A messaging service that rejects everything."""
    with running_receiver(Receiver(answer=lambda _request: (503, {}))) as receiver:
        yield receiver


def paging(live: LiveGatebell, person: Person, receiver: Receiver) -> Endpoint:
    """Connect a monitor to a project that pages a user whose own contact rejects messages."""
    project = make_project(live, alice(live))
    give_role(live, project, person, Role.DEVELOPER)
    chat = ("--type", "apprise", "--address", receiver.contact_url, "--label", "Chat")
    live.cli("contacts", "create", person.username, *chat)
    step = ("--step", f"0s user:{person.username}")
    live.cli("escalations", "create", project, "--name", "nights", *step, "--default")
    return connect(live, project)


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_page_of_an_alert_shows_the_delivery_status_of_messages(
    live: LiveGatebell, mailbox: Mailbox, chat: Receiver, page: Page
) -> None:
    sleeper = make_user(live)
    monitor = paging(live, sleeper, chat)
    iid = monitor.accepted(title="Disk full on web-1", severity="critical")["iid"]
    wait_until(lambda: bool(mailbox.messages), "the address of the account gets the page")
    have_signed_in(page, live, sleeper)
    page.goto(f"{live.url}/{monitor.project}/-/alerts/{iid}")
    timeline = page.locator("#timeline")
    expect(timeline).to_contain_text(sleeper.username)
    expect(timeline).to_contain_text("Chat: 1 failure so far")
    expect(timeline).to_contain_text("email: accepted")
    assert problems_of(page) == []

    with database_of(live) as session:  # The acknowledgement timeout has passed.
        session.execute(update(Escalation).values(next_at=now()))
    page.goto(f"{live.url}/{monitor.project}/-/alerts")
    for _ in range(100):
        if page.get_by_text("Nobody answered").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    expect(page.get_by_text("Nobody answered")).to_be_visible()
    assert problems_of(page) == []
