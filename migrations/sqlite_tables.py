"""Rebuilds SQLite tables for changes that ALTER TABLE does not support.

A new table is created, and the rows are copied. See
https://www.sqlite.org/lang_altertable.html#otheralter.
"""

from collections.abc import Callable, Mapping

from alembic import op
from sqlalchemy import Connection


def rebuild_tables(definitions: Mapping[str, Callable[[str], str]]) -> None:
    """Change the definitions of tables; rows, indexes, triggers and the last id are kept.

    Each function gets the definition of its table. It returns the new definition, or the same one
    if there is nothing to do. The previous changes of the migration are committed first. The tables
    are then changed in one transaction, so the migration can be run again after an interruption.
    """
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        # Otherwise, dropping the old table would delete the rows that refer to it.
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            for table, definition in definitions.items():
                _rebuild_table(table, definition, connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        finally:
            connection.exec_driver_sql("PRAGMA foreign_keys=ON")


def _rebuild_table(table: str, definition: Callable[[str], str], connection: Connection) -> None:
    run = connection.exec_driver_sql
    present = run("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    before: str = present.scalar_one()
    wanted = definition(before)
    if wanted == before:
        return
    beside = run(
        "SELECT sql FROM sqlite_master"
        " WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
        (table,),
    ).all()
    new = f"{table}_new"
    run(wanted.replace(f"TABLE {table} ", f"TABLE {new} ", 1).replace(f'"{table}"', new, 1))
    kept = ", ".join(sorted(_list_columns(table, connection) & _list_columns(new, connection)))
    run(f"INSERT INTO {new} ({kept}) SELECT {kept} FROM {table}")  # noqa: S608 - names of our own
    if "AUTOINCREMENT" in wanted:
        run("DELETE FROM sqlite_sequence WHERE name = ?", (new,))
        last = "SELECT ?, seq FROM sqlite_sequence WHERE name = ?"
        run(f"INSERT INTO sqlite_sequence (name, seq) {last}", (new, table))
    run(f"DROP TABLE {table}")
    run(f"ALTER TABLE {new} RENAME TO {table}")
    for (statement,) in beside:
        run(statement)


def _list_columns(table: str, connection: Connection) -> set[str]:
    return {row.name for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")}
