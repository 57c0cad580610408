"""UPDATE and DELETE that leave alone what the session has loaded.

SQLAlchemy would look for the changed rows among the session's objects, or read them back for it
(`synchronize_session`). These statements are of rows that the session does not use again.
"""

from typing import Any

from sqlalchemy import Delete, Update, delete, update


def update_rows(table: Any) -> Update:
    """Return an UPDATE of a table, to which conditions and values are added."""
    return update(table).execution_options(synchronize_session=False)


def delete_rows(table: Any) -> Delete:
    """Return a DELETE of a table, to which conditions are added."""
    return delete(table).execution_options(synchronize_session=False)
