"""Tests of actions on an alert before the worker creates its escalation."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile_of
from hypothesis.strategies import lists, sampled_from

from domain.core.errors import ConflictError
from domain.paging.escalations import manual_actions
from domain.paging.escalations.state import EscalationState
from domain.paging.escalations.types import AlertSnooze
from models import Alert, Escalation
from tests.paging.escalations.test_handling import do, set_timeout, status
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases
HOUR = timedelta(hours=1)


@pytest.fixture
def covered(shop: Escalated) -> Escalated:
    """Return a project whose policy has an acknowledgement timeout."""
    night = shop.policy("0s user:alice", "30m user:bob")
    set_timeout(shop, night.id, "30m")
    return shop


def acknowledge(shop: Escalated, alert: int) -> None:
    shop.act(alert, "acknowledged", by=shop.bob)


def snooze(shop: Escalated, alert: int) -> None:
    do(shop, manual_actions.snooze_alert, alert, AlertSnooze(duration=HOUR), by=shop.bob)


def escalate(shop: Escalated, alert: int) -> None:
    do(shop, manual_actions.escalate_alert, alert, by=shop.bob)


def wake(shop: Escalated, alert: int) -> None:
    do(shop, manual_actions.end_snooze, alert, by=shop.bob)


def renew(shop: Escalated, alert: int) -> None:
    do(shop, manual_actions.renew_acknowledgement, alert, by=shop.bob)


def ignore(shop: Escalated, alert: int) -> None:
    shop.act(alert, "ignored", by=shop.bob)


def resolve(shop: Escalated, alert: int) -> None:
    shop.act(alert, "resolved", by=shop.bob)


def trigger(shop: Escalated, alert: int) -> None:
    shop.act(alert, "triggered", by=shop.bob)


def make_worse(shop: Escalated, alert: int) -> None:
    with shop.session() as session:
        severity = session.get_one(Alert, alert).severity
    shop.raise_severity(alert, max(severity - 1, 1))


def process(shop: Escalated, _: int) -> None:
    shop.follow()


Act = Callable[[Escalated, int], None]
ACTS: tuple[Act, ...] = (
    *(acknowledge, snooze, escalate, wake, renew, ignore, resolve, trigger, make_worse),
    process,
)


@pytest.mark.spec("J1")
def test_an_acknowledgement_before_processing_times_out(covered: Escalated) -> None:
    alert = covered.alert()
    acknowledge(covered, alert)
    covered.now += timedelta(minutes=10)  # No worker is running.
    covered.follow()
    view = covered.explained(alert)
    assert (view.state, view.policy) == (EscalationState.ACKNOWLEDGED, "Night")
    assert view.rests_until == covered.now + timedelta(minutes=20)
    assert covered.paged(alert) == []
    covered.now += timedelta(minutes=20)
    covered.follow()
    covered.follow()
    assert status(covered, alert) == "triggered"
    # The user who acknowledged the alert is paged first.
    assert covered.paged(alert) == [("bob", 1, 0)]


@pytest.mark.parametrize("before", [acknowledge, snooze], ids=lambda each: each.__name__)
@pytest.mark.parametrize("is_processed", [True, False])
def test_an_alert_can_be_escalated_after_any_first_action(
    covered: Escalated, before: Act, *, is_processed: bool
) -> None:
    alert = covered.alert()
    before(covered, alert)
    if is_processed:
        covered.follow()
    assert covered.explained(alert).can_escalate
    escalate(covered, alert)
    covered.follow()
    assert (status(covered, alert), covered.paged(alert)) == ("triggered", [("alice", 1, 1)])


def test_a_triggered_alert_is_escalated_once(shop: Escalated) -> None:
    shop.policy("5m user:alice", "30m user:bob")
    alert = shop.alert()
    escalate(shop, alert)
    shop.take_steps()  # The job for steps processes the alert first.
    shop.follow()
    assert shop.paged(alert) == [("alice", 1, 1)]


def test_an_alert_that_is_triggered_again_before_processing_pages_once(
    covered: Escalated,
) -> None:
    alert = covered.alert()
    acknowledge(covered, alert)
    trigger(covered, alert)
    covered.follow()
    assert covered.paged(alert) == [("alice", 1, 1)]


def test_an_unprocessed_acknowledgement_can_be_renewed(
    covered: Escalated,
) -> None:
    alert = covered.alert()
    acknowledge(covered, alert)
    covered.now += timedelta(minutes=10)
    renew(covered, alert)
    until = covered.now + timedelta(minutes=30)
    assert covered.explained(alert).rests_until == until
    covered.follow()
    assert covered.explained(alert).rests_until is not None
    with covered.session() as session:
        assert session.query(Escalation).one().policy_id is not None


@pytest.mark.parametrize("end", [ignore, resolve], ids=lambda each: each.__name__)
def test_an_alert_that_ends_before_processing_has_its_policy_and_pages_no_user(
    covered: Escalated, end: Act
) -> None:
    alert = covered.alert()
    end(covered, alert)
    covered.follow()
    view = covered.explained(alert)
    assert (view.state, view.policy) == (EscalationState.STOPPED, "Night")
    assert (
        view.sentence
        == f"Nobody was paged before @bob {end.__name__.removesuffix('e')}ed the alert."
    )
    assert covered.paged(alert) == []
    trigger(covered, alert)
    covered.follow()
    assert covered.paged(alert) == [("alice", 1, 1)]


def test_a_recurring_alert_does_not_wait_for_its_unprocessed_predecessor(
    covered: Escalated,
) -> None:
    first = covered.alert(fingerprint=b"same")
    with covered.session() as session:
        row = session.get_one(Alert, first)
        row.status, row.ended_at = "resolved", covered.now
    covered.now += timedelta(minutes=4)
    second = covered.alert(fingerprint=b"same")
    covered.now += timedelta(minutes=6)
    covered.follow()
    assert covered.paged(second) == [("alice", 1, 1)]


def test_a_recurring_alert_continues_while_a_manual_escalation_is_pending(
    covered: Escalated,
) -> None:
    first = covered.alert(fingerprint=b"same")
    covered.follow()
    with covered.session() as session:
        row = session.get_one(Alert, first)
        row.status, row.ended_at = "resolved", covered.now
    covered.follow()
    covered.now += timedelta(minutes=4)
    second = covered.alert(fingerprint=b"same")
    # The action waits a few seconds, during which it can be undone.
    with covered.session() as session:
        iid = session.get_one(Alert, second).iid
        manual_actions.lock_escalatable_alert(
            covered.work(session), covered.project_view(session), iid
        )
    covered.follow()
    assert covered.said(second)[0].startswith("The alert opened again after 4m. Paging continues")


def test_an_alert_older_than_the_policy_gets_an_escalation_at_its_next_change(
    shop: Escalated,
) -> None:
    calm, worse, escalated = shop.alert(severity=3), shop.alert(severity=3), shop.alert(severity=3)
    with pytest.raises(ConflictError, match="No escalation policy"):
        escalate(shop, escalated)
    night = shop.policy("0s user:alice")
    set_timeout(shop, night.id, "30m")
    shop.follow()
    assert "opened before" in shop.explained(calm).sentence
    acknowledge(shop, calm)
    make_worse(shop, worse)
    escalate(shop, escalated)
    shop.follow()
    assert shop.explained(calm).state is EscalationState.ACKNOWLEDGED
    assert shop.paged(worse) == shop.paged(escalated) == [("alice", 1, 1)]


def test_a_silenced_alert_can_be_escalated_only_after_the_silence(
    covered: Escalated,
) -> None:
    silence = covered.silence('title=~".+"', hours=1)
    alert = covered.alert()
    with pytest.raises(ConflictError, match="held back: silence “deploy”"):
        escalate(covered, alert)
    covered.follow()
    assert covered.explained(alert).state is EscalationState.HELD
    covered.end_silence(silence)
    escalate(covered, alert)
    covered.follow()
    assert covered.paged(alert) == [("alice", 1, 1)]


@pytest.mark.hypothesis
def test_an_alert_has_a_fitting_escalation_after_any_actions(
    settings: Settings, request: pytest.FixtureRequest
) -> None:
    """Check random sequences of actions; `make properties` runs more of them."""
    is_long = request.config.getoption("--hypothesis-profile") == "fuzz"
    with running_mail_server(Mailbox()) as port:
        shop = Escalated(settings, port)
        night = shop.policy("0s user:alice", "30m user:bob")
        set_timeout(shop, night.id, "30m")

        @profile_of(
            max_examples=500 if is_long else 6,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(lists(sampled_from(ACTS), max_size=7))
        def check(acts: list[Act]) -> None:
            alert = shop.alert(severity=4)
            for act in acts:
                shop.now += timedelta(seconds=20)
                try:
                    act(shop, alert)
                except ConflictError:
                    continue  # The alert is not snoozed, or it is already resolved.
            shop.follow()
            shop.follow()
            fits(shop, alert)
            if status(shop, alert) == "acknowledged":
                escalate(shop, alert)
                shop.follow()
                assert shop.paged(alert)
            shop.resolve([alert])
            shop.follow()

        try:
            check()
        finally:
            shop.close()


def fits(shop: Escalated, alert: int) -> None:
    """Check that an alert's escalation has a policy, and a state that fits the alert."""
    row, now_is = shop.escalation(alert), status(shop, alert)
    assert row.policy_id is not None
    if now_is == "triggered":
        assert EscalationState(row.state) in {EscalationState.RUNNING, EscalationState.EXHAUSTED}
        assert shop.paged(alert)
    elif now_is == "acknowledged":
        assert EscalationState(row.state) in {EscalationState.ACKNOWLEDGED, EscalationState.SNOOZED}
        assert row.next_at is not None
        assert shop.now - timedelta(minutes=5) < row.next_at - HOUR / 2
    else:
        assert EscalationState(row.state) is EscalationState.STOPPED
    view = shop.explained(alert)
    assert (view.policy, view.state, view.waiting) == ("Night", EscalationState(row.state), None)
