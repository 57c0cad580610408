"""Tests that lists read few more rows than they show, with and without statistics.

Without statistics, PostgreSQL assumes that a condition matches half a percent of a table. It then
collects and sorts rows that it could read in the order of an index.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select, text

from domain.accounts.account_lists import count_accounts
from domain.alerts.deliveries import DeliveryFilter, DeliverySelection, list_deliveries
from domain.alerts.handling.occurrences import find_single_affected_alerts
from domain.alerts.listing.exports import export_alerts_as_json
from domain.alerts.listing.filters import NO_ASSIGNEE, AlertFilter
from domain.alerts.listing.queries import list_alerts
from domain.alerts.listing.sort_orders import NEWEST_FIRST, AlertSlice
from domain.core.clock import read_system_clock
from domain.core.database.pagination import KeysetRange
from domain.oauth.applications.application_users import fetch_application_user_page
from domain.oauth.applications.rejected_requests import ApplicationViewer
from models import Application, Integration, Project
from tests.support.database.sql_statements import SentStatement, collect_postgres_statements
from tests.support.service.commands import operate
from tests.web.database.plans.test_hot_plans import made
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

_MANY = 20_000
_FEW = 2_000
_SHOWN = 20
#: The test creates the user, the application, the integration and the project.
_FILLED = (
    """
INSERT INTO users (username, email, name, password_hash, is_admin, state, kind,
  must_change_password, created_at, email_confirmed_at)
SELECT 'user' || n, n || '@people.example', 'User', '', false, 'active', 'human', false, now(),
  now() FROM generate_series(1, :count) AS n""",
    """
INSERT INTO deliveries (project_id, integration_id, format, is_test, received_at, status_code,
  sender, size, opened, joined, resolved, remarks, truncated_alerts, skipped)
SELECT project_id, id, 'http', false, now(), 200, '', 0, 0, 0, 0,
  CASE WHEN n = 7 THEN '["No time."]'::json ELSE '[]'::json END, 0, 0
FROM integrations, generate_series(1, :count) AS n""",
    """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events,
  started_at, last_event_at, created_at)
SELECT projects.id, n, 0, 'resolved', n % 6, 'Disk full', '', 1, moment, moment, moment
FROM projects, generate_series(1, :count) AS n,
  LATERAL (SELECT now() - n * interval '1 s' AS moment) AS clock""",
    """
INSERT INTO alert_search (alert_id, document)
SELECT id, to_tsvector('simple', title) FROM alerts WHERE :count > 0""",
    """
INSERT INTO assignments (alert_id, user_id)
SELECT alerts.id, users.id FROM alerts, users
WHERE username = 'alice' AND iid <= :count AND iid % 500 = 1""",
    """
INSERT INTO authorizations (application_id, user_id, scopes, auth_time, created_at)
SELECT applications.id, users.id, '', now(), now() FROM applications, users
WHERE users.id <= :count""",
)
#: One item of each delivery opened an alert, and the others changed nothing.
_OCCURRENCES = """
INSERT INTO occurrences (alert_id, delivery_id, item_index, action, is_late)
SELECT (SELECT max(id) FROM alerts), deliveries.id, n, CASE WHEN n = 0 THEN 0 ELSE 3 END, false
FROM deliveries, generate_series(0, 19) AS n"""
_NOTES_AND_PAGES = (
    """
INSERT INTO alert_notes (alert_id, user_name, kind, text, created_at)
SELECT id, 'bob', 'status', 'acknowledged', started_at FROM alerts""",
    """
INSERT INTO escalation_pages (alert_id, project_id, round, step, paged_at, page_key)
SELECT id, project_id, 1, 1, started_at, 'page ' || id FROM alerts""",
)
_TABLES = ("users", "deliveries", "alerts", "alert_search", "assignments", "authorizations")


def _alerts(**wanted: Any) -> Callable[[], int]:
    def listed() -> int:
        project_id = db.session.scalars(select(Project.id)).one()
        found = list_alerts(
            AlertFilter(project_id=project_id, **wanted),
            AlertSlice(size=_SHOWN),
            session=db.session(),
        )
        return len(found.items)

    return listed


def _with_warnings() -> int:
    integration_id = db.session.scalars(select(Integration.id)).one()
    wanted = DeliveryFilter(integration_id=integration_id, show=DeliverySelection.WARNINGS)
    return len(list_deliveries(wanted, KeysetRange(size=_SHOWN), session=db.session()).items)


def _people() -> int:
    application_id = db.session.scalars(select(Application.id)).one()
    found = fetch_application_user_page(
        application_id,
        KeysetRange(size=_SHOWN),
        viewer=ApplicationViewer(user_id=0, sees_everybody=True),
        session=db.session(),
        now=read_system_clock(),
    )
    return len(found.items)


#: Queries with the number of rows that they show.
_LISTS: Mapping[str, tuple[Callable[[], int], int]] = {
    "deliveries with warnings": (_with_warnings, 1),
    "alerts of nobody": (_alerts(assignee=NO_ASSIGNEE, statuses=("resolved",)), _SHOWN),
    "alerts of somebody": (_alerts(assignee="alice"), _SHOWN),
    "alerts with a common word": (_alerts(search="disk", statuses=("resolved",)), _SHOWN),
    "people of an application": (_people, _SHOWN),
}
#: Without statistics, all users of an application are sorted, but no other users.
_SORTED = {"people of an application"}


@pytest.fixture
def filled(app: Flask) -> Flask:
    made(app, "http")
    operate(
        app,
        *("applications", "create", "Server", "--owner", "alice", "--scopes", "read_user"),
        *("--redirect-uri", "https://client.example/callback"),
    )
    with app.app_context():
        # Triggers for search words and daily counts take long, so statements add the rows instead.
        db.session.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in _FILLED:
            db.session.execute(text(statement), {"count": _MANY})
        db.session.commit()
    return app


@pytest.mark.parametrize("state", ["never analyzed", "analyzed"])
def test_lists_read_about_as_many_rows_as_they_return(filled: Flask, state: str) -> None:
    with filled.app_context():
        if state == "analyzed":
            db.session.execute(text(f"ANALYZE {', '.join(_TABLES)}"))
            db.session.commit()
        for name, (ask, count) in _LISTS.items():
            with collect_postgres_statements() as asked:
                assert ask() == count, name
            for statement in asked:
                if state == "analyzed" or name not in _SORTED:
                    read = _most_read(statement)
                    assert read < _FEW, (name, read, statement[0])
        with collect_postgres_statements() as asked:
            counts = count_accounts(session=db.session())
        plan = str(_plan(asked[0]))
    assert counts.people == _MANY + 1
    assert (counts.administrators, counts.unconfirmed, counts.pending) == (0, 1, 0)
    for name in ("administrators", "unconfirmed", "not_active"):
        assert f"ix_users_{name}" in plan, name


@pytest.mark.long
def test_alerts_of_deliveries_are_found_by_their_deliveries(filled: Flask) -> None:
    with filled.app_context():
        db.session.execute(text("SET LOCAL session_replication_role = replica"))
        db.session.execute(text(_OCCURRENCES))
        newest = range(_MANY - _SHOWN + 1, _MANY + 1)
        with collect_postgres_statements() as asked:
            assert len(find_single_affected_alerts(newest, session=db.session())) == _SHOWN
        for statement in asked:
            assert _most_read(statement) < _FEW, statement[0]


@pytest.mark.long
def test_alert_exports_find_notes_and_pages_by_alert(filled: Flask) -> None:
    with filled.app_context():
        db.session.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in _NOTES_AND_PAGES:
            db.session.execute(text(statement))
        db.session.commit()
        project_id = db.session.scalars(select(Project.id)).one()
        with collect_postgres_statements() as asked:
            rows = export_alerts_as_json(
                AlertFilter(project_id=project_id), NEWEST_FIRST, session=db.session()
            )
            first = json.loads(f"{next(rows)}]")
        read = {
            table: _most_read(sent)
            for table in ("alert_notes", "escalation_pages")
            for sent in asked
            if f"FROM {table}" in sent[0]
        }
    assert len(read) == 2
    assert max(read.values()) < _FEW, read
    assert [(row["acknowledged_by"], row["pages"]) for row in first] == [("bob", 1)]


def _plan(statement: SentStatement) -> Any:
    query, values = statement
    connection: Any = db.session.connection().connection.driver_connection
    explained = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}"
    ((found,),) = connection.execute(explained, values).fetchall()
    return found[0]["Plan"]


def _most_read(statement: SentStatement) -> float:
    """Return the number of rows that the largest scan of a plan reads."""
    return max(_scanned(_plan(statement)), default=0)


def _scanned(plan: Any) -> Iterator[float]:
    if "Scan" in plan["Node Type"]:
        passed = plan.get("Rows Removed by Filter", 0)
        yield (plan["Actual Rows"] + passed) * plan["Actual Loops"]
    for each in plan.get("Plans", ()):
        yield from _scanned(each)


def test_postgres_estimates_few_rows_for_the_newest_alerts_of_a_search(filled: Flask) -> None:
    # Otherwise PostgreSQL reads all alerts once there are millions of them.
    ask, _count = _LISTS["alerts with a common word"]
    with filled.app_context():
        db.session.execute(text("ANALYZE alerts"))
        db.session.commit()
        with collect_postgres_statements() as asked:
            ask()
        (newest,) = (each for each in asked if "FILTER" in each[0])
        plan = _plan(newest)
    scans = [each for each in _nodes(plan) if each.get("Relation Name") == "alerts"]
    assert max(each["Plan Rows"] for each in scans) < _FEW


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)
