"""Tests that a critical alert pages immediately during an alert storm of another project."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

import pytest
from sqlalchemy import func, select

from domain.access.roles import Role
from domain.alerts.change_feed import Follower
from domain.incidents.rule_actions import create_rule
from domain.incidents.types import NewIncidentRule
from models import AlertChange, EscalationPage, Member
from tests.conftest import KINDS
from tests.faults.processes import running_worker, wait_until
from tests.support.database.work import project_in, work_in
from tests.support.notifications.escalations import Escalated
from tests.support.service.live import SECRET_KEY, NewService
from web.settings.environment import Settings, parse_settings

#: Number of changes in a transaction.
_BATCH = 200
_PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Storm:
    """Represents a project with a storm, and another one whose alerts page Bob."""

    shop: Escalated
    other_id: int

    @classmethod
    def prepare(cls, settings: Settings) -> "Storm":
        """Create the project acme/shop, whose alerts page Alice and open incidents."""
        shop = Escalated(settings)
        shop.now = datetime.now(UTC)
        shop.policy("0s user:alice")
        with shop.session() as session:
            project = project_in(session, shop.project_id)
            create_rule(work_in(session, now=shop.now), project, NewIncidentRule(name="all"))
        return cls(shop, cls._other(shop))

    @staticmethod
    def _other(shop: Escalated) -> int:
        first, shop.project_id = shop.project_id, shop.project("acme/other")
        with shop.session() as session:
            session.add(
                Member(
                    user_id=shop.bob.id,
                    project_id=shop.project_id,
                    role=int(Role.DEVELOPER),
                    created_at=shop.now,
                )
            )
        shop.policy("0s user:bob")
        other_id, shop.project_id = shop.project_id, first
        return other_id

    def critical(self) -> int:
        """Store a critical alert of the other project, and return its id."""
        return self.shop.alert("Payments fail", project_id=self.other_id)

    def page_of(self, alert_id: int) -> int | None:
        """Return the rank of an alert's page among all pages, or None if there is no page."""
        with self.shop.session() as session:
            page = session.scalar(
                select(EscalationPage.id).where(EscalationPage.alert_id == alert_id)
            )
            before = select(func.count()).where(EscalationPage.id <= (page or 0))
            return session.scalar(before) if page else None

    def pages(self) -> int:
        """Return the number of pages."""
        with self.shop.session() as session:
            return session.scalar(select(func.count()).select_from(EscalationPage)) or 0

    def waiting(self) -> int:
        """Return the number of changes that wait for escalations."""
        follower = AlertChange.follower == Follower.ESCALATIONS.value
        with self.shop.session() as session:
            return session.scalar(select(func.count()).where(follower)) or 0


@pytest.mark.long
@pytest.mark.spec("J1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "alerts",
    [1_500, pytest.param(12_000, marks=pytest.mark.faults_full)],
    ids=["small", "full"],
)
def test_a_critical_alert_does_not_wait_for_the_storm_of_another_project(
    new_service: NewService, kind: str, alerts: int
) -> None:
    service = new_service(kind, SECRET_KEY=SECRET_KEY)
    storm = Storm.prepare(parse_settings(service.environment))
    storm.shop.alerts(alerts)
    first = storm.critical()
    with running_worker(service):
        wait_until(lambda: storm.page_of(first), pause=0.02)
        # This alert belongs to the other project and arrives during the storm.
        second = storm.critical()
        began, before = monotonic(), storm.pages()
        wait_until(lambda: storm.page_of(second), pause=0.02)
        took = monotonic() - began
        wait_until(lambda: not storm.waiting(), seconds=300)
    ranks = storm.page_of(first) or 0, storm.page_of(second) or 0
    pages = storm.pages()
    storm.shop.engine.dispose()
    # Each critical alert is paged in the first transaction that began after it.
    said = f"{took:.2f} s beside {alerts} alerts, pages {ranks}, {before} before the second one"
    sys.stdout.write(f"\n{said}\n")
    assert ranks[0] <= _BATCH, said
    assert ranks[1] <= before + 3 * _BATCH, said
    # On an idle machine this takes a moment, for a storm of any size.
    assert took < _PATIENCE_SECONDS, said
    assert pages == alerts + 2
