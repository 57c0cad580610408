"""Alerts of projects in the last 24 hours, which one statement counts among very many."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from domain.alerts.listing.hourly_counts import MAX_HOUR_COUNT, count_alerts_by_hour
from tests.support.alerts.bulk import NUMBERS
from tests.support.database.sql_statements import collect_postgres_statements, collect_statements
from tests.support.service.commands import operate
from tests.web.database.plans.test_hot_plans import plan_of
from web.extensions import db

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
#: An alert for each ten seconds of the busy project. The last alert is two and a half hours old.
_FILL = """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events,
  started_at, last_event_at, created_at)
{numbers} SELECT :project_id, :offset + n, 0, 'resolved', 1, 'Disk full', '', 1, {moment}, {moment},
  {moment} FROM numbers
"""
_MOMENTS = {
    "postgresql": "CAST(:now AS TIMESTAMPTZ) - (:count - n) * interval '10 seconds'",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', :now, '-' || (10 * (:count - n)) || ' seconds')",
}


def fill(app: Flask, count: int) -> list[int]:
    """Store many alerts of one project, and one alert of another."""
    operate(app, "groups", "create", "acme")
    ids = [operate(app, "projects", "create", f"acme/{name}")["id"] for name in ("a", "b", "c")]
    with app.app_context():
        session = db.session()
        moment = _MOMENTS[session.get_bind().dialect.name]
        statement = text(_FILL.format(numbers=NUMBERS, moment=moment))
        for project_id, number, age in ((ids[0], count, 2.5), (ids[1], 1, 0.5)):
            given = {"first": 1, "count": number, "project_id": project_id, "offset": 0}
            now = f"{NOW - timedelta(hours=age):%Y-%m-%d %H:%M:%S}"
            session.execute(statement, {**given, "now": now})
        session.commit()
    return ids


@pytest.mark.both_databases
def test_one_statement_counts_the_hours_of_all_projects(app: Flask) -> None:
    busy, rare, silent = fill(app, 3 * 360)
    with collect_statements(app) as sent, app.app_context():
        found = count_alerts_by_hour([busy, rare, silent], session=db.session(), now=NOW)
    assert len([each for each in sent if "alerts" in each]) == 1
    # An alert each ten seconds, from 5.5 to 2.5 hours ago.
    assert found[busy] == (*(18 * [0]), *(4 * [MAX_HOUR_COUNT]), 0, 0)
    assert found[rare] == (*(23 * [0]), 1)
    assert found[silent] == tuple(24 * [0])


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_the_hours_of_projects_are_counted_in_an_index(app: Flask) -> None:
    ids = fill(app, 24 * 360)
    with collect_postgres_statements() as sent, app.app_context():
        count_alerts_by_hour(ids, session=db.session(), now=NOW)
    plan = plan_of(app, next(each for each in sent if "starts" in each[0]))
    assert "ix_alerts_project_id_started_at_id" in plan, plan
    assert "Seq Scan on alerts" not in plan
