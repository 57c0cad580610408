"""Tests that an outage of the service itself opens no alerts, with a simulated clock."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from domain.alerts.handling.retention import resolve_stale_alerts
from domain.core.hosts import UnreachablePeriod, record_server_heartbeat
from models import Alert, HeartbeatPing, Integration, UnreachableTime, WebServer
from tests.support.service.commands import operate
from tests.support.service.live import close_app
from tests.web.jobs.test_heartbeats import MISSED, NOON, Night
from web.extensions import db
from web.jobs.retention import prune_database
from web.settings.environment import Settings

pytestmark = pytest.mark.both_databases


class Away(Night):
    """Represents a service that can be down; its web server records when it accepts requests."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.began_at = self.now

    def mark(self, name: str = "web-1:8000") -> UnreachablePeriod | None:
        connections = self.app.extensions["gatebell"].connections
        began_at = self.began_at
        return record_server_heartbeat(
            name, began_at=began_at, connection=connections, now=self.now
        )

    def start(self) -> None:
        self.began_at = self.now
        self.mark()

    def live(self, minutes: float, *, pings: bool = False) -> None:
        """Run the web server and a worker for some minutes."""
        for number in range(round(minutes * 6)):
            self.pass_time(10)
            self.mark()
            if pings and not number % 6:
                self.ping()
            self.work()

    def log(self) -> list[str]:
        with self.app.app_context():
            rows = db.session.scalars(select(HeartbeatPing).where(HeartbeatPing.kind == "log"))
            return [(row.body or b"").decode() for row in rows]


@pytest.fixture
def away(settings: Settings) -> Iterator[Away]:
    made = Away(settings)
    yield made
    close_app(made.app)


@pytest.mark.long
def test_an_hour_long_outage_causes_no_false_heartbeat_alerts(away: Away) -> None:
    for number in range(5):
        away.create("--every", "1m", "--grace", "5m", name=f"job {number}")
        away.ping()
    away.start()
    away.live(1)
    away.pass_time(3_600)
    # The worker can be the first program that runs again.
    away.work()
    assert away.alerts() == []
    away.start()
    away.live(5.9)
    assert away.alerts() == []
    # No ping has arrived since the service is back, so the heartbeats are now missed.
    away.live(0.3)
    assert [each.partition(": ")[2] for each in away.alerts()] == [
        f"job {number}: triggered" for number in range(5)
    ]
    entries = away.log()
    assert len(entries) == 5
    assert entries[0] == (
        "Gatebell could not receive pings from 2026-03-01 12:01 UTC until 2026-03-01 13:01 UTC, so "
        "no alert was opened for a missing ping. The next ping is expected by 2026-03-01 13:02 "
        "UTC, with a grace time of 5m."
    )


@pytest.mark.long
def test_a_job_that_pings_after_an_outage_stays_up(away: Away) -> None:
    away.create("--every", "1m", "--grace", "5m")
    away.start()
    away.live(2, pings=True)
    away.pass_time(3_600)
    away.start()
    away.live(10, pings=True)
    assert (away.alerts(), away.state()) == ([], "up")
    away.live(7)
    assert away.alerts() == [f"{MISSED}: triggered"]


@pytest.mark.long
def test_no_heartbeat_is_missed_while_only_the_worker_runs(away: Away) -> None:
    away.create("--every", "1m", "--grace", "5m")
    away.ping()
    away.start()
    for _ in range(60):
        away.pass_time(60)
        away.work()
    assert away.alerts() == []
    away.start()
    away.live(5.9)
    assert away.alerts() == []
    away.live(0.3)
    assert away.alerts() == [f"{MISSED}: triggered"]


@pytest.mark.long
def test_one_reachable_host_is_enough(away: Away) -> None:
    away.create("--every", "1m", "--grace", "5m")
    away.ping()
    away.start()
    for _ in range(40):
        away.pass_time(10)
        away.mark("web-2:8000")
    assert away.mark() is None
    away.pass_time(10)
    away.mark("web-2:8000")
    assert away.alerts() == []
    away.live(0.3)
    away.pass_time(10)
    assert away.at(361) == [f"{MISSED}: triggered"]
    with away.app.app_context():
        assert db.session.scalars(select(UnreachableTime)).all() == []


@pytest.mark.long
def test_an_alert_is_not_auto_resolved_for_an_outage_of_the_service(
    away: Away,
) -> None:
    made = operate(
        away.app, "integrations", "create", "acme/shop", "--type", "http", "--name", "monitor"
    )
    away.start()
    away.app.test_client().post(
        made["url"].removeprefix("http://localhost"),
        json={"title": "Disk", "fingerprint": "disk"},
        headers={"Authorization": f"Bearer {made['key']}"},
    )
    with away.app.app_context():
        db.session.execute(update(Integration).values(resolve_after_minutes=10))
        db.session.commit()
    away.live(2)
    away.pass_time(3_600)
    assert resolved(away) == 0  # A worker runs, but no web server yet.
    away.start()
    away.live(9.5)
    assert (resolved(away), away.alerts()) == (0, ["Disk: triggered"])
    # A short outage does not restart the wait.
    away.pass_time(40)
    away.start()
    assert (resolved(away), away.alerts()) == (1, ["Disk: resolved"])


def resolved(away: Away) -> int:
    with away.app.app_context():
        found = resolve_stale_alerts(session=db.session(), now=away.now, between=db.session.commit)
        db.session.commit()
        return found


@pytest.mark.long
def test_two_servers_that_return_together_record_one_outage(away: Away) -> None:
    away.start()
    away.mark("web-2:8000")
    away.pass_time(3_600)
    away.began_at = away.now
    assert away.mark() == UnreachablePeriod(began_at=NOON, ended_at=NOON + timedelta(hours=1))
    assert away.mark("web-2:8000") is None
    assert away.mark() is None
    with away.app.app_context():
        assert len(db.session.scalars(select(UnreachableTime)).all()) == 1


@pytest.mark.long
def test_a_clock_that_is_set_back_does_not_delay_alerts(away: Away) -> None:
    away.create("--every", "1m", "--grace", "5m")
    away.pass_time(3_600)
    away.start()
    away.pass_time(-3_600)
    away.ping()
    away.live(7)
    assert away.alerts() == [f"{MISSED}: triggered"]


def test_old_outages_are_pruned(away: Away) -> None:
    away.now = NOON.replace(year=2020)
    away.start()
    away.pass_time(3_600)
    away.start()
    prune_database(away.settings)  # The pruning uses the real clock, which is years later.
    with away.app.app_context():
        assert db.session.scalars(select(UnreachableTime)).all() == []
        assert db.session.scalars(select(WebServer)).all() == []
        assert db.session.scalars(select(Alert)).all() == []
