"""Tests that SQLite looks up search words first, without statistics about the alerts."""

import re

import pytest
from flask import Flask
from sqlalchemy import text

from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.queries import count_alerts_by_status, list_alerts
from domain.alerts.listing.search import MAX_MATCHES_LISTED_BY_ID
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice
from tests.support.database.sql_statements import collect_plans
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

_FILL = text(
    """
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events,
  started_at, last_event_at, created_at)
SELECT :project_id, n, 0, 'triggered', n % 2, 'Disk full' || iif(n = 7, ' again', ''), '', 1,
  '2026-11-22 01:02:03.000000', '2026-11-22 01:02:03.000000', '2026-11-22 01:02:03.000000'
FROM numbers
"""
)


@pytest.mark.parametrize("order", ["started", "severity", "events"])
def test_few_matching_alerts_are_found_by_word_and_then_by_id(app: Flask, order: str) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        db.session.execute(_FILL, {"project_id": project_id, "count": MAX_MATCHES_LISTED_BY_ID})
        wanted = AlertFilter(project_id=project_id, search="again")
        with collect_plans("MATCH", "alerts.id IN") as found:
            part = AlertSlice(size=20, order=SORT_ORDERS[order])
            page = list_alerts(wanted, part, session=db.session())
            counts = count_alerts_by_status(wanted, session=db.session())
    assert [alert.iid for alert in page.items] == [7]
    assert counts["triggered"] == 1
    by_words, listed, _by_words_again, counted = found
    first, second = by_words.splitlines()
    assert first.startswith("SCAN alert_search VIRTUAL TABLE")
    assert second == "SEARCH alerts USING INTEGER PRIMARY KEY (rowid=?)"
    assert "ix_alerts" not in listed + counted


@pytest.mark.long
@pytest.mark.parametrize("order", ["started", "severity"])
def test_many_matching_alerts_are_read_in_list_order(app: Flask, order: str) -> None:
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        db.session.execute(_FILL, {"project_id": project_id, "count": MAX_MATCHES_LISTED_BY_ID + 1})
        wanted = AlertFilter(project_id=project_id, search="disk", statuses=("triggered",))
        with collect_plans("MATCH", "alerts.id IN") as found:
            part = AlertSlice(size=20, order=SORT_ORDERS[order])
            page = list_alerts(wanted, part, session=db.session())
    assert len(page.items) == 20
    by_words, listed = found
    assert by_words.startswith("SCAN alert_search VIRTUAL TABLE")
    assert "LIST SUBQUERY" in listed
    assert re.search(r"SEARCH alerts USING (COVERING )?INDEX ix_alerts_", listed)
