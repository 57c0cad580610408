"""INSERT … ON CONFLICT, which both databases have under the same words."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session


def insert_into(table: type[Any], *, session: Session) -> postgresql.Insert | sqlite.Insert:
    """Return an insert statement of the session's database that knows ON CONFLICT."""
    if session.get_bind().dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
