"""Tests that silences and flapping alerts are found by index, among many ended silences."""

from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select, text

from domain.alerts.formats.base import ParserSettings
from domain.alerts.matching.alert_labels import find_alert_labels
from domain.alerts.matching.matcher_parser import parse_matchers
from domain.core.database.pagination import KeysetRange
from domain.paging.silences.actions import (
    MAX_PREVIEW_ALERTS,
    count_silences_by_state,
    fetch_silence_page,
    list_silences,
    preview_silence,
)
from domain.paging.silences.active_mutes import find_mutes
from domain.paging.silences.types import PreviewQuery, SilenceQuery, SilenceState
from models import Alert
from tests.support.accounts.people import now
from tests.support.database.sql_statements import collect_postgres_statements
from tests.support.database.work import project_in
from tests.support.service.commands import operate
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
_FEW = 250
#: One fingerprint has many alerts, of which the newest are open.
_ALERTS = """
INSERT INTO alerts (project_id, iid, item_index, fingerprint, status, severity, title, hosts,
  events, started_at, last_event_at, created_at, ended_at)
SELECT :project_id, n, 0, decode(lpad(to_hex(CASE WHEN n <= 20000 THEN 0 ELSE n END), 64, '0'),
  'hex'), CASE WHEN n <= 30000 THEN 'resolved' ELSE 'triggered' END, n % 6, 'Disk full', '', 1,
  moment, moment, moment, CASE WHEN n <= 30000 THEN moment END
FROM (SELECT n, now() - (30200 - n) * interval '1 minute' AS moment
  FROM generate_series(1, 30200) AS n) AS given
"""
_SILENCES = """
INSERT INTO silences (project_id, matchers, comment, starts_at, ends_at, created_at)
SELECT :project_id, 'a="' || n || '"', '', begin, begin + interval '1 day', begin
FROM (SELECT n, now() - interval '2 days' AS begin FROM generate_series(1, 20000) AS n) AS given
"""


@pytest.mark.long
def test_silences_are_found_without_table_scans(app: Flask) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    operate(
        *(app, "silences", "create", "acme/shop", "--for", "2h"),
        *("--matcher", 'alertname="Disk full", severity=~"high|low"'),
    )
    with app.app_context():
        session = db.session()
        # Search words and daily counts do not matter here, and their triggers take long.
        session.execute(text("ALTER TABLE alerts DISABLE TRIGGER USER"))
        for statement in (_ALERTS, _SILENCES):
            session.execute(text(statement), {"project_id": project_id})
        matchers = parse_matchers('severity="high"')
        is_open = select(Alert.id).where(Alert.project_id == project_id, Alert.iid > 30_000)
        for is_analyzed in (False, True):
            if is_analyzed:
                session.execute(text("ANALYZE alerts, silences"))
            with collect_postgres_statements() as asked:
                labels = find_alert_labels(
                    session.scalars(is_open), session=session, reading=READING
                )
                held = find_mutes(tuple(labels.values()), moment=now(), session=session)
                project = project_in(session, project_id)
                seen = preview_silence(get_unit_of_work(), project, PreviewQuery(matchers=matchers))
                fetch_silence_page(
                    get_unit_of_work(), project, SilenceState.EXPIRED, KeysetRange(size=20)
                )
                list_silences(get_unit_of_work(), project, SilenceQuery(pagination="keyset"))
                counts = count_silences_by_state(get_unit_of_work(), project)
            assert len(labels) == 200
            assert len(held) == sum(each.severity in {"high", "low"} for each in labels.values())
            assert seen.looked_at == MAX_PREVIEW_ALERTS
            assert counts[SilenceState.ACTIVE] == 1
            connection: Any = session.connection().connection.driver_connection
            # For hundreds of ids, the planner may scan the whole table.
            for query, values in (each for each in asked if len(each[1]) < _FEW):
                plan = str(connection.execute(f"EXPLAIN {query}", values).fetchall())
                for table in ("alerts", "silences"):
                    assert f"Seq Scan on {table} " not in plan, (is_analyzed, query, plan)
        session.rollback()


def test_a_flapping_alert_reads_no_more_rows_than_its_limit(app: Flask) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        session = db.session()
        session.execute(text("ALTER TABLE alerts DISABLE TRIGGER USER"))
        session.execute(text(_ALERTS), {"project_id": project_id})
        newest = select(Alert.id).where(Alert.project_id == project_id, Alert.iid == 20_000)
        session.execute(text("UPDATE alerts SET status = 'triggered' WHERE iid = 20000"))
        alert_id = session.scalars(newest).one()
        labels = find_alert_labels([alert_id], session=session, reading=READING)
        opened = session.scalars(select(Alert.created_at).where(Alert.id == alert_id)).one()
        with collect_postgres_statements() as asked:
            found = find_mutes(
                tuple(labels.values()), moment=opened + timedelta(minutes=1), session=session
            )
        assert found[alert_id].kind == "flapping"
        connection: Any = session.connection().connection.driver_connection
        (query, values) = next(each for each in asked if "OFFSET" in each[0])
        explained = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS OFF) {query}", values)
        plan = "\n".join(row[0] for row in explained.fetchall())
        session.rollback()
    scans = [line for line in plan.splitlines() if "Index" in line and "ix_alerts" in line]
    assert scans, plan
    assert all("rows=7" in line or "rows=6" in line for line in scans), plan
