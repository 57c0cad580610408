"""Compilation and execution of frequent statements.

SQLAlchemy compiles the statements, and also executes them on SQLite. `psycopg_statements.py` passes
them to the Postgres driver.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Engine, Executable, Select
from sqlalchemy.sql.compiler import SQLCompiler

from domain.core.database.statements import Row

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class SqlalchemyExecutor:
    """A connection that runs statements through SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        """Store a connection in autocommit mode."""
        self.connection = connection

    def run_statement(self, statement: Executable, parameters: Parameters) -> Sequence[Row]:
        """Run a statement and return its rows, if any."""
        result = self.connection.execute(statement, parameters)
        return cast("Sequence[Row]", result.all()) if result.returns_rows else ()


class RepeatedQuery:
    """A query that runs several times a second, compiled once and with its own connection.

    With SQLAlchemy, most of the query's cost would be overhead.
    """

    def __init__(self, statement: Select[*tuple[Any, ...]], engine: Engine) -> None:
        """Compile the statement for an engine in autocommit mode."""
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._dbapi: Any = engine.dialect.loaded_dbapi
        options: dict[str, Any] = {"paramstyle": "qmark" if self._is_sqlite else "numeric_dollar"}
        dialect = type(engine.dialect)(**options)
        self._direct = CompiledStatement(statement.compile(dialect=dialect), statement)
        self._engine = engine
        self._connection: Connection | None = None
        #: Driver connection on which the query runs.
        self._driver: Any = None
        self._last_write: Row | None = None

    def fetch_first_row(self, parameters: Mapping[str, Any]) -> Row:
        """Run the query and return its first row.

        Raise SQLAlchemyError or the driver's error.
        """
        return self._run_statement(self._direct.sql, self._direct.order_values(parameters))

    def may_result_have_changed(self) -> bool:
        """Return whether the database may have been written to since the last call.

        Always return True on Postgres. The check costs a fraction of the query and raises the same
        errors as `fetch_first_row`.
        """
        if not self._is_sqlite:
            return True
        # The number changes after each commit by another connection (sqlite.org/pragma).
        former, self._last_write = self._last_write, self._run_statement("PRAGMA data_version", ())
        return former != self._last_write

    def _run_statement(self, sql: str, values: Sequence[Any]) -> Row:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._driver = self._connection.connection.driver_connection
        driver = self._driver
        try:
            cursor = driver.cursor() if self._is_sqlite else self._dbapi.RawCursor(driver)
            return cast("Row", cursor.execute(sql, values).fetchone())
        except BaseException:
            lost, self._connection = self._connection, None
            lost.invalidate()
            lost.close()
            raise

    def close_connection(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None:
            self._connection.close()


class CompiledStatement:
    """A statement that SQLAlchemy has compiled, for execution by the database driver."""

    def __init__(self, compiled: SQLCompiler, statement: Executable) -> None:
        """Prepare the conversion of parameters and results."""
        self.sql = str(compiled)
        #: SQL in the form that libpq expects.
        self.text = self.sql.encode()
        dialect = compiled.dialect
        # Repeated parameter names share one value.
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        #: Literal values of the statement.
        self._given = {
            name: bind.effective_value for name, bind in binds.items() if not bind.required
        }
        converters = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for name, bind in binds.items()
        }
        self._converters = [(name, convert) for name, convert in converters.items() if convert]
        #: Parameter names in the order of the placeholders.
        self._order: Sequence[str] = compiled.positiontup or ()
        columns: Iterable[Any] = getattr(statement, "exported_columns", ())
        self._results = [
            each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns
        ]
        #: Function that builds a row from the values that psycopg has read.
        self.make_row: Callable[[Sequence[Any]], Row] = (
            self._convert_row if any(self._results) else tuple
        )

    def order_values(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Return the values in the order of the placeholders."""
        values = {**self._given, **parameters}
        for name, convert in self._converters:
            values[name] = convert(values[name])
        return [values[name] for name in self._order]

    def _convert_row(self, values: Sequence[Any]) -> Row:
        pairs = zip(self._results, values, strict=True)
        return tuple(convert(value) if convert else value for convert, value in pairs)
