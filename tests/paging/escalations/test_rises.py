"""Tests that an acknowledged alert is triggered again when it becomes critical."""

from datetime import timedelta

import pytest

from domain.paging.escalations import manual_actions
from domain.paging.escalations.actions import change_policy
from domain.paging.escalations.state import EscalationState
from domain.paging.escalations.types import AlertSnooze, PolicyChange
from domain.paging.silences.flapping import store_flap_settings
from domain.paging.silences.types import FlapSettings
from models import Alert
from tests.paging.escalations.test_handling import do, set_timeout, status, user_actions
from tests.paging.escalations.test_incident_paging import change, rule
from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.one_database("sqlite")
CRITICAL, HIGH, LOW = 0, 1, 3
BY_ITSELF = "triggered by itself because it became critical"


def acknowledged(shop: Escalated, severity: int = LOW) -> int:
    """Return an alert that Bob has acknowledged, after the worker has processed it."""
    alert = shop.alert(severity=severity)
    shop.follow()
    shop.act(alert, "acknowledged", by=shop.bob)
    shop.follow()
    return alert


def become(shop: Escalated, alert: int, severity: int) -> None:
    shop.raise_severity(alert, severity)
    # The first run triggers the alert, and the second one starts its escalation.
    for _ in range(2):
        shop.follow()


@pytest.mark.both_databases
@pytest.mark.parametrize("timeout", [None, "30m"])
def test_the_user_who_acknowledged_it_is_notified_first(
    shop: Escalated, timeout: str | None
) -> None:
    set_timeout(shop, shop.policy("0s user:alice").id, timeout)
    alert = acknowledged(shop)
    become(shop, alert, CRITICAL)
    assert (status(shop, alert), shop.paged(alert)[1:]) == ("triggered", [("bob", 1, 0)])
    assert user_actions(shop, alert) == ["bob acknowledged", BY_ITSELF]
    assert "paged first" in shop.said(alert)[-1]
    for _ in range(2):
        shop.pass_time(minutes=3)
    assert shop.paged(alert)[2:] == [("alice", 1, 1)]


def test_an_increase_below_critical_keeps_the_alert_acknowledged(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    alert = acknowledged(shop)
    become(shop, alert, HIGH)
    assert (status(shop, alert), len(shop.paged(alert))) == ("acknowledged", 1)


def test_a_policy_can_turn_off_retriggering(shop: Escalated) -> None:
    policy = shop.policy("0s user:alice")
    assert policy.retrigger_when_critical
    assert "stays acknowledged" not in policy.summary
    off = PolicyChange.model_validate({"retrigger_when_critical": False})
    with shop.session() as session:
        project = shop.project_view(session)
        changed = change_policy(shop.work(session), project, policy.id, off)
    assert not changed.retrigger_when_critical
    assert changed.summary.endswith("alert that becomes critical stays acknowledged.")
    alert = acknowledged(shop)
    become(shop, alert, CRITICAL)
    assert (status(shop, alert), len(shop.paged(alert))) == ("acknowledged", 1)


def test_an_alert_that_was_critical_when_acknowledged_stays_acknowledged(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice")
    alert = acknowledged(shop, CRITICAL)
    for severity in (LOW, CRITICAL, HIGH, CRITICAL):
        become(shop, alert, severity)
    assert (status(shop, alert), len(shop.paged(alert))) == ("acknowledged", 1)


@pytest.mark.both_databases
def test_the_order_of_changes_matters_and_not_the_time_of_processing(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    rose, fell_behind, snoozed = (shop.alert(severity=LOW) for _ in range(3))
    shop.raise_severity(rose, CRITICAL)
    shop.act(rose, "acknowledged", by=shop.bob)
    shop.act(fell_behind, "acknowledged", by=shop.bob)
    shop.raise_severity(fell_behind, CRITICAL)
    shop.act(snoozed, "acknowledged", by=shop.bob)
    shop.raise_severity(snoozed, CRITICAL)
    an_hour = AlertSnooze(duration=timedelta(hours=1))
    do(shop, manual_actions.snooze_alert, snoozed, an_hour, by=shop.bob)
    for _ in range(3):
        shop.follow()
    assert [status(shop, each) for each in (rose, fell_behind, snoozed)] == [
        *("acknowledged", "triggered", "acknowledged")
    ]
    assert shop.paged(rose) == shop.paged(snoozed) == []
    assert shop.paged(fell_behind) == [("bob", 1, 0)]
    assert shop.explained(snoozed).state is EscalationState.SNOOZED


def test_renewing_an_acknowledgement_covers_the_current_severity(shop: Escalated) -> None:
    set_timeout(shop, shop.policy("0s user:alice").id, "30m")
    alert = acknowledged(shop)
    shop.raise_severity(alert, CRITICAL)
    do(shop, manual_actions.renew_acknowledgement, alert, by=shop.alice)
    shop.follow()
    assert status(shop, alert) == "acknowledged"


def test_the_policy_for_critical_alerts_decides(shop: Escalated) -> None:
    night = shop.policy("0s user:alice", is_default=False)
    shop.route(night, "Urgent", severities=["critical"])
    alert = acknowledged(shop)
    assert shop.explained(alert).state is EscalationState.NO_POLICY
    become(shop, alert, CRITICAL)
    assert shop.paged(alert) == [("bob", 1, 0)]
    assert shop.explained(alert).policy == "Night"


def test_a_silence_delays_the_page_and_the_user_is_notified_first_afterwards(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice")
    alert = acknowledged(shop)
    silence = shop.silence('title=~".+"', hours=1)
    become(shop, alert, CRITICAL)
    assert status(shop, alert) == "triggered"
    assert shop.explained(alert).state is EscalationState.HELD
    shop.end_silence(silence)
    shop.pass_time(minutes=1)
    assert shop.paged(alert)[1:] == [("bob", 1, 0)]


def test_an_acknowledged_incident_that_quiets_alerts_delays_the_page(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    rule(shop, quiets=True)
    alert = acknowledged(shop)
    change(shop, status="acknowledged")
    become(shop, alert, CRITICAL)
    assert status(shop, alert) == "triggered"
    assert "belongs to incident #1" in shop.explained(alert).sentence
    change(shop, status="triggered")
    shop.pass_time(minutes=1)
    assert shop.paged(alert)[1:] == [("bob", 1, 0)]


@pytest.mark.parametrize("severity", [LOW, CRITICAL])
def test_a_critical_alert_that_continues_a_less_severe_one_is_not_held_back(
    shop: Escalated, severity: int
) -> None:
    shop.policy("0s user:alice")
    with shop.session() as session:
        store_flap_settings(shop.project_id, FlapSettings(reopen_minutes=10), session=session)
    former = shop.alert(severity=severity, fingerprint=b"disk")
    shop.follow()
    shop.act(former, "acknowledged", by=shop.bob)
    with shop.session() as session:
        row = session.get_one(Alert, former)
        row.status, row.ended_at = "resolved", shop.now
    shop.now += timedelta(minutes=1)
    alert = shop.alert(severity=CRITICAL, fingerprint=b"disk")
    shop.follow()
    assert shop.paged(alert) == ([("alice", 1, 1)] if severity == LOW else [])
