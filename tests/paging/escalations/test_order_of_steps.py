"""Tests of the order of steps when many are due."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import insert, select

from domain.paging.escalations.lifecycle import ESCALATION_BATCH_SIZE
from models import Escalation, EscalationPolicy
from tests.support.notifications.escalations import Escalated
from web.jobs.escalations import EscalationJob


def take_first_batch(shop: Escalated) -> int:
    """Run the first batch of due steps, and return the number of steps."""
    looks = 0

    def clock() -> datetime:
        nonlocal looks
        looks += 1
        if looks == 2:  # The first call finds the steps, and the second call takes them.
            steps.is_stopped.set()
        return shop.now

    with EscalationJob(shop.settings, clock=clock) as steps:
        return steps.process_all_due_work()


@pytest.mark.both_databases
def test_the_step_of_a_critical_alert_does_not_wait_for_many_others(
    shop: Escalated,
) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    others = shop.alerts(2_000, severity=3)
    critical = shop.alert()
    with shop.session() as session:
        (policy,) = session.scalars(select(EscalationPolicy))
        # No user was reachable, and the critical alert is the last that became due.
        rows = [
            {
                "alert_id": alert_id,
                "project_id": shop.project_id,
                "state": "running",
                "policy_id": policy.id,
                "round": 1,
                "step": 1,
                "round_began_at": shop.now - timedelta(hours=1, seconds=-place / 100),
                "next_at": shop.now - timedelta(minutes=55, seconds=-place / 100),
                "has_reached": True,
                "started_at": shop.now - timedelta(hours=1),
                "decided_at": shop.now - timedelta(hours=1),
            }
            for place, alert_id in enumerate([*others, critical])
        ]
        session.execute(insert(Escalation), rows)
    assert take_first_batch(shop) == ESCALATION_BATCH_SIZE
    assert shop.paged(critical) == [("bob", 1, 2)]
