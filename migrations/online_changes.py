"""Changes to large tables that do not block concurrent requests.

Each function commits the previous changes of the migration. A migration that calls such a function
therefore does nothing else, and can be run again after an interruption.
"""

from time import sleep
from typing import Any

import sqlalchemy as sa
from alembic import op

_ROWS_PER_TRANSACTION = 1_000
#: Pause between two steps, in which other transactions can run.
_PAUSE_SECONDS = 0.02


def create_index(name: str, table: str, columns: list[Any], **options: Any) -> None:
    """Create an index. On Postgres, the table stays writable."""
    if op.get_bind().dialect.name != "postgresql":
        op.create_index(name, table, columns, **options)
        return
    with op.get_context().autocommit_block():
        # An interrupted attempt leaves an invalid index.
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)
        op.create_index(name, table, columns, postgresql_concurrently=True, **options)


def drop_index(name: str, table: str) -> None:
    """Drop an index. On Postgres, the table stays readable and writable."""
    if op.get_bind().dialect.name != "postgresql":
        op.drop_index(name, table)
        return
    with op.get_context().autocommit_block():
        op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)


def update_in_batches(table: str, values: str, *, where: str) -> None:
    """Set values of matching rows in transactions of a thousand rows; both arguments are SQL."""
    last = sa.text(
        f"SELECT max(id) FROM (SELECT id FROM {table} WHERE id > :after AND ({where})"  # noqa: S608
        " ORDER BY id LIMIT :count) AS rows_at_once"
    )
    update = sa.text(
        f"UPDATE {table} SET {values} WHERE id > :after AND id <= :last AND ({where})"  # noqa: S608
    )
    with op.get_context().autocommit_block():
        connection, after = op.get_bind(), 0
        while found := connection.scalar(last, {"after": after, "count": _ROWS_PER_TRANSACTION}):
            connection.execute(update, {"after": after, "last": found})
            after = found
            sleep(_PAUSE_SECONDS)
