"""Tests of manual actions: escalate, page a user, snooze, and renew an acknowledgement."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.access.actor import OPERATOR
from domain.audit.events import EventActor as Author
from domain.audit.events import EventSource
from domain.core.errors import ConflictError, InvalidError
from domain.paging.escalations import manual_actions
from domain.paging.escalations.actions import change_policy
from domain.paging.escalations.state import EscalationState
from domain.paging.escalations.types import AlertPageBody, AlertPaging, AlertSnooze, PolicyChange
from models import Alert, AlertNote, User
from tests.paging.escalations.test_page_texts import texts_to
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
    """Perform an action on an alert, as a user or as the operator."""
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


def user_actions(shop: Escalated, alert_id: int) -> list[str]:
    """Return the actions of users from the activity."""
    return [
        f"{row.user_name} {row.text} {row.via or ''}".strip()
        for row in shop.rows(AlertNote)
        if row.alert_id == alert_id and row.kind in {"status", "handling"}
    ]


def set_timeout(shop: Escalated, policy_id: int, length: str | None) -> None:
    change = PolicyChange.model_validate({"acknowledgement_timeout": length})
    with shop.session() as session:
        change_policy(shop.work(session), shop.project_view(session), policy_id, change)


@pytest.mark.long
@pytest.mark.both_databases
def test_escalating_runs_the_next_step_immediately(shop: Escalated) -> None:
    shop.policy("0s user:alice", "30m user:bob", repeats=1)
    alert = shop.alert()
    shop.pass_time()
    do(shop, manual_actions.escalate_alert, alert, by=shop.alice)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    do(shop, manual_actions.escalate_alert, alert, by=shop.bob)  # This runs the next round.
    shop.pass_time()
    assert shop.paged(alert)[2:] == [("alice", 2, 1)]
    assert user_actions(shop, alert) == [
        "alice escalated it: the next step runs now",
        "bob escalated it: the next step runs now",
    ]


@pytest.mark.long
@pytest.mark.both_databases
def test_escalating_an_acknowledged_alert_runs_the_next_step(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "30m user:bob")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    # The result is the same before and after the worker has processed the acknowledgement.
    do(shop, manual_actions.escalate_alert, alert, by=shop.alice)
    assert status(shop, alert) == "triggered"
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 2)]
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.pass_time(minutes=1)
    do(shop, manual_actions.escalate_alert, alert, by=shop.bob)  # The last step has already run.
    shop.pass_time()
    assert shop.paged(alert)[2:] == [("alice", 1, 1)]
    assert user_actions(shop, alert)[:3] == [
        "alice acknowledged",
        "alice triggered to escalate it",
        "alice escalated it: the next step runs now",
    ]


def test_escalating_fails_if_no_user_would_be_paged(shop: Escalated) -> None:
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
def test_escalating_after_all_steps_starts_again(shop: Escalated) -> None:
    shop.policy("0s user:alice", pause="1m")
    alert = shop.alert()
    for _ in range(3):
        shop.pass_time(minutes=2)
    assert shop.escalation(alert).state == EscalationState.UNANSWERED
    do(shop, manual_actions.escalate_alert, alert)
    shop.pass_time()
    assert shop.paged(alert) == [("alice", 1, 1)] * 2
    assert shop.escalation(alert).state == EscalationState.EXHAUSTED


@pytest.mark.long
@pytest.mark.both_databases
def test_a_user_can_be_paged_about_an_acknowledged_alert(shop: Escalated, mailbox: Mailbox) -> None:
    shop.policy("0s user:alice")
    alert = shop.alert()
    shop.pass_time()
    shop.act(alert, "acknowledged", by=shop.alice)
    do(shop, manual_actions.page_user, alert, AlertPageBody(user="@Bob"), by=shop.alice)
    # The page is sent, although the worker processes the acknowledgement only now.
    shop.pass_time()
    (text,) = texts_to(mailbox, "bob")
    assert "Paged by: @alice" in text
    assert shop.paged(alert) == [("alice", 1, 1), ("bob", 1, 0)]
    assert user_actions(shop, alert)[-1] == "alice paged @bob"
    shop.pass_time(minutes=2)
    assert shop.escalation(alert).state == EscalationState.STOPPED


def test_paging_an_unreachable_user_fails_with_the_reason(shop: Escalated) -> None:
    alert = shop.alert()
    shop.person("eve", has_contact=False)
    shop.person("mallory", role=None)
    for name, why in (
        ("eve", "@eve has no confirmed contact, so no page was sent."),
        ("mallory", '"mallory" is not a member who can see the alerts of this project.'),
        ("nobody", '"nobody" is not a member who can see the alerts of this project.'),
    ):
        with pytest.raises(InvalidError, match=why):
            do(shop, manual_actions.page_user, alert, AlertPageBody(user=name))
    assert shop.paged(alert) == []


@pytest.mark.long
@pytest.mark.both_databases
def test_a_snoozed_alert_is_triggered_again_when_the_snooze_ends(shop: Escalated) -> None:
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
    assert (view.state, view.snoozed_until) == (
        EscalationState.SNOOZED,
        shop.now + timedelta(hours=1),
    )
    with shop.session() as session:  # Another event is reported.
        session.get_one(Alert, alert).events += 1
    for _ in range(3):
        shop.pass_time(minutes=19)
    assert (status(shop, alert), shop.paged(alert)) == ("acknowledged", [("alice", 1, 1)])
    shop.pass_time(minutes=3)
    shop.pass_time()
    assert (status(shop, alert), shop.paged(alert)) == ("triggered", [("alice", 1, 1)] * 2)
    assert user_actions(shop, alert) == [
        "alice acknowledged",
        "alice snoozed it until 2026-03-01 21:00 UTC",
        "triggered by itself when its snooze ended",
    ]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_snooze_ends_manually_by_a_higher_severity_or_with_the_alert(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    woken, raised, ended, again = alerts = [shop.alert(severity=2) for _ in range(4)]
    shop.pass_time()
    for each in alerts:
        do(shop, manual_actions.snooze_alert, each, AlertSnooze(duration=timedelta(hours=8)))
    shop.pass_time(minutes=1)
    do(shop, manual_actions.end_snooze, woken, by=shop.bob)
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
        do(shop, manual_actions.end_snooze, woken)


@pytest.mark.long
def test_an_alert_without_a_policy_can_be_snoozed(shop: Escalated) -> None:
    alert = shop.alert()
    do(shop, manual_actions.snooze_alert, alert, AlertSnooze(duration=timedelta(hours=1)))
    assert status(shop, alert) == "acknowledged"
    shop.pass_time(minutes=61)
    assert status(shop, alert) == "triggered"


@pytest.mark.parametrize(
    ("zone", "until"),
    [("Europe/Berlin", "2026-03-02T08:00:00Z"), ("America/New_York", "2026-03-02T14:00:00Z")],
)
def test_a_snooze_until_tomorrow_ends_at_nine_in_the_user_s_time_zone(
    shop: Escalated, zone: str, until: str
) -> None:
    alert = shop.alert()
    with shop.session() as session:
        session.get_one(User, shop.alice.id).time_zone = zone
    view = do(shop, manual_actions.snooze_alert, alert, AlertSnooze(tomorrow=True), by=shop.alice)
    assert view.model_dump(mode="json")["snoozed_until"].replace(".000", "") == until


@pytest.mark.long
@pytest.mark.both_databases
def test_an_acknowledgement_times_out_and_its_author_is_paged_first(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice", "10m user:bob")
    set_timeout(shop, policy.id, "30m")
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
    assert user_actions(shop, alert) == [
        "bob acknowledged",
        "bob is still on it, until 2026-03-01 20:50 UTC",
        "triggered by itself when its acknowledgement expired",
    ]
    assert shop.said(alert)[0].startswith("The user who acknowledged the alert is paged first.")


@pytest.mark.long
def test_an_unreachable_author_of_an_acknowledgement_is_skipped(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice")
    set_timeout(shop, policy.id, "5m")
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
def test_a_timeout_has_no_effect_if_it_was_unset_or_the_alert_is_resolved(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice")
    endless = shop.alert()
    shop.pass_time()
    shop.act(endless, "acknowledged", by=shop.alice)
    shop.pass_time()
    set_timeout(shop, policy.id, "5m")
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
            set_timeout(shop, policy.id, length)
