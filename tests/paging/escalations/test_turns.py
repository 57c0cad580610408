"""Tests of round-robin steps, which page the next target for each new alert."""

from threading import Thread
from time import sleep

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.paging.escalations.policy_steps import Target
from domain.paging.escalations.reporting.dry_run import build_dry_run_period, simulate_pages
from domain.paging.escalations.round_robin import lock_round_robin_turns
from domain.paging.notifications.recipients import PagingPreferences, QuietHours, store_preferences
from models import Alert
from tests.support.notifications.escalations import Escalated

ROUND_ROBIN = "0s round-robin user:alice user:bob user:carol"


@pytest.fixture
def three(shop: Escalated) -> Escalated:
    shop.person("carol")
    return shop


def paged(shop: Escalated, count: int = 1) -> list[str]:
    """Open alerts one after the other, and return the paged users."""
    alerts = []
    for _ in range(count):
        alerts.append(shop.alert())
        shop.pass_time(seconds=30)
    return [name for alert in alerts for name, _, _ in shop.paged(alert)]


@pytest.mark.long
def test_each_new_alert_pages_the_next_target(three: Escalated) -> None:
    policy = three.policy(ROUND_ROBIN, "30m user:bob")
    said = "Immediately, round-robin: @alice, @bob and @carol."
    assert policy.sentences[0] == said
    assert paged(three, 4) == ["alice", "bob", "carol", "alice"]


@pytest.mark.long
def test_simultaneous_alerts_page_one_user_each(three: Escalated) -> None:
    three.policy(ROUND_ROBIN)
    alerts = three.alerts(6)
    three.pass_time()
    names = [name for alert in alerts for name, _, _ in three.paged(alert)]
    assert sorted(names) == ["alice", "alice", "bob", "bob", "carol", "carol"]


def test_concurrent_workers_do_not_choose_the_same_target(three: Escalated) -> None:
    policy = three.policy(ROUND_ROBIN)
    (step,) = policy.plan.steps
    taken: list[Target] = []

    def take() -> None:
        with three.session() as session:
            turns = lock_round_robin_turns({policy.id: policy.plan}, session=session)
            target = turns.order_targets(policy.id, 1, step)[0]
            sleep(0.1)
            turns.store_last_target(policy.id, 1, target)
            taken.append(target)

    threads = [Thread(target=take) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(taken) == set(step.targets)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_an_unreachable_target_is_skipped_with_an_explanation(shop: Escalated) -> None:
    shop.schedule("nobody")
    quiet = QuietHours(time_zone="UTC", starts=0, ends=23 * 60, lets_critical_through=False)
    with shop.session() as session:
        wanted = PagingPreferences(quiet_hours=quiet)
        store_preferences(shop.alice.id, wanted, session=session, now=shop.now)
    shop.policy("0s round-robin user:alice schedule:nobody user:bob")
    alert = shop.alert()
    shop.pass_time()
    assert shop.paged(alert) == [("bob", 1, 1)]
    assert shop.said(alert)[0] == (
        "Step 1 of Night: @alice has quiet hours, so the next target was paged; "
        "nobody is on call in nobody, so the next target was paged."
    )


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_step_without_reachable_targets_is_explained(shop: Escalated) -> None:
    shop.schedule("nobody")
    shop.policy("0s round-robin schedule:nobody", "9m user:bob")
    alert = shop.alert()
    shop.pass_time()
    assert shop.paged(alert) == [("bob", 1, 2)]
    assert "Step 1 of Night reached nobody: nobody is on call in nobody" in shop.said(alert)[0]


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_repetition_pages_the_next_target(three: Escalated) -> None:
    three.policy(ROUND_ROBIN, repeats=1, pause="5m")
    alert = three.alert()
    three.pass_time()
    three.pass_time(minutes=5)
    assert three.paged(alert) == [("alice", 1, 1), ("bob", 2, 1)]


@pytest.mark.one_database("sqlite")
def test_a_recurring_alert_pages_the_same_target_again(three: Escalated) -> None:
    three.policy(ROUND_ROBIN, "30m user:carol")
    first = three.alert(fingerprint=b"disk")
    three.pass_time(minutes=1)
    with three.session() as session:
        row = session.get_one(Alert, first)
        row.status, row.ended_at = "resolved", three.now
    three.pass_time(minutes=1)
    second = three.alert(fingerprint=b"disk")
    three.pass_time()
    assert [name for name, _, _ in three.paged(first) + three.paged(second)] == ["alice", "alice"]
    assert paged(three) == ["bob"]


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_dry_run_uses_round_robin(three: Escalated) -> None:
    three.policy(ROUND_ROBIN)
    for _ in range(3):
        three.pass_time(minutes=1)
        three.alert()
    three.pass_time(minutes=1)
    with three.session() as session:
        asked = build_dry_run_period(None, None, now=three.now)
        reading = three.work(session).policy(ParserSettings)
        found = simulate_pages(
            three.project_view(session), asked, session=session, parser_settings=reading
        )
    assert [alert.pages[0].user for alert in found.alerts] == ["carol", "bob", "alice"]
