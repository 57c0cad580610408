"""Runs the statements of the hot paths on the driver.

SQLAlchemy compiles them, and on SQLite executes them as well. On Postgres they are passed to
psycopg directly, because SQLAlchemy's work per execution costs about as much as Flask's for a whole
request. See decision records 27 and 69.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from psycopg import Connection as DriverConnection
from psycopg import Error, RawCursor
from sqlalchemy import Connection, Engine, Executable, Insert, Select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from domain.database.statements import Row
from web.database.engine import ends_session
from web.database.prepared_statements import PreparedStatements

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


class CoreStatements:
    """Runs statements on a connection through SQLAlchemy."""

    def __init__(self, connection: Connection) -> None:
        """Use this connection."""
        self.connection = connection

    def run(self, statement: Executable, parameters: Parameters) -> Sequence[Row]:
        """Run a statement and return its rows, if any."""
        result = self.connection.execute(statement, parameters)
        return cast("Sequence[Row]", result.all()) if result.returns_rows else ()


class CompiledStatements:
    """A cache of compiled statements."""

    def __init__(self, engine: Engine) -> None:
        """Compile for the dialect of this engine."""
        # With native placeholders ($1): psycopg parses its own and does not cache long statements.
        options: dict[str, Any] = {"paramstyle": "numeric_dollar"}
        self._dialect = type(engine.dialect)(**options)
        #: None for statements that only SQLAlchemy can run.
        self._known: dict[Executable, _Direct | None] = {}

    def find(self, statement: Executable) -> "_Direct | None":
        """Return the compiled statement for psycopg, or None if it cannot run it."""
        try:
            return self._known[statement]
        except KeyError:
            return self._known.setdefault(statement, self._compiled(statement))

    def _compiled(self, statement: Executable) -> "_Direct | None":
        if isinstance(statement, Insert) and not _names_its_columns(statement):
            return None  # they are those of the values, each time
        compiled = statement.compile(dialect=self._dialect)  # type: ignore[attr-defined]
        return _Direct(compiled, statement) if _is_whole(compiled) else None


class DirectStatements(CoreStatements):
    """Runs compiled statements on psycopg."""

    def __init__(self, connection: Connection, compiled: CompiledStatements) -> None:
        """Use this connection and this cache."""
        super().__init__(connection)
        self._compiled = compiled
        driver = cast("DriverConnection[Any]", connection.connection.driver_connection)
        self._prepared = PreparedStatements(driver)

    def run(self, statement: Executable, parameters: Parameters) -> Sequence[Row]:
        """Run a statement and return its rows, if any; raises DBAPIError as SQLAlchemy does."""
        # Statements with parameters are constants of their modules and are cached.
        direct = self._compiled.find(statement) if isinstance(parameters, Mapping) else None
        if direct is None:
            return super().run(statement, parameters)
        values = direct.values(cast("Mapping[str, Any]", parameters))
        try:
            return self._prepared.run(direct.text, values, direct.make_row)
        except Error as error:
            raise self._translated(error, direct) from error

    def _translated(self, error: Error, direct: "_Direct") -> DBAPIError | Exception:
        connection = self.connection
        driver = connection.connection.driver_connection
        is_gone = ends_session(error) or connection.dialect.is_disconnect(
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


class RepeatedQuestion:
    """A read that is asked several times a second, compiled once, on a connection of its own.

    SQLAlchemy's work per execution would be most of what it costs.
    """

    def __init__(self, statement: Select[*tuple[Any, ...]], engine: Engine) -> None:
        """Compile the statement; the engine is in autocommit mode."""
        is_sqlite = engine.dialect.name == "sqlite"
        options: dict[str, Any] = {"paramstyle": "qmark" if is_sqlite else "numeric_dollar"}
        dialect = type(engine.dialect)(**options)
        self._direct = _Direct(statement.compile(dialect=dialect), statement)
        self._engine = engine
        self._connection: Connection | None = None
        #: That of the driver, which is asked.
        self._driver: Any = None
        self._tells_of_writes = is_sqlite
        self._last_write: Row | None = None

    def ask(self, parameters: Mapping[str, Any]) -> Row:
        """Return the first row; raise SQLAlchemyError or the driver's error."""
        return self._run(self._direct.sql, self._direct.values(parameters))

    def may_have_changed(self) -> bool:
        """Return whether somebody wrote to the database since the last call; True on Postgres.

        It costs a fraction of a question. Raises as `ask` does.
        """
        if not self._tells_of_writes:
            return True
        # Of the file: another number after each commit of another connection (sqlite.org/pragma).
        former, self._last_write = self._last_write, self._run("PRAGMA data_version", ())
        return former != self._last_write

    def _run(self, sql: str, values: Sequence[Any]) -> Row:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._driver = self._connection.connection.driver_connection
        driver = self._driver
        try:
            cursor = RawCursor(driver) if isinstance(driver, DriverConnection) else driver.cursor()
            return cast("Row", cursor.execute(sql, values).fetchone())
        except BaseException:
            lost, self._connection = self._connection, None
            lost.invalidate()
            lost.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


def _is_whole(compiled: SQLCompiler) -> bool:
    """Return whether the SQL does not depend on the values, unlike `IN` with a list."""
    return not (compiled.literal_execute_params or compiled.post_compile_params)


def _names_its_columns(statement: Insert) -> bool:
    return statement.select is not None or bool(statement._values)  # noqa: SLF001 - nothing says it


class _Direct:
    """A compiled statement."""

    def __init__(self, compiled: SQLCompiler, statement: Executable) -> None:
        self.sql = str(compiled)
        #: The same, as libpq takes it.
        self.text = self.sql.encode()
        dialect = compiled.dialect
        # Repeated names share one value.
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
        #: The parameter names of the placeholders.
        self._order: Sequence[str] = compiled.positiontup or ()
        columns: Iterable[Any] = getattr(statement, "exported_columns", ())
        self._results = [
            each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns
        ]
        #: Makes a row of the values that psycopg read.
        self.make_row: Callable[[Sequence[Any]], Row] = (
            self._converted if any(self._results) else tuple
        )

    def values(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Return the values in the order of the placeholders."""
        values = {**self._given, **parameters}
        for name, convert in self._converters:
            values[name] = convert(values[name])
        return [values[name] for name in self._order]

    def _converted(self, values: Sequence[Any]) -> Row:
        pairs = zip(self._results, values, strict=True)
        return tuple(convert(value) if convert else value for convert, value in pairs)
