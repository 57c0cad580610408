"""Tests that reports read only rows of their project and period."""

from datetime import timedelta

import pytest
from flask import Flask
from sqlalchemy import text

from domain.reports.actions import compare_report, show_report
from domain.reports.types import ReportQuery
from tests.support.database.sql_statements import collect_postgres_statements
from tests.support.database.work import project_in
from tests.support.service.commands import operate
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

NIGHT = timedelta(hours=15)
#: Alerts of two projects over four months. The planner may scan a small table if a report covers a
#: larger part of it.
_ALERTS = """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events,
  started_at, last_event_at, created_at, ended_at)
SELECT :project_id, n, 0, 'resolved', n % 6, 'Disk full', '', 1, moment, moment, moment, moment
FROM (SELECT n, now() - (20000 - n) * interval '10 minutes' AS moment
  FROM generate_series(1, 20000) AS n) AS given
"""
_NOTES = """
INSERT INTO alert_notes (alert_id, user_name, kind, text, created_at)
SELECT id, '', 'status', 'acknowledged', started_at FROM alerts
"""
_PAGES = """
INSERT INTO escalation_pages (alert_id, project_id, round, step, paged_at, page_key)
SELECT id, project_id, 1, 1, started_at, 'page ' || id FROM alerts WHERE iid % 4 = 0
"""
_LARGE = ("alerts", "alert_notes", "escalation_pages")


@pytest.mark.parametrize("is_analyzed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_report_scans_no_table(app: Flask, *, is_analyzed: bool) -> None:
    operate(app, "groups", "create", "acme")
    ids = [operate(app, "projects", "create", f"acme/{name}")["id"] for name in ("shop", "other")]
    with app.app_context():
        session = db.session()
        for project_id in ids:
            session.execute(text(_ALERTS), {"project_id": project_id})
        for statement in (_NOTES, _PAGES):
            session.execute(text(statement))
        session.commit()
        for table in (*_LARGE, "pages", "page_messages") if is_analyzed else ():
            session.execute(text(f"ANALYZE {table}"))
        session.commit()
        unit = get_unit_of_work()
        query = ReportQuery.model_validate({"from": unit.now - NIGHT})
        with collect_postgres_statements() as asked:
            report = show_report(unit, project_in(session, ids[0]), query)
            compared = compare_report(unit, project_in(session, ids[0]), query, report)
        previous = compared.previous
        assert previous is not None
        assert (previous.alerts in {90, 91}, previous.pages in {22, 23}) == (True, True)
        assert report.totals.alerts in {90, 91}
        assert report.totals.pages in {22, 23}
        plans = []
        for statement, values in asked:
            if statement.startswith("SELECT"):
                cursor = session.connection().connection.cursor()
                cursor.execute(f"EXPLAIN (ANALYZE, FORMAT TEXT) {statement}", values)
                plans.append("\n".join(line for (line,) in cursor.fetchall()))
    scans = [f"Seq Scan on {table}" for table in _LARGE]
    assert not [plan for plan in plans if any(scan in plan for scan in scans)], "\n\n".join(plans)
