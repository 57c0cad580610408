"""The tables of the worker's queue on Postgres, in a separate schema.

`make migrate` creates them, so that the service's role needs no permission to; a worker without
them creates them if it may.
"""

import psycopg
from huey.contrib.sql_huey import SqlHuey
from peewee import PostgresqlDatabase
from psycopg import sql
from sqlalchemy.engine import make_url

from domain.database.advisory_locks import AdvisoryLock
from web.settings.reader import Settings

#: The queue's tables have general names and are not part of the migrations.
SCHEMA = "gatebell_queue"
_RIGHTS = """
SELECT current_user, current_database(),
  to_regnamespace(%(schema)s) IS NOT NULL,
  has_database_privilege(current_database(), 'CREATE'),
  CASE WHEN to_regnamespace(%(schema)s) IS NOT NULL
    THEN has_schema_privilege(%(schema)s, 'CREATE') ELSE false END
"""


class QueueRefusedError(Exception):
    """The role may not create or use the queue's tables; the text is one sentence."""


def queue_on_postgres(settings: Settings) -> SqlHuey:
    """Return the queue without creating its tables."""
    database = PostgresqlDatabase(
        psycopg_url(settings),
        prefer_psycopg3=True,
        connect_timeout=settings.database_connect_timeout_seconds,
        options=f"-c search_path={SCHEMA}",
    )
    return SqlHuey("gatebell", database=database, results=False, create_tables=False)


def psycopg_url(settings: Settings) -> str:
    """Return the database URL for psycopg."""
    url = make_url(settings.database_url).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def make_queue_tables(settings: Settings) -> None:
    """Create the missing schema and tables.

    Raises QueueRefusedError if they are missing and the role may not create them.
    """
    if settings.uses_sqlite:
        return
    timeout = settings.database_connect_timeout_seconds
    # Two processes that create the same table at once would fail, even with IF NOT EXISTS.
    with psycopg.connect(psycopg_url(settings), connect_timeout=timeout) as connection:
        _lock(connection)
        may_make_tables = _ensure_schema(connection)
        connection.commit()
        _lock(connection)
        _ensure_tables(settings, connection, may_make_tables=may_make_tables)


def _lock(connection: psycopg.Connection) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (AdvisoryLock.QUEUE_TABLES.value,))


def _ensure_schema(connection: psycopg.Connection) -> bool:
    """Create the schema if it is missing; return whether tables may be created in it."""
    found = connection.execute(_RIGHTS, {"schema": SCHEMA}).fetchone()
    assert found is not None  # noqa: S101 - a SELECT without FROM has a row
    role, database, is_there, may_make_schema, may_make_tables = found
    if is_there:
        return bool(may_make_tables)
    if not may_make_schema:
        raise QueueRefusedError(
            f"DATABASE_URL: the worker's queue needs the schema {SCHEMA}, and the role {role} may "
            f"not make it: run `make migrate` as a role that may, or GRANT CREATE ON DATABASE "
            f"{database} TO {role}."
        )
    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
    return True


def _ensure_tables(
    settings: Settings, connection: psycopg.Connection, *, may_make_tables: bool
) -> None:
    queue = queue_on_postgres(settings)
    try:
        if may_make_tables:
            queue.storage.initialize_schema()
        elif not _may_use_tables(connection):
            raise QueueRefusedError(
                f"DATABASE_URL: the worker's queue needs tables in the schema {SCHEMA} that its "
                "role may read and write; docs/operations.md has the grants."
            )
    finally:
        queue.storage.close()


def _may_use_tables(connection: psycopg.Connection) -> bool:
    asked = """
        SELECT count(*) > 0 AND bool_and(has_table_privilege(
          quote_ident(schemaname) || '.' || quote_ident(tablename), 'SELECT, INSERT'))
        FROM pg_tables WHERE schemaname = %s AND has_schema_privilege(schemaname, 'USAGE')
    """
    found = connection.execute(asked, (SCHEMA,)).fetchone()
    return bool(found and found[0])
