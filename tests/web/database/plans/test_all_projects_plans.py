"""Tests that alert lists of several projects use indexes on tables without statistics."""

from typing import Any

from flask import Flask
from sqlalchemy import select, text

from domain.access.roles import Ability
from domain.alerts.handling.batches import (
    BatchRequest,
    change_all_matching_alerts,
    process_next_batch_slice,
    start_undo,
)
from domain.alerts.listing.filters import NO_ASSIGNEE, OPEN_STATUSES, AlertFilter
from domain.alerts.listing.project_selection import build_member_projects_query
from domain.alerts.listing.queries import (
    count_alerts_by_status,
    count_open_alerts_by_severity,
    list_alerts,
)
from domain.alerts.listing.sort_orders import SORT_ORDERS, AlertSlice
from domain.alerts.parsing.incoming_alert import Severity
from domain.audit.events import EventActor
from domain.core.clock import read_system_clock
from domain.incidents.listing import list_open_incidents_for_user
from domain.projects.views import Viewer
from models import User
from tests.support.database.sql_statements import (
    assert_nothing_is_read_whole,
    build_number_source,
    collect_plans,
)
from tests.support.service.commands import operate
from web.extensions import db

#: `{numbers}` is a source of the numbers n. Most of the alerts are resolved.
_FILL = """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, hosts, events, service,
  environment, started_at, last_event_at, created_at)
SELECT :project_id, n, 0, CASE WHEN n % 20 = 0 THEN 'triggered' ELSE 'resolved' END, n % 6,
  'Disk full ' || n, '', 1, 'service-' || (n % 7), CASE WHEN n % 3 = 0 THEN 'production' END,
  '2026-11-22 01:02:03.000000', '2026-11-22 01:02:03.000000', '2026-11-22 01:02:03.000000'
FROM {numbers}
"""
#: Filters with the number of alerts on the first page.
FILTERS: dict[str, tuple[dict[str, Any], int]] = {
    "all": ({}, 20),
    "open": ({"statuses": OPEN_STATUSES}, 20),
    "severe": ({"severity": Severity.HIGH}, 20),
    "of a service": ({"service": "service-3", "statuses": OPEN_STATUSES}, 20),
    "of an environment": ({"environment": "production"}, 20),
    "of nobody": ({"assignee": NO_ASSIGNEE, "statuses": OPEN_STATUSES}, 20),
    "of somebody": ({"assignee": "alice", "statuses": OPEN_STATUSES}, 0),
    "with a rare word": ({"search": "7777"}, 2),
    "with a common word": ({"search": "disk"}, 20),
}


def test_lists_of_all_projects_do_not_read_all_alerts(app: Flask) -> None:
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    ids = [operate(app, "projects", "create", f"acme/{name}")["id"] for name in ("shop", "site")]
    with app.app_context():
        session = db.session()
        fill = text(_FILL.format(numbers=build_number_source(15_000)))
        for project_id in ids:
            session.execute(fill, {"project_id": project_id})
        session.commit()
        me = session.scalars(select(User.id).where(User.username == "alice")).one()
        viewer = Viewer(user_id=me, today=read_system_clock().date())
        projects = build_member_projects_query(
            viewer, session=session, ability=Ability.ADMIN_ALERTS
        )
        orders = [order for order in SORT_ORDERS.values() if not order.is_among_newest]
        for name, (given, count) in FILTERS.items():
            wanted = AlertFilter(project_id=0, projects=projects, **given)
            for order in orders:
                with collect_plans("alerts") as found:
                    page = list_alerts(wanted, AlertSlice(size=20, order=order), session=session)
                    count_alerts_by_status(wanted, session=session)
                assert len(page.items) == count, (name, order.name)
                assert_nothing_is_read_whole(found, "alerts", name, order.name)
        with collect_plans("alerts") as found:
            counts = count_open_alerts_by_severity(projects, session=session)
            list_open_incidents_for_user(me, projects, maximum=5, session=session)
        assert sum(counts.values()) == 1_500
        assert_nothing_is_read_whole(found, "alerts", "home")
        check_batch(EventActor(id=me, name="alice"))


def check_batch(by: EventActor) -> None:
    """Change the open alerts of all projects in slices, and undo the change."""
    session, now = db.session(), read_system_clock()
    order = BatchRequest(status="ignored", by=by, project_id=None, list_query="")
    wanted = AlertFilter(project_id=0, statuses=OPEN_STATUSES, service="service-3")
    with collect_plans("alerts") as found:
        batch = change_all_matching_alerts(order, wanted, path=None, session=session, now=now)
        while process_next_batch_slice(session=session, now=now):
            session.flush()
        start_undo(batch.id, by, session=session, now=now)
        while process_next_batch_slice(session=session, now=now):
            session.flush()
    assert_nothing_is_read_whole(found, "alerts", "batch")
