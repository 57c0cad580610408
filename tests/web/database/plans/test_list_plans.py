"""Tests that counts on the tabs of a list use an index, even if a scan looks cheaper."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import count_alerts_by_status
from domain.alerts.parsing.incoming_alert import Severity
from domain.projects.access import COUNT_LIMIT
from tests.support.database.sql_statements import collect_postgres_statements
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

#: Nearly all alerts are resolved, so the table's next rows seem as good as the index's.
_FILL = text(
    """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events,
  started_at, last_event_at, created_at)
SELECT projects.id, n, 0, 'resolved', n % 2, 'Disk full', '', 1, now(), now(), now()
FROM projects, generate_series(1, 30000) AS n
"""
)


@pytest.mark.parametrize("severity", [None, Severity.HIGH])
def test_alerts_are_counted_in_an_index(app: Flask, severity: Severity | None) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        # Search words and daily counts do not matter here, and their triggers take long.
        db.session.execute(text("ALTER TABLE alerts DISABLE TRIGGER USER"))
        db.session.execute(_FILL)
        db.session.execute(text("ANALYZE alerts"))
        with collect_postgres_statements() as asked:
            wanted = AlertFilter(project_id=project_id, severity=severity)
            counts = count_alerts_by_status(wanted, session=db.session())
        ((query, values),) = asked
        connection: Any = db.session.connection().connection.driver_connection
        plan = connection.execute(f"EXPLAIN {query}", values).fetchall()
        db.session.rollback()
    assert counts["resolved"] == COUNT_LIMIT + 1
    assert "Seq Scan on alerts" not in str(plan)
