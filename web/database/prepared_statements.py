"""Runs prepared statements with psycopg's low-level layers, without its cursors.

A cursor takes as long as the rest of a frequent query (docs/evidence/performance.md). The
statements that run here are known in advance, and run one after another. They only need to convert
parameters and results as a cursor does, for which `psycopg.adapt` is sufficient.
"""

from collections.abc import Callable, Sequence
from typing import Any

from psycopg import Connection
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from domain.core.database.statements import Row

#: Maximum number of prepared statements per connection. A statement counts once for each
#: combination of parameter types.
_MAX_STATEMENTS = 100


class PreparedStatementExecutor:
    """Executor that prepares statements with native placeholders ($1) at their first use."""

    def __init__(self, driver: Connection[Any]) -> None:
        """Store a connection in autocommit mode that only one greenlet uses at a time."""
        self._driver = driver
        self._pgconn = driver.pgconn
        self._transformer = Transformer(driver)
        #: `False` behind a pooler. Prepared statements belong to a server connection. On a
        #: different server connection, the same name may refer to another statement.
        self._may_prepare = driver.prepare_threshold is not None
        # On a rollback, psycopg would deallocate all prepared statements, including the statements
        # that this class prepares.
        driver.prepare_threshold = None
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._prepared = 0

    def run_statement(
        self, sql: bytes, values: Sequence[Any], make_row: Callable[[Sequence[Any]], Row]
    ) -> Sequence[Row]:
        """Run a statement and return its rows, if any.

        Raise psycopg's errors.
        """
        convert, pgconn = self._transformer, self._pgconn
        parameters = convert.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = convert.types, convert.formats
        if self._may_prepare:
            name = self._names.get((sql, types or ())) or self._prepare_statement(sql, types or ())
            pgconn.send_query_prepared(name, parameters, formats, Format.BINARY)
        else:
            pgconn.send_query_params(sql, parameters, types, formats, Format.BINARY)
        result = self._fetch_result()
        if not result.nfields:
            return ()
        convert.set_pgresult(result)
        return convert.load_rows(0, result.ntuples, make_row)

    def _prepare_statement(self, sql: bytes, types: tuple[int, ...]) -> bytes:
        if len(self._names) == _MAX_STATEMENTS:
            oldest = self._names.pop(next(iter(self._names)))
            self._pgconn.send_query(b"DEALLOCATE " + oldest)
            self._fetch_result()
        self._prepared += 1
        name = b"gatebell_%d" % self._prepared
        self._pgconn.send_prepare(name, sql, types)
        self._fetch_result()
        self._names[sql, types] = name
        return name

    def _fetch_result(self) -> PGresult:
        """Wait for the result of the sent statement and return it.

        Raise the error of the statement if it failed.
        """
        result = self._driver.wait(_exchange_with_server(self._pgconn))
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result, encoding=self._driver.info.encoding)
        return result


def _exchange_with_server(pgconn: PGconn) -> PQGen[PGresult]:
    """Send the data that libpq has buffered and return the result of the statement."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[PGresult] = []
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return results[-1]
        results.append(result)
