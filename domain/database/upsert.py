"""INSERT … ON CONFLICT for both databases."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session


def insert_into(table: type[Any], *, session: Session) -> postgresql.Insert | sqlite.Insert:
    """Return an insert statement of the session's database that knows ON CONFLICT."""
    return insert_for(session.get_bind().dialect.name, table)


def insert_for(dialect_name: str, table: type[Any]) -> postgresql.Insert | sqlite.Insert:
    """Return the same statement for a dialect name."""
    if dialect_name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
