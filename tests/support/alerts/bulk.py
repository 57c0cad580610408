"""Fills projects with many alerts by a few statements, and counts the rows of a project."""

from datetime import datetime
from typing import Any

from sqlalchemy import Table, func, select, text
from sqlalchemy.orm import Session

from models import AuditEvent
from models.base import Base
from tests.support.accounts.namespaces import get_namespace

_AT_ONCE = 20_000
#: Common table expression with the numbers from `:first`.
NUMBERS = """
WITH RECURSIVE numbers (n) AS (
  SELECT CAST(:first AS INTEGER) UNION ALL SELECT n + 1 FROM numbers
    WHERE n + 1 < CAST(:first AS INTEGER) + CAST(:count AS INTEGER)
)
"""
_FILL = (
    """
INSERT INTO deliveries (project_id, format, is_test, received_at, status_code, sender, size,
  opened, joined, resolved, remarks, truncated_alerts, skipped)
{numbers} SELECT :project_id, 'http', {no}, {moment}, 200, '127.0.0.1', 2, 1, 0, 0, '[]', 0, 0
FROM numbers
""",
    """
INSERT INTO alerts (project_id, iid, item_index, status, severity, title, description,
  hosts, environment, events, started_at, last_event_at, created_at)
{numbers} SELECT :project_id, n, 0, 'resolved', n % 6, 'Disk full on web-' || (n % 5000),
  'Free space is low', 'web-' || (n % 5000), 'production', 1, {moment}, {moment}, {moment}
FROM numbers
""",
)
_TIE = """
INSERT INTO occurrences (alert_id, delivery_id, item_index, action, is_late)
SELECT alerts.id, numbered.id, 0, 0, {no} FROM alerts JOIN (
  SELECT id, row_number() OVER (ORDER BY id) AS n FROM deliveries WHERE project_id = :project_id
) AS numbered ON numbered.n = alerts.iid WHERE alerts.project_id = :project_id
"""


def fill_project(path: str, count: int, *, session: Session, now: datetime) -> int:
    """Store alerts with one delivery each in an empty project, and return the project's id."""
    project_id = get_namespace(path, session=session).project_id
    assert project_id is not None
    is_postgres = session.get_bind().dialect.name == "postgresql"
    words = {
        "numbers": NUMBERS,
        "no": "false" if is_postgres else "0",
        "moment": "CAST(:moment AS TIMESTAMPTZ)" if is_postgres else ":moment",
    }
    given = {"project_id": project_id, "moment": now.strftime("%Y-%m-%d %H:%M:%S.%f")}
    for first in range(1, count + 1, _AT_ONCE):
        some = {**given, "first": first, "count": min(_AT_ONCE, count + 1 - first)}
        for statement in _FILL:
            session.execute(text(statement.format(**words)), some)
    session.execute(text(_TIE.format(**words)), {"project_id": project_id})
    return project_id


def rows_of(project_id: int, *, session: Session) -> dict[str, int]:
    """Count the rows of a project in each table that has any.

    Audit events are not counted. They only name the project, and are not deleted with the project,
    so that the record of its deletion remains.
    """
    tables: list[Table] = [
        table
        for table in Base.metadata.sorted_tables
        if "project_id" in table.columns and table is not AuditEvent.__table__
    ]
    counts: dict[str, Any] = {
        table.name: session.scalar(
            select(func.count()).select_from(table).where(table.c.project_id == project_id)
        )
        for table in tables
    }
    return {name: count for name, count in counts.items() if count}
