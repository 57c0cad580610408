"""What migrations do to large tables while requests use them.

Each function commits what the migration did before. So a migration that calls one does nothing
else, and can be run again if it was interrupted.
"""

from time import sleep
from typing import Any

import sqlalchemy as sa
from alembic import op

_ROWS_AT_ONCE = 1_000
#: Others get a turn between two steps.
_PAUSE_SECONDS = 0.02


def create_index(name: str, table: str, columns: list[Any], **options: Any) -> None:
    """Create an index, on Postgres without keeping anybody from writing."""
    if op.get_bind().dialect.name != "postgresql":
        op.create_index(name, table, columns, **options)
        return
    with op.get_context().autocommit_block():
        # An attempt that was interrupted leaves one that is not valid.
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(name, table, columns, postgresql_concurrently=True, **options)


def drop_index(name: str, table: str) -> None:
    """Drop an index, on Postgres without keeping anybody from reading or writing."""
    if op.get_bind().dialect.name != "postgresql":
        op.drop_index(name, table)
        return
    with op.get_context().autocommit_block():
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)


def fill(table: str, values: str, *, where: str) -> None:
    """Set values of the rows that lack them, a thousand in a transaction: both in SQL's words."""
    last = sa.text(
        f"SELECT max(id) FROM (SELECT id FROM {table} WHERE id > :after AND ({where})"  # noqa: S608
        " ORDER BY id LIMIT :count) AS rows_at_once"
    )
    update = sa.text(
        f"UPDATE {table} SET {values} WHERE id > :after AND id <= :last AND ({where})"  # noqa: S608
    )
    with op.get_context().autocommit_block():
        connection, after = op.get_bind(), 0
        while found := connection.scalar(last, {"after": after, "count": _ROWS_AT_ONCE}):
            connection.execute(update, {"after": after, "last": found})
            after = found
            sleep(_PAUSE_SECONDS)
