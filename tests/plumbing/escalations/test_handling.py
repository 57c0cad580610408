"""People escalate alerts, page each other, snooze, and say that they are still on it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.access.actor import OPERATOR
from domain.audit.events import Actor as Author
from domain.audit.events import EventSource
from domain.core.errors import ConflictError, InvalidError
from domain.paging.escalations import manual_actions
from domain.paging.escalations.actions import change_policy
from domain.paging.escalations.state import State
from domain.paging.escalations.types import AlertPageBody, AlertPaging, AlertSnooze, PolicyChange
from models import Alert, AlertNote, User
from tests.plumbing.escalations.test_page_texts import texts_to
from tests.support.database.work import work_in
from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.escalations import Escalated
from tests.support.notifications.paging import Person

pytestmark = pytest.mark.one_database("sqlite")


def do(
    shop: Escalated,
    act: Callable[..., AlertPaging],
    alert_id: int,
    *body: Any,
    by: Person | None = None,
) -> AlertPaging:
    """Carry out an action on an alert, as a person or as the operator."""
    with shop.session() as session:
        actor = OPERATOR
        if by is not None:
            source = EventSource(actor=Author(id=by.id, name=by.username))
            actor = replace(OPERATOR, id=by.id, name=by.username, source=source)
        work = work_in(session, actor=actor, now=shop.now)
        iid = session.get_one(Alert, alert_id).iid
        return act(work, shop.project_view(session), iid, *body)


def status(shop: Escalated, alert_id: int) -> str:
    with shop.session() as session:
        return session.get_one(Alert, alert_id).status


def told(shop: Escalated, alert_id: int) -> list[str]:
    """Return what people did, as the activity has it."""
    return [
        f"{row.user_name} {row.text} {row.via or ''}".strip()
        for row in shop.rows(AlertNote)
        if row.alert_id == alert_id and row.kind in {"status", "handling"}
    ]


def time_out(shop: Escalated, policy_id: int, length: str | None) -> None:
    change = PolicyChange.model_validate({"acknowledgement_timeout": length})
    with shop.session() as session:
        change_policy(shop.work(session), shop.project_view(session), policy_id, change)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_next_step_is_taken_at_once(shop: Escalated) -> None:
    shop.policy("0s user:alice", "30m user:bob", repeats=1)
    alert = shop.alert()
    shop.pass_time()
    do(shop, manual_actions.escalate_alert, alert, by=shop.alice)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    do(shop, manual_actions.escalate_alert, alert, by=shop.bob)  # the next round
    shop.pass_time()
    assert shop.paged(alert)[2:] == [("alice", 2, 1)]
    assert told(shop, alert) == [
        "alice escalated it: the next step runs now",
        "bob escalated it: the next step runs now",
    ]


@pytest.mark.long
@pytest.mark.both_databases
def test_an_acknowledged_alert_that_is_escalated_goes_on_with_the_next_step(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "30m user:bob")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    # Whether or not the worker has seen it.
    do(shop, manual_actions.escalate_alert, alert, by=shop.alice)
    assert status(shop, alert) == "triggered"
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=1)
    do(shop, manual_actions.escalate_alert, alert, by=shop.bob)  # after the last step
    shop.pass_time()
    assert shop.paged(alert)[2:] == [("alice", 1, 1)]
    assert told(shop, alert)[:3] == [
        "alice acknowledged",
        "alice triggered to escalate it",
        "alice escalated it: the next step runs now",
    ]


def test_nothing_is_escalated_where_nobody_would_be_paged(shop: Escalated) -> None:
    before = shop.alert()
    with pytest.raises(ConflictError, match="No escalation policy"):
        do(shop, manual_actions.escalate_alert, before)
    shop.policy("0s user:alice")
    shop.silence('title=~".+"', hours=1)
    alert = shop.alert()
    shop.pass_time()
    with pytest.raises(ConflictError, match="held back: silence “deploy”"):
        do(shop, manual_actions.escalate_alert, alert)
    shop.act(alert, "resolved", by=shop.alice)
    with pytest.raises(ConflictError, match="The alert is resolved"):
        do(shop, manual_actions.escalate_alert, alert)


@pytest.mark.long
def test_when_all_steps_have_run_it_begins_again(shop: Escalated) -> None:
    shop.policy("0s user:alice", pause="1m")
    alert = shop.alert()
    for _ in range(3):
        shop.pass_time(minutes=2)
    assert shop.escalation(alert).state == State.UNANSWERED
    do(shop, manual_actions.escalate_alert, alert)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)] * 2
    assert shop.escalation(alert).state == State.EXHAUSTED


@pytest.mark.long
@pytest.mark.both_databases
def test_a_person_is_paged_whether_or_not_the_alert_is_acknowledged(
    shop: Escalated, mailbox: Mailbox
) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    do(shop, manual_actions.page_person, alert, AlertPageBody(user="@Bob"), by=shop.alice)
    # It leaves although the worker hears only now that somebody acknowledged the alert.
    shop.pass_time()
    (text,) = texts_to(mailbox, "bob")
    assert "Paged by: @alice" in text
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 0)]
    assert told(shop, alert)[-1] == "alice paged @bob"
    shop.pass_time(minutes=2)
    assert shop.escalation(alert).state == State.STOPPED


def test_who_cannot_be_paged_is_refused_with_the_reason(shop: Escalated) -> None:
    alert = shop.alert()
    shop.person("eve", has_contact=False)
    shop.person("mallory", role=None)
    for name, why in (
        ("eve", "@eve has no confirmed contact, so no page was sent."),
        ("mallory", '"mallory" is not a member who can see the alerts of this project.'),
        ("nobody", '"nobody" is not a member who can see the alerts of this project.'),
    ):
        with pytest.raises(InvalidError, match=why):
            do(shop, manual_actions.page_person, alert, AlertPageBody(user=name))
    assert shop.paged(alert) == []


@pytest.mark.long
@pytest.mark.both_databases
def test_a_snoozed_alert_rests_until_its_time_and_then_begins_anew(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    shop.pass_time()
    view = do(
        shop,
        manual_actions.snooze_alert,
        alert,
        AlertSnooze(duration=timedelta(hours=1)),
        by=shop.alice,
    )
    assert (view.state, view.snoozed_until) == (State.SNOOZED, shop.now + timedelta(hours=1))
    with shop.session() as session:  # a further report
        session.get_one(Alert, alert).events += 1
    for _ in range(3):
        shop.pass_time(minutes=19)
    assert (status(shop, alert), shop.paged(alert)) == ("acknowledged", [("alice", 1, 1)])
    shop.pass_time(minutes=3)
    shop.pass_time()
    assert (status(shop, alert), shop.paged(alert)) == ("triggered", [("alice", 1, 1)] * 2)
    assert told(shop, alert) == [
        "alice acknowledged",
        "alice snoozed it until 2026-03-01 21:00 UTC",
        "triggered by itself when its snooze ended",
    ]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_snooze_ends_by_hand_by_a_worse_report_and_with_the_alert(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    woken, raised, ended, again = alerts = [shop.alert(severity=2) for _ in range(4)]
    shop.pass_time()
    for each in alerts:
        do(shop, manual_actions.snooze_alert, each, AlertSnooze(duration=timedelta(hours=8)))
    shop.pass_time(minutes=1)
    do(shop, manual_actions.wake_alert, woken, by=shop.bob)
    shop.raise_severity(raised, 0)
    shop.resolve([ended])
    shop.act(again, "triggered", by=shop.bob)
    shop.pass_time(minutes=1)
    shop.pass_time()
    assert [status(shop, each) for each in alerts] == [
        *("triggered", "triggered", "resolved", "triggered")
    ]
    assert [len(shop.paged(each)) for each in alerts] == [2, 2, 1, 2]
    shop.pass_time(minutes=9 * 60)
    assert status(shop, ended) == "resolved"
    with pytest.raises(ConflictError, match="not snoozed"):
        do(shop, manual_actions.wake_alert, woken)


@pytest.mark.long
def test_an_alert_that_no_policy_pages_for_rests_as_well(shop: Escalated) -> None:
    alert = shop.alert()
    do(shop, manual_actions.snooze_alert, alert, AlertSnooze(duration=timedelta(hours=1)))
    assert status(shop, alert) == "acknowledged"
    shop.pass_time(minutes=61)
    assert status(shop, alert) == "triggered"


@pytest.mark.parametrize(
    ("zone", "until"),
    [("Europe/Berlin", "2026-03-02T08:00:00Z"), ("America/New_York", "2026-03-02T14:00:00Z")],
)
def test_tomorrow_is_nine_o_clock_where_the_person_is(
    shop: Escalated, zone: str, until: str
) -> None:
    alert = shop.alert()
    with shop.session() as session:
        session.get_one(User, shop.alice.id).time_zone = zone
    view = do(shop, manual_actions.snooze_alert, alert, AlertSnooze(tomorrow=True), by=shop.alice)
    assert view.model_dump(mode="json")["snoozed_until"].replace(".000", "") == until


@pytest.mark.long
@pytest.mark.both_databases
def test_an_acknowledgement_runs_out_and_its_author_is_asked_first(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice", "10m user:bob")
    time_out(shop, policy.id, "30m")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=20)
    view = do(shop, manual_actions.renew_acknowledgement, alert, by=shop.bob)
    assert view.acknowledged_until == shop.now + timedelta(minutes=30)
    shop.pass_time(minutes=20)
    assert status(shop, alert) == "acknowledged"
    shop.pass_time(minutes=11)
    shop.pass_time()
    assert status(shop, alert) == "triggered"
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 0)]
    shop.pass_time(minutes=4)
    assert len(shop.paged(alert)) == 2
    shop.pass_time(minutes=1)
    shop.pass_time(minutes=10)
    assert shop.paged(alert)[2:] == [("alice", 1, 1), ("bob", 1, 2)]
    assert told(shop, alert) == [
        "bob acknowledged",
        "bob is still on it, until 2026-03-01 20:50 UTC",
        "triggered by itself when its acknowledgement expired",
    ]
    assert shop.said(alert)[0].startswith("The user who acknowledged the alert is paged first.")


@pytest.mark.long
def test_who_cannot_be_asked_is_passed_over(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice")
    time_out(shop, policy.id, "5m")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time()
    with shop.session() as session:
        session.get_one(User, shop.bob.id).state = "locked"
    shop.pass_time(minutes=5)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("alice", 1, 1)]
    told = "The user who acknowledged the alert cannot be reached, so paging starts again"
    assert any(each.startswith(told) for each in shop.said(alert))
    assert ("page", "bob", "is not active and was not paged") in shop.activity(alert)


@pytest.mark.long
def test_a_time_out_that_is_resolved_or_never_set_does_nothing(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice")
    endless = shop.alert()
    shop.pass_time()
    shop.act(endless, "acknowledged", by=shop.alice)
    shop.pass_time()
    time_out(shop, policy.id, "5m")
    solved = shop.alert()
    shop.pass_time()
    shop.act(solved, "acknowledged", by=shop.alice)
    shop.pass_time()
    shop.resolve([solved])
    shop.pass_time(minutes=10)
    assert (status(shop, endless), status(shop, solved)) == ("acknowledged", "resolved")
    with pytest.raises(ConflictError, match="no acknowledgement that expires"):
        do(shop, manual_actions.renew_acknowledgement, endless)
    for length in ("4m", "25h"):
        with pytest.raises(InvalidError, match="between 5 minutes and 24 hours"):
            time_out(shop, policy.id, length)
