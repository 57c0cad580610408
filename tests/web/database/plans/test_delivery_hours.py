"""Deliveries by hour and by day, which are found quickly among very many."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from domain.alerts.integrations.delivery_counts import (
    DeliveryCount,
    HourlyDeliveryCounts,
    count_deliveries,
    count_deliveries_by_hour,
)
from tests.support.alerts.bulk import NUMBERS
from tests.support.database.sql_statements import collect_postgres_statements, collect_statements
from tests.support.service.commands import operate
from tests.web.database.plans.test_hot_plans import plan_of
from web.extensions import db

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NOTHING, RECEIVED, REJECTED = (
    HourlyDeliveryCounts(received=received, rejected=rejected)
    for received, rejected in ((False, False), (True, False), (False, True))
)
#: Deliveries of the first integration. The last delivery is two and a half hours old.
_FILL = """
INSERT INTO deliveries (project_id, integration_id, format, is_test, received_at, status_code,
  sender, size, opened, joined, resolved, remarks, truncated_alerts, skipped)
{numbers} SELECT project_id, id, 'http', {no}, {moment}, 200, '', 2, 1, 0, 0, '[]', 0, 0
FROM numbers, integrations WHERE name = 'Busy'
"""
_MOMENTS = {
    "postgresql": "CAST(:now AS TIMESTAMPTZ) - (:count - n + 9000) * interval '1 second'",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', :now, '-' || (:count - n + 9000) || ' seconds')",
}
_ADD = """
INSERT INTO deliveries (project_id, integration_id, format, is_test, received_at, status_code,
  sender, size, opened, joined, resolved, remarks, truncated_alerts, skipped)
SELECT project_id, id, 'http', CAST(:is_test AS BOOLEAN), :moment, :status, '', 2, 0, 0, 0, '[]',
  0, 0 FROM integrations WHERE name = :name
"""


def fill(app: Flask, count: int) -> list[int]:
    """Store a delivery for each second of a busy integration, and two deliveries of another."""
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    names = ("Busy", "Rare", "Silent")
    create = ("integrations", "create", "acme/shop", "--type", "http", "--name")
    made = [operate(app, *create, name)["id"] for name in names]
    with app.app_context():
        kind = db.session.get_bind().dialect.name
        no = "false" if kind == "postgresql" else "0"
        fill_in = _FILL.format(numbers=NUMBERS, no=no, moment=_MOMENTS[kind])
        given = {"first": 1, "count": count, "now": f"{NOW:%Y-%m-%d %H:%M:%S}"}
        db.session.execute(text(fill_in), given)
        for hours, status, is_test in ((2.2, 401, False), (1.5, 200, True), (0.5, 200, False)):
            moment = f"{NOW - timedelta(hours=hours):%Y-%m-%d %H:%M:%S.%f}"
            add = {"moment": moment, "status": status, "is_test": is_test, "name": "Rare"}
            db.session.execute(text(_ADD), add)
        db.session.commit()
    return made


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_the_hours_are_found_with_indexes_that_begin_with_the_integration(app: Flask) -> None:
    fill(app, 3 * 3600)
    with collect_postgres_statements() as sent, app.app_context():
        db.session.execute(text("ANALYZE deliveries"))
        db.session.commit()
        count_deliveries_by_hour(1, session=db.session(), now=NOW)
    plan = plan_of(app, next(each for each in sent if "RECURSIVE" in each[0]))
    accepted, rejected = plan.split("SubPlan")[-2:]
    assert "ix_deliveries_integration_id_id" in accepted, plan
    assert "ix_deliveries_refused" in rejected, plan
    assert "Seq Scan on deliveries" not in plan


def test_each_hour_shows_whether_deliveries_were_accepted_or_rejected(app: Flask) -> None:
    busy, rare, silent = fill(app, 3 * 3600)
    project_id = 1
    with collect_statements(app) as sent, app.app_context():
        found = count_deliveries_by_hour(project_id, session=db.session(), now=NOW)
    assert len([each for each in sent if "deliveries" in each]) == 1
    # A delivery each second, from 5.5 to 2.5 hours ago.
    assert found[busy] == (*(18 * [NOTHING]), *(4 * [RECEIVED]), NOTHING, NOTHING)
    assert found[rare] == (*(21 * [NOTHING]), REJECTED, NOTHING, RECEIVED)
    assert found[silent] == tuple(24 * [NOTHING])


def test_deliveries_are_counted_since_each_time(app: Flask) -> None:
    fill(app, 3 * 3600)
    starts = [NOW - timedelta(hours=hours) for hours in (6, 4, 3, 2, 1)]
    with collect_statements(app) as sent, app.app_context():
        found = count_deliveries(starts, session=db.session())
    assert len([each for each in sent if "deliveries" in each]) == 1
    # A delivery each second, from 5.5 to 2.5 hours ago, and three deliveries after them.
    assert [sum(each) for each in found] == pytest.approx([5400, 3600, 1801, 1, 1], abs=1)
    assert (found[2].rejected, found[3], found[4]) == (1, DeliveryCount(1, 0), DeliveryCount(1, 0))
