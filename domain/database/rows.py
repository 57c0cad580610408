"""INSERT … ON CONFLICT for both databases, and changes of many rows.

Of a changed row, SQLAlchemy would look for an object of the session, or read it back for it
(`synchronize_session`). The statements here are of rows that the session does not use again.
"""

from typing import Any

from sqlalchemy import Delete, Update, delete, update
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


def update_rows(table: Any) -> Update:
    """Return an UPDATE of a table, to which conditions and values are added."""
    return update(table).execution_options(synchronize_session=False)


def delete_rows(table: Any) -> Delete:
    """Return a DELETE of a table, to which conditions are added."""
    return delete(table).execution_options(synchronize_session=False)
