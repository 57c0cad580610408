"""Runs frequent statements directly through the Postgres driver, without SQLAlchemy.

SQLAlchemy's overhead per execution is about as large as Flask's overhead for a whole request. See
ADR 27 and ADR 69.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from psycopg import Connection as DriverConnection
from psycopg import Error
from sqlalchemy import Connection, Engine, Executable, Insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from domain.core.database.statements import Row
from web.database.compiled_statements import CompiledStatement, Parameters, SqlalchemyExecutor
from web.database.engine import is_session_ending
from web.database.prepared_statements import PreparedStatementExecutor


class StatementCache:
    """A cache of statements that SQLAlchemy has compiled for psycopg."""

    def __init__(self, engine: Engine) -> None:
        """Create an empty cache for the dialect of an engine."""
        # With native placeholders ($1), psycopg does not have to parse statements. psycopg does not
        # cache the parsed form of long statements.
        options: dict[str, Any] = {"paramstyle": "numeric_dollar"}
        self._dialect = type(engine.dialect)(**options)
        #: Compiled statements, or None for statements that only SQLAlchemy can run.
        self._known: dict[Executable, CompiledStatement | None] = {}

    def find_compiled_statement(self, statement: Executable) -> CompiledStatement | None:
        """Return the compiled statement for psycopg, or None if psycopg cannot run it."""
        try:
            return self._known[statement]
        except KeyError:
            return self._known.setdefault(statement, self._compile_statement(statement))

    def _compile_statement(self, statement: Executable) -> CompiledStatement | None:
        if isinstance(statement, Insert) and not _has_explicit_columns(statement):
            return None  # the columns depend on the values
        compiled = statement.compile(dialect=self._dialect)  # type: ignore[attr-defined]
        return (
            CompiledStatement(compiled, statement) if _is_independent_of_values(compiled) else None
        )


class PsycopgExecutor(SqlalchemyExecutor):
    """A connection that runs compiled statements through psycopg."""

    def __init__(self, connection: Connection, compiled: StatementCache) -> None:
        """Store a connection and the cache of its engine."""
        super().__init__(connection)
        self._compiled = compiled
        driver = cast("DriverConnection[Any]", connection.connection.driver_connection)
        self._prepared = PreparedStatementExecutor(driver)

    def run_statement(self, statement: Executable, parameters: Parameters) -> Sequence[Row]:
        """Run a statement and return its rows, if any.

        Raise DBAPIError as SQLAlchemy does.
        """
        # Statements with parameters are constants of their modules, so they can be cached.
        direct = (
            self._compiled.find_compiled_statement(statement)
            if isinstance(parameters, Mapping)
            else None
        )
        if direct is None:
            return super().run_statement(statement, parameters)
        values = direct.order_values(cast("Mapping[str, Any]", parameters))
        try:
            return self._prepared.run_statement(direct.text, values, direct.make_row)
        except Error as error:
            raise self._translate_error(error, direct) from error

    def _translate_error(self, error: Error, direct: CompiledStatement) -> DBAPIError | Exception:
        connection = self.connection
        driver = connection.connection.driver_connection
        is_gone = is_session_ending(error) or connection.dialect.is_disconnect(
            error,  # type: ignore[arg-type]
            driver,
            None,
        )
        translated = DBAPIError.instance(
            direct.sql,
            None,
            error,
            Error,
            hide_parameters=True,
            connection_invalidated=is_gone,
            dialect=connection.dialect,
        )
        if is_gone:
            connection.invalidate(error)
        return cast("DBAPIError", translated)


def _is_independent_of_values(compiled: SQLCompiler) -> bool:
    """Return whether the SQL is independent of the values, unlike `IN` with a list."""
    return not (compiled.literal_execute_params or compiled.post_compile_params)


def _has_explicit_columns(statement: Insert) -> bool:
    return statement.select is not None or bool(statement._values)  # noqa: SLF001 - there is no public attribute
