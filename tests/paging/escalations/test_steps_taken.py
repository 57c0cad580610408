"""Tests that steps run once when they are due, until a user answers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.core.errors import ConflictError
from domain.paging.escalations import types
from domain.paging.escalations.actions import change_policy, delete_policy
from domain.paging.notifications.contact_types.mail import parse_email_address
from domain.paging.notifications.contacts import ContactOwner
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from models import (
    Alert,
    Contact,
    Escalation,
    EscalationPage,
    EscalationPolicy,
    Member,
    Project,
    User,
)
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person, subjects
from web.jobs.escalations import EscalationJob
from web.jobs.retention import prune_database

pytestmark = pytest.mark.one_database("sqlite")
MINUTE = timedelta(minutes=1)


def addressees(mailbox: Mailbox) -> list[str]:
    return [each[0].partition("@")[0] for each in mailbox.recipients]


@pytest.mark.long
@pytest.mark.spec("J1")
def test_the_second_person_is_paged_if_the_first_does_not_answer(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.pass_time()
    assert addressees(mailbox) == ["alice"]
    shop.pass_time(minutes=4)
    assert addressees(mailbox) == ["alice"]
    shop.pass_time(minutes=1)
    assert addressees(mailbox) == ["alice", "bob"]
    shop.pass_time(minutes=60)
    assert len(mailbox.messages) == 2
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    assert shop.said(alert) == [
        "All steps of Night have run. Nobody else is paged.",
        "Nobody answered within 5m after the last step. The maintainers are notified.",
    ]


@pytest.mark.long
@pytest.mark.parametrize("status", ["acknowledged", "ignored", "resolved"])
def test_an_answer_stops_the_escalation(shop: Escalated, mailbox: Mailbox, status: str) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.pass_time(minutes=1)
    shop.act(alert, status, by=shop.alice)
    shop.pass_time(minutes=10)
    assert shop.paged(alert) == [("alice", 1, 1)]
    assert "bob" not in addressees(mailbox)
    assert shop.escalation(alert).state == "stopped"


@pytest.mark.long
def test_an_alert_that_ends_before_its_page_is_sent_pages_no_user(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.follow()
    assert len(shop.waiting_pages()) == 1
    shop.resolve([alert])
    shop.follow()
    assert shop.waiting_pages() == []
    shop.pass_time(seconds=1)
    assert mailbox.messages == []


def test_a_step_does_not_run_after_an_unprocessed_answer(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    shop.wait(minutes=6)
    shop.take_steps()
    assert shop.paged(alert) == [("alice", 1, 1)]


@pytest.mark.long
def test_reopening_starts_the_escalation_again(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    shop.pass_time(minutes=1)
    shop.act(alert, "triggered", by=shop.alice)
    shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("alice", 1, 1)]
    assert addressees(mailbox).count("alice") == 2


@pytest.mark.long
def test_a_user_who_is_named_twice_in_a_step_is_paged_once(shop: Escalated) -> None:
    shop.schedule("primary", shop.alice)
    shop.policy("0s user:alice schedule:primary user:bob")
    alert = shop.alert()
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 1)]


@pytest.mark.long
def test_steps_are_repeated_as_configured_in_the_policy(shop: Escalated) -> None:
    shop.policy("0s user:alice", "1m user:bob", repeats=2, pause="10m")
    alert = shop.alert()
    for minutes in (0, 1, 10, 1, 10, 1, 30):
        shop.pass_time(minutes=minutes)
    rounds = [(name, number) for name, number, _ in shop.paged(alert)]
    assert rounds == [(name, number) for number in (1, 2, 3) for name in ("alice", "bob")]
    assert shop.escalation(alert).state == "unanswered"


def lose_role(shop: Escalated, person: Person) -> None:
    with shop.session() as session:
        session.execute(delete(Member).where(Member.user_id == person.id))


def lock(shop: Escalated, person: Person) -> None:
    with shop.session() as session:
        session.execute(update(User).where(User.id == person.id).values(state="locked"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("go", "reason"),
    [
        (lose_role, "has no access to the alerts of the project and was not paged"),
        (lock, "is not active and was not paged"),
    ],
)
def test_a_former_user_does_not_delay_steps(
    shop: Escalated,
    go: Callable[[Escalated, Person], None],
    reason: str,
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    go(shop, shop.alice)
    alert = shop.alert()
    shop.pass_time()
    assert shop.paged(alert) == [("bob", 1, 2)]
    assert (
        shop.said(alert)[0] == "Step 1 of Night reached nobody, so the next step runs immediately."
    )
    assert ("page", "alice", reason) in shop.activity(alert)


@pytest.mark.long
def test_a_gap_in_a_schedule_does_not_delay_steps(shop: Escalated) -> None:
    shop.schedule("primary")
    shop.policy("0s schedule:primary", "5m user:alice", "15m user:bob")
    alert = shop.alert()
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 2)]
    (said,) = shop.said(alert)
    assert said.startswith("Step 1 of Night reached nobody: nobody is on call in primary, so ")
    # Bob is paged after the delay of the policy, counted from Alice's page.
    shop.pass_time(minutes=9)
    assert shop.paged(alert) == [("alice", 1, 2)]
    shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 2), ("bob", 1, 3)]


@pytest.mark.long
def test_after_an_outage_of_the_service_users_have_the_full_time_to_answer(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.wait(hours=2)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)]
    shop.pass_time(minutes=4)
    assert shop.paged(alert) == [("alice", 1, 1)]
    shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_maintainers_are_notified_once_an_hour_that_no_user_was_reached(shop: Escalated) -> None:
    shop.person("carol", role=Role.MAINTAINER)
    shop.schedule("primary")
    shop.policy("0s schedule:primary", repeats=1)
    first = shop.alert("Disk full")
    shop.pass_time()
    shop.alert("Disk fuller")
    shop.pass_time(minutes=10)
    (notice,) = shop.notices()
    assert notice.recipient == "carol@accounts.example"
    assert notice.subject == "Nobody was paged for alerts in acme/shop"
    assert "#1 Disk full\nhttp://localhost/acme/shop/-/alerts/1\n" in notice.text
    # Another user can be on call later.
    assert shop.escalation(first).state == "running"
    shop.wait(hours=1)
    shop.alert("Disk fullest")
    shop.pass_time()
    assert len(shop.notices()) == 2


@pytest.mark.long
def test_an_archived_project_pages_no_user(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:alice")
    alert = shop.alert()
    shop.pass_time()
    with shop.session() as session:
        session.get_one(Project, shop.project_id).archived_at = shop.now
    shop.pass_time(minutes=6)
    assert shop.paged(alert) == [("alice", 1, 1)]


def discard(shop: Escalated, policy: types.EscalationPolicy) -> None:
    with shop.session() as session:
        delete_policy(shop.work(session), shop.project_view(session), policy.id)


@pytest.mark.long
def test_the_only_policy_that_pages_for_open_alerts_cannot_be_deleted(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice", "5m user:alice")
    alert = shop.alert()
    shop.pass_time()
    with pytest.raises(ConflictError, match="This policy is escalating an alert, and no"):
        discard(shop, policy)
    shop.act(alert, "acknowledged", by=shop.alice)
    shop.pass_time()
    discard(shop, policy)
    assert shop.paged(alert) == [("alice", 1, 1)]


@pytest.mark.long
@pytest.mark.parametrize("person", ["alice", "bob"])
def test_alerts_of_a_deleted_policy_continue_with_the_new_policy(
    shop: Escalated, person: str
) -> None:
    night = shop.policy("0s user:alice", "5m user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.policy(f"0s user:{person}", name="Day")
    discard(shop, night)
    shop.pass_time(seconds=1)
    assert shop.paged(alert) == [("alice", 1, 1), (person, 1, 1)]
    assert shop.said(alert)[0] == (
        "The escalation policy no longer applies. Paging starts again with another policy."
    )


@pytest.mark.long
def test_users_reached_by_a_deleted_policy_do_not_count_for_the_next_policy(
    shop: Escalated, mailbox: Mailbox
) -> None:
    night = shop.policy("0s user:alice", "1m user:alice", "60m user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.pass_time(minutes=2)
    shop.person("carol", has_contact=False)
    shop.policy("0s user:carol", "60m user:bob", name="Day")
    discard(shop, night)
    mailbox.recipient_answers.append("550 no such user")
    for _ in range(3):
        shop.pass_time(seconds=30)
    assert shop.paged(alert)[2:] == [("carol", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_a_shortened_delay_pages_immediately(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", "60m user:bob")
    alert = shop.alert()
    shop.pass_time()
    change = types.PolicyChange.model_validate({"steps": ["0s user:alice", "1m user:bob"]})
    with shop.session() as session:
        change_policy(shop.work(session), shop.project_view(session), night.id, change)
    shop.pass_time(minutes=1)
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_a_deleted_alert_pages_no_user(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:alice")
    gone, other = shop.alert(), shop.alert()
    shop.follow()
    with shop.session() as session:
        session.execute(delete(Alert).where(Alert.id == gone))
    shop.pass_time(minutes=6)
    assert shop.paged(gone) == []
    assert shop.paged(other) == [("alice", 1, 1), ("alice", 1, 2)]


@pytest.mark.long
def test_a_step_pages_a_channel_of_the_project(shop: Escalated, mailbox: Mailbox) -> None:
    owner = ContactOwner(project_id=shop.project_id)
    channel = shop.contact(owner, parse_email_address("room@chat.example"), label="ops")
    shop.policy("0s channel:ops user:alice", "5m channel:ops")
    alert = shop.alert()
    shop.pass_time()
    assert sorted(addressees(mailbox)) == ["alice", "room"]
    with shop.session() as session:
        session.delete(session.get_one(Contact, channel.id))
    shop.pass_time(minutes=5)
    name = f"channel {channel.id}"
    assert shop.paged(alert) == [("alice", 1, 1), (name, 1, 1)]
    assert shop.said(alert)[0] == "Step 2 of Night reached nobody: a channel was deleted."


@pytest.mark.long
def test_quiet_hours_of_a_user_do_not_delay_others(shop: Escalated, mailbox: Mailbox) -> None:
    night = QuietHours(time_zone="UTC", starts=0, ends=23 * 60 + 59, lets_critical_through=True)
    with shop.session() as session:
        store_preferences(
            shop.alice.id, PagingPreferences(quiet_hours=night), session=session, now=shop.now
        )
    shop.policy("0s user:alice", "5m user:bob")
    urgent, other = shop.alert(), shop.alert(severity=1)
    shop.pass_time()
    assert shop.paged(urgent) == [("alice", 1, 1)]
    # Alice's page is delayed, and the next step does not wait for it.
    assert shop.paged(other) == [("alice", 1, 1), ("bob", 1, 2)]
    assert sorted(addressees(mailbox)) == ["alice", "bob"]


@pytest.mark.long
@pytest.mark.parametrize("lets_critical_through", [True, False])
def test_a_delayed_page_is_sent_when_its_alert_becomes_critical(
    shop: Escalated, mailbox: Mailbox, *, lets_critical_through: bool
) -> None:
    night = QuietHours(
        time_zone="UTC", starts=0, ends=1439, lets_critical_through=lets_critical_through
    )
    with shop.session() as session:
        store_preferences(
            shop.alice.id, PagingPreferences(quiet_hours=night), session=session, now=shop.now
        )
    shop.policy("0s user:alice")
    raised, other = shop.alerts(2, severity=2)
    shop.pass_time()
    shop.raise_severity(raised, 1)
    shop.raise_severity(other, 1)
    shop.pass_time(minutes=1)
    assert mailbox.messages == []
    shop.raise_severity(raised, 0)
    shop.pass_time()
    expected = ["[critical] Disk full 1 (acme/shop #1)"] if lets_critical_through else []
    assert subjects(mailbox) == expected
    waiting = {page.alert_id for page in shop.waiting_pages()}
    assert waiting == ({other} if lets_critical_through else {raised, other})


@pytest.mark.long
def test_old_escalations_are_pruned(shop: Escalated) -> None:
    shop.policy("0s user:alice", "60m user:bob")
    old, open_alert = shop.alerts(2)
    shop.pass_time()
    shop.resolve([old])
    shop.pass_time()
    with shop.session() as session:
        long_ago = datetime.now(UTC) - timedelta(days=91)
        session.execute(
            update(Escalation).where(Escalation.alert_id == old).values(ended_at=long_ago)
        )
        session.execute(update(EscalationPage).values(paged_at=long_ago))
    removed = prune_database(shop.settings)
    assert (removed["escalations"], removed["escalation_pages"]) == (1, 2)
    assert [row.alert_id for row in shop.rows(Escalation)] == [open_alert]


@pytest.mark.long
def test_a_failing_escalation_does_not_delay_others(shop: Escalated) -> None:
    broken = shop.policy("0s user:alice", "5m user:bob", name="Broken", is_default=False)
    shop.route(broken, environments=["lab"])
    shop.policy("0s user:alice", "5m user:bob")
    first, second = shop.alert(environment="lab"), shop.alert()
    shop.pass_time()
    with shop.session() as session:
        session.get_one(EscalationPolicy, broken.id).steps = [{"after": "soon"}]
    shop.wait(minutes=5)
    shop.take_steps()
    assert shop.paged(first) == [("alice", 1, 1)]
    assert shop.paged(second) == [("alice", 1, 1), ("bob", 1, 2)]
    assert shop.take_steps() == 0
    with shop.session() as session:
        row = session.get_one(EscalationPolicy, broken.id)
        row.steps = [
            {"after": 0, "targets": []},
            {"after": 300, "targets": [["user", shop.bob.id]]},
        ]
    shop.wait(minutes=1)
    shop.take_steps()
    assert shop.paged(first) == [("alice", 1, 1), ("bob", 1, 2)]


@pytest.mark.long
def test_a_lock_beyond_the_timeout_does_not_postpone_steps(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alerts = [shop.alert() for _ in range(6)]
    shop.pass_time()
    shop.wait(minutes=5)
    lock = {"sqlite": "SELECT 1", "postgresql": "LOCK TABLE escalation_pages"}
    impatient = replace(
        shop.settings, sqlite_busy_timeout_ms=200, database_statement_timeout_ms=200
    )
    with (
        Session(shop.engine) as other,
        EscalationJob(impatient, clock=lambda: shop.now) as steps,
    ):
        other.execute(text(lock[shop.engine.dialect.name]))
        with pytest.raises(OperationalError):
            steps.process_all_due_work()
    shop.take_steps()
    assert [shop.paged(each)[1:] for each in alerts] == [[("bob", 1, 2)]] * 6
