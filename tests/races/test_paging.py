"""Tests that concurrent workers and users neither lose, double nor delay pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine

from domain.access.roles import Role
from domain.audit.events import EventActor
from domain.delivery.queue import Claim
from domain.incidents import rule_actions
from domain.incidents.changes import change_incident_status
from domain.incidents.listing import lock_incidents
from domain.incidents.types import NewIncidentRule
from domain.paging.escalations.actions import delete_policy, delete_route
from domain.paging.escalations.lifecycle import process_page_outcomes
from domain.paging.notifications.batching import batch_due_pages
from domain.paging.notifications.contact_types.base import SendProblem
from domain.paging.notifications.message_queue import CONTACT_QUEUE
from domain.paging.notifications.outbox import (
    record_failed_attempt,
    take_next_message,
)
from models import AlertRoute, Contact, Incident, Page, PageMessage
from tests.paging.escalations.test_incident_paging import do
from tests.paging.escalations.test_page_texts import texts_to
from tests.paging.notifications.test_rules import rule as contact_rule
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from tests.support.service.crowd import run_simultaneously
from web.jobs.paging import build_paging_settings
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("postgres")
ROUNDS = 20


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def shop(settings: Settings, mailbox: Mailbox) -> Iterator[Escalated]:
    with running_mail_server(mailbox) as port:
        made = Escalated(settings, port)
        yield made
        made.close()


#: Beginnings of the statements that lock round-robin turns.
_BEFORE_TURNS = ("SELECT escalation_policies.id \nFROM", "INSERT INTO escalation_turns")


@contextmanager
def before(words: tuple[str, ...], act: Callable[[], None]) -> Iterator[None]:
    """Call a function before each statement that starts with one of these words."""

    def listen(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if statement.startswith(words):
            act()

    event.listen(Engine, "before_cursor_execute", listen)
    yield
    event.remove(Engine, "before_cursor_execute", listen)


class ConcurrentAction:
    """Runs a function in a separate thread, which starts before a statement of this thread."""

    def __init__(
        self,
        act: Callable[[], None],
        *,
        words: tuple[str, ...] = ("",),
        skipped: int = 0,
        patience: float = 30,
    ) -> None:
        """Skip a number of statements; `patience` is for a function that waits for this thread."""
        self._thread = Thread(target=act)
        self._skipped = skipped
        self._patience = patience
        self._listening = before(words, self._begin)

    def _begin(self) -> None:
        self._skipped -= 1
        if self._skipped == -1:
            self._thread.start()
            self._thread.join(timeout=self._patience)

    def __enter__(self) -> None:
        self._listening.__enter__()

    def __exit__(self, *error: object) -> None:
        self._listening.__exit__(None, None, None)
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()


def meet(barrier: Barrier) -> None:
    """Wait a moment for the other thread, which can be blocked by a lock of this one."""
    with suppress(BrokenBarrierError):
        barrier.wait(timeout=1)


def claims(shop: Escalated) -> list[Claim]:
    """Claim all due contacts, and start an attempt for each of them."""
    policy = build_paging_settings(shop.settings)
    with shop.session() as session:
        batch_due_pages(policy, session=session, now=shop.now)
    with shop.session() as session:
        found = CONTACT_QUEUE.claim_destinations(select(Contact.id), session=session, now=shop.now)
    for each in found:
        with shop.session() as session:
            take_next_message(each, policy, session=session, keyring=shop.keyring, now=shop.now)
    return sorted(found, key=lambda each: each.destination_id)


@pytest.mark.long
@pytest.mark.parametrize("of_one", [True, False])
def test_two_contacts_fail_at_the_same_moment(shop: Escalated, of_one: bool) -> None:  # noqa: FBT001
    """Let each contact pass its pages to the other, or notify the other as a maintainer."""
    if of_one:
        (person,) = people = [shop.person("eve", has_contact=False)]
        first, second = (shop.email_contact(person.id, f"{at}@pager.example") for at in "ab")
        contact_rule(shop, first, "critical")
        contact_rule(shop, second, "other")
    else:
        people = [shop.person(name, role=Role.MAINTAINER) for name in ("eve", "max")]
    shop.page([shop.alert(severity=0)], people[0], is_critical=True)
    shop.page([shop.alert(severity=3)], people[-1])
    shop.wait(seconds=40)
    taken = claims(shop)
    assert len(taken) == 2
    barrier = Barrier(2)

    def fail(claim: Claim) -> None:
        problem = SendProblem("it refused", is_final=True)
        with shop.session() as session:
            args = {"share": 0.5, "session": session, "now": shop.now}
            record_failed_attempt(claim, problem, build_paging_settings(shop.settings), **args)  # type: ignore[arg-type]

    # At this point, both threads have locked their contact.
    with before(("SELECT page_batches.id",), partial(meet, barrier)):
        run_simultaneously([partial(fail, each) for each in taken])
    messages = shop.rows(PageMessage)
    if of_one:
        told = {(row.contact_id, row.batch_id) for row in messages if row.kind == "page"}
        batches = {batch for _, batch in told}
        assert {(each.destination_id, batch) for each in taken for batch in batches} <= told
    else:
        told = {row.contact_id for row in messages if row.kind == "notice"}
        assert told & {each.destination_id for each in taken}


@pytest.mark.long
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_policy_is_deleted_while_a_worker_locks_its_turns(shop: Escalated, moment: str) -> None:
    """Check that the step runs by the chosen policy, and the next step by another one."""
    shop.policy("0s user:bob", name="Fallback")
    policy = shop.policy("0s round-robin user:alice user:bob", name="Turns", is_default=False)
    shop.route(policy)

    def delete() -> None:
        with shop.session() as session:
            work, project = shop.work(session), shop.project_view(session)
            (route,) = session.query(AlertRoute)
            delete_route(work, project, route.id)
            delete_policy(work, project, policy.id)

    alert = shop.alert()
    words = _BEFORE_TURNS if moment == "before" else ("INSERT INTO escalation_pages",)
    # After this statement, the deletion waits for the worker.
    with ConcurrentAction(delete, words=words, patience=30 if moment == "before" else 1):
        shop.follow()
    assert shop.paged(alert)[:1] == [("alice", 1, 1)]
    shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 1)]
    assert shop.said(alert)[-1] == (
        "The escalation policy no longer applies. Paging starts again with another policy."
    )


def test_an_alert_ends_while_its_page_outcome_is_processed(
    shop: Escalated,
) -> None:
    shop.policy("0s user:bob", "5m user:alice")
    alert = shop.alert()
    shop.follow()
    shop.wait(seconds=2)
    shop.run()
    shop.resolve([alert])

    def process_outcomes() -> None:
        with shop.session() as session:
            process_page_outcomes(session=session, now=shop.now)

    with ConcurrentAction(process_outcomes, words=("SELECT page_recipients.id",), patience=2):
        shop.follow()
    assert shop.escalation(alert).state == "stopped"
    page, follow_up = shop.rows(Page)
    assert page.withdrawn_at
    assert not page.has_news
    assert follow_up.kind == "follow_up"


@pytest.mark.long
def test_an_incident_is_acknowledged_while_a_worker_sends_its_pages(
    shop: Escalated, mailbox: Mailbox
) -> None:
    """Check that only users who may have read a page are notified of the answer."""
    do(shop, rule_actions.create_rule, NewIncidentRule(name="any", responders=("user:bob",)))
    outcomes = []
    for number in range(ROUNDS):
        title = f"Outage {number:02}"
        shop.alert(title, fingerprint=title.encode(), severity=0)
        shop.follow()
        shop.page([shop.alert(f"Beside {number:02}")], shop.bob)
        shop.wait(seconds=31)

        def acknowledge(title: str = title) -> None:
            with shop.session() as session:
                lock_incidents(shop.project_id, session=session)
                incident = session.query(Incident).filter_by(title=title).one()
                by = EventActor(id=shop.alice.id, name="alice")
                work = work_in(session, now=shop.now)
                change_incident_status(work, incident, "acknowledged", actor=by)

        with ConcurrentAction(acknowledge, patience=0.5, skipped=2 * number):
            shop.run()
        shop.run_for(35)
        texts = texts_to(mailbox, "bob")
        paged = sum(f"[critical] Incident: {title}" in each for each in texts)
        told = sum(f"Acknowledged by @alice: Incident: {title}" in each for each in texts)
        outcomes.append((paged, told))
        mailbox.messages.clear()
        mailbox.recipients.clear()
    assert set(outcomes) == {(0, 0), (1, 1)}, outcomes
