"""Tests that long lists of groups and projects are fast on tables without statistics."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.core.database.pagination import PageRequest
from domain.projects.namespace_lists import GroupFilter, ProjectFilter, list_groups, list_projects
from domain.projects.views import Viewer
from tests.support.database.sql_statements import collect_postgres_statements
from tests.support.service.commands import operate
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

_FILL = (
    """
INSERT INTO groups (name, path, created_at, path_key, name_key)
SELECT 'G', 'g' || n, now(), 'g' || n, 'g' FROM generate_series(1, 4000) AS n
""",
    """
INSERT INTO groups (parent_id, name, path, created_at, path_key, name_key)
SELECT id, 'S', path || '/s', now(), path || '/s', 's' FROM groups
""",
    """
INSERT INTO projects (group_id, name, path, visibility, created_at, path_key, name_key)
SELECT id, 'P', path || '/p' || n, 'private', now(), path || '/p' || n, 'p'
FROM groups, generate_series(1, 2) AS n
""",
    """
INSERT INTO members (user_id, group_id, role, created_at)
SELECT users.id, groups.id, 30, now() FROM users, groups WHERE groups.id % 8 = 0
""",
)
_FIRST = PageRequest(size=20)
_MINE = ProjectFilter(least=None)
Ask = Callable[[Viewer, Session], Any]


def plans_of(app: Flask, ask: Ask) -> list[str]:
    """Return the plans of PostgreSQL for a list's first statement and for its count."""
    user_id = operate(app, "users", "create", "alice", "--email", "alice@example.org")["id"]
    with app.app_context():
        for statement in _FILL:
            db.session.execute(text(statement))
        with collect_postgres_statements() as asked:
            found = ask(Viewer(user_id=user_id), db.session())
        assert len(found.items) == 20
        connection: Any = db.session.connection().connection.driver_connection
        large = [each for each in asked if "recursive" in each[0].lower()]
        plans = [connection.execute(f"EXPLAIN {query}", values) for query, values in large]
        texts = ["\n".join(line for (line,) in plan.fetchall()) for plan in plans]
        db.session.rollback()
    assert texts
    return texts


@pytest.mark.parametrize(
    "ask",
    [
        lambda viewer, session: list_projects(ProjectFilter(), _FIRST, viewer, session=session),
        lambda viewer, session: list_groups(GroupFilter(), _FIRST, viewer, session=session),
    ],
)
def test_subgroups_of_a_member_s_groups_are_not_compared_one_by_one(app: Flask, ask: Ask) -> None:
    for plan in plans_of(app, ask):
        assert "Join Filter" not in plan, plan
