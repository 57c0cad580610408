"""Tests that long incident lists use indexes on tables without statistics."""

from typing import Any

from flask import Flask
from sqlalchemy import text

from domain.alerts.parsing.incoming_alert import Severity
from domain.incidents.listing import (
    NO_ASSIGNEE,
    SORT_ORDERS,
    TABS,
    IncidentFilter,
    IncidentSlice,
    count_incidents_by_status,
    list_incidents,
)
from tests.support.database.sql_statements import (
    assert_nothing_is_read_whole,
    build_number_source,
    collect_plans,
)
from tests.support.service.commands import operate
from web.extensions import db

#: `{numbers}` is a source of the numbers n.
_FILL = """
INSERT INTO incidents (project_id, iid, title, description, urgency, status, closes_when_resolved,
  author_name, alerts, created_at, updated_at)
SELECT :project_id, n, 'Disk full ' || n, '', n % 6,
  CASE WHEN n % 100 = 0 THEN 'triggered' ELSE 'resolved' END, false, '', 0,
  '2026-11-22 01:02:03.000000', '2026-11-22 01:02:03.000000'
FROM {numbers}
"""
#: Filters with the number of incidents on the first page.
FILTERS: dict[str, tuple[dict[str, Any], int]] = {
    "all": ({}, 20),
    "open": ({"statuses": TABS["open"]}, 20),
    "severe": ({"severity": Severity.HIGH}, 20),
    "open and severe": ({"statuses": TABS["open"], "severity": Severity.HIGH}, 20),
    "of somebody": ({"assignee": "alice", "statuses": TABS["open"]}, 4),
    "of nobody": ({"assignee": NO_ASSIGNEE, "statuses": TABS["open"]}, 20),
    "of an alert": ({"alert": 3}, 0),
    "with a rare word": ({"search": "7777"}, 1),
    "with a common word": ({"search": "disk"}, 20),
}


def test_lists_and_counts_do_not_read_all_incidents(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme")
    project_id = operate(app, "projects", "create", "acme/shop")["id"]
    with app.app_context():
        fill = text(_FILL.format(numbers=build_number_source(20_000)))
        db.session.execute(fill, {"project_id": project_id})
        assigned = "SELECT id, 1 FROM incidents WHERE id % 5000 = 0"
        db.session.execute(text(f"INSERT INTO incident_assignees {assigned}"))
        db.session.commit()
        for name, (given, count) in FILTERS.items():
            wanted = IncidentFilter(project_id=project_id, **given)
            for order in SORT_ORDERS.values():
                with collect_plans("FROM incidents", "JOIN incidents") as found:
                    part = IncidentSlice(size=20, order=order)
                    page = list_incidents(wanted, part, session=db.session())
                    count_incidents_by_status(wanted, session=db.session())
                assert len(page.items) == count, (name, order.name)
                assert_nothing_is_read_whole(found, "incidents", name, order.name)
