"""Tests that a page of users is read from an index on a table without statistics."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from domain.accounts.account_lists import list_accounts, list_public_users
from domain.accounts.types import UserQuery
from domain.core.database.pagination import PageRequest
from tests.support.database.sql_statements import collect_postgres_statements
from web.extensions import db

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

_FILL = text(
    """
INSERT INTO users (username, email, name, password_hash, is_admin, state, kind,
  must_change_password, created_at)
SELECT 'user' || n, n || '@people.example', 'User', '', false, 'active', 'human', false, now()
FROM generate_series(1, 20000) AS n
"""
)
_PART = PageRequest(size=20, is_by_key=True, is_descending=True, last_id=10_000)


@pytest.mark.parametrize("listed", [list_accounts, list_public_users])
def test_a_page_of_users_is_read_from_an_index(app: Flask, listed: Any) -> None:
    with app.app_context():
        db.session.execute(_FILL)
        with collect_postgres_statements() as asked:
            found = listed(UserQuery(), _PART, session=db.session(), base_url="https://g.example")
        query, values = asked[0]
        connection: Any = db.session.connection().connection.driver_connection
        plan = connection.execute(f"EXPLAIN {query}", values).fetchall()
        db.session.rollback()
    assert len(found.items) == 20
    assert "Seq Scan on users" not in str(plan)
