"""Tests of heartbeats that were down before an upgrade."""

from collections.abc import Iterator

import pytest
from sqlalchemy import update

from domain.core.clock import read_system_clock
from models import Heartbeat
from tests.support.service.live import close_app
from tests.web.jobs.test_heartbeats import MISSED, SECOND, Night, resolve
from web.database.schema import get_newest_known_revision, migrate_to_revision
from web.extensions import db
from web.settings.environment import Settings


@pytest.fixture
def night(settings: Settings) -> Iterator[Night]:
    made = Night(settings)
    yield made
    close_app(made.app)


@pytest.mark.both_databases
def test_a_heartbeat_that_was_down_before_the_upgrade_opens_an_alert_again(night: Night) -> None:
    night.create("--every", "5m", "--grace", "1m")
    night.ping()
    night.at(360)
    resolve(night)
    with night.app.app_context():
        # State that the former release stores.
        db.session.execute(update(Heartbeat).values(due_ms=None))
        db.session.commit()
        db.session.remove()
        db.engine.dispose()
    night.work()
    assert night.alerts() == [f"{MISSED}: resolved"]
    migrate_to_revision(night.settings, "0067")
    migrate_to_revision(night.settings, get_newest_known_revision())
    upgraded_at = read_system_clock()
    night.now = upgraded_at + 350 * SECOND
    night.work()
    assert night.alerts() == [f"{MISSED}: resolved"]
    night.now = upgraded_at + 361 * SECOND
    night.work()
    assert night.alerts() == [f"{MISSED}: resolved", f"{MISSED}: triggered"]
