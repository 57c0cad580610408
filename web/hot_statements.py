"""How statements of the hot paths reach the driver.

SQLAlchemy writes them, and on SQLite runs them as well. On Postgres they go to psycopg directly:
what happens in between (a context, a result, a cursor's description for each execution) costs
about as much as Flask does for a whole request. See docs/adr/0020.
"""

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from psycopg import Connection as DriverConnection
from psycopg import Error
from sqlalchemy import Connection, Engine, Executable, Insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from domain.hot import HotRow
from web.prepared import Prepared

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
_PLACE = re.compile(r"%\((\w+)\)s")


class CoreStatements:
    """Runs statements through SQLAlchemy."""

    def adopt(self, connection: Connection) -> None:
        """Get a connection ready for this: it is."""

    def run(
        self, connection: Connection, statement: Executable, parameters: Parameters
    ) -> Sequence[HotRow]:
        """Run one and return its rows, if it has any."""
        result = connection.execute(statement, parameters)
        return cast("Sequence[HotRow]", result.all()) if result.returns_rows else ()


class DirectStatements:
    """Runs statements on psycopg, in the words that SQLAlchemy compiled once for each."""

    def __init__(self, engine: Engine) -> None:
        """Compile for the dialect of this engine."""
        self._dialect = engine.dialect
        #: None for those that only SQLAlchemy can run.
        self._known: dict[Executable, _Direct | None] = {}
        self._core = CoreStatements()

    def adopt(self, connection: Connection) -> None:
        """Keep psycopg from preparing by itself: at a rollback it throws away all there is."""
        driver = cast("DriverConnection[Any]", connection.connection.driver_connection)
        driver.prepare_threshold = None

    def run(
        self, connection: Connection, statement: Executable, parameters: Parameters
    ) -> Sequence[HotRow]:
        """Run one and return its rows, if it has any; raises DBAPIError as SQLAlchemy does."""
        # Whatever comes with parameters is a constant of its module; the rest is made each time.
        direct = self._direct(statement) if isinstance(parameters, Mapping) else None
        if direct is None:
            return self._core.run(connection, statement, parameters)
        driver = cast("DriverConnection[Any]", connection.connection.driver_connection)
        try:
            return direct.run(driver, cast("Mapping[str, Any]", parameters))
        except Error as error:
            raise self._translated(error, connection, direct) from error

    def _direct(self, statement: Executable) -> "_Direct | None":
        try:
            return self._known[statement]
        except KeyError:
            return self._known.setdefault(statement, self._compiled(statement))

    def _compiled(self, statement: Executable) -> "_Direct | None":
        if isinstance(statement, Insert) and not _names_its_columns(statement):
            return None  # they are those of the values, each time
        compiled = statement.compile(dialect=self._dialect)  # type: ignore[attr-defined]
        return _Direct(compiled, statement) if _is_whole(compiled) else None

    def _translated(
        self, error: Error, connection: Connection, direct: "_Direct"
    ) -> DBAPIError | Exception:
        driver = connection.connection.driver_connection
        is_gone = self._dialect.is_disconnect(error, driver, None)  # type: ignore[arg-type]
        translated = DBAPIError.instance(
            *(direct.sql, None, error, Error),
            hide_parameters=True,
            connection_invalidated=is_gone,
            dialect=self._dialect,
        )
        if is_gone:
            connection.invalidate(error)
        return cast("DBAPIError", translated)


def _is_whole(compiled: SQLCompiler) -> bool:
    """Tell whether a text does not depend on the values, as that of `IN` with a list does."""
    return not (compiled.literal_execute_params or compiled.post_compile_params)


def _names_its_columns(statement: Insert) -> bool:
    return statement.select is not None or bool(statement._values)  # noqa: SLF001 - nothing says it


class _Direct:
    """A compiled statement."""

    def __init__(self, compiled: SQLCompiler, statement: Executable) -> None:
        self.sql = str(compiled)
        dialect = compiled.dialect
        #: Values that are part of the statement.
        self._given = {
            name: bind.effective_value
            for bind, name in compiled.bind_names.items()
            if not bind.required
        }
        columns: Iterable[Any] = getattr(statement, "exported_columns", ())
        self._results = [
            each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns
        ]
        text, names = _numbered(self.sql)
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        self._values = [
            (name, binds[name].type.dialect_impl(dialect).bind_processor(dialect)) for name in names
        ]
        self._prepared = Prepared(text.encode(), len(names), self._rows_of)

    def run(self, driver: DriverConnection[Any], parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Run it and return its rows, if it has any."""
        given = {**self._given, **parameters}
        values = [
            convert(given[name]) if convert else given[name] for name, convert in self._values
        ]
        return self._prepared.run(driver, values)

    def _rows_of(self, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
        """Return what makes a row of its values."""
        row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024 - names unknown
        make: Callable[[Iterable[Any]], Any] = row._make
        if not any(self._results):
            return make
        results = self._results

        def converted(values: Sequence[Any]) -> Any:
            pairs = zip(results, values, strict=True)
            return make(convert(value) if convert else value for convert, value in pairs)

        return converted


def _numbered(text: str) -> tuple[str, list[str]]:
    """Return a text with `$1` in the place of `%(name)s`, and the names in that order."""
    names: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    return _PLACE.sub(place, text).replace("%%", "%"), list(names)
