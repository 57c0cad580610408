"""Runs prepared statements through libpq itself, one call and one release of the interpreter each.

psycopg's cursors take turns with the interpreter for every step (send, flush, wait, consume, take
the result), so that threads can be interrupted and coroutines served. Where four threads share a
process those turns cost more than the statement. Converting values is psycopg's work here, too.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Connection
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import InvalidSqlStatementName, OperationalError, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

Row = Any


class _Known:
    """What a connection has learnt."""

    def __init__(self, connection: Connection[Any]) -> None:
        #: It remembers how values of each type are written and read.
        self.transformer = Transformer(connection)
        #: What was prepared, by text and types of the values.
        self.names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}


_known: WeakKeyDictionary[Connection[Any], _Known] = WeakKeyDictionary()
#: No name is given twice, not even after those of a connection were forgotten.
_numbers = count()


class Prepared:
    """A text with `$1`, `$2` … that each connection prepares when it first meets it."""

    def __init__(
        self, text: bytes, values: int, rows: Callable[[Sequence[str]], Callable[..., Row]]
    ) -> None:
        """Take the text, how many values it has, and what makes rows of columns with such names."""
        self.text = text
        self._formats = [PyFormat.AUTO] * values
        self._rows = rows
        self._make: Callable[..., Row] | None = None

    def run(self, connection: Connection[Any], values: Sequence[Any]) -> Sequence[Row]:
        """Run it and return its rows, if it has any; raise psycopg's errors."""
        try:
            return self._run(connection, values)
        except InvalidSqlStatementName:
            # Somebody else on this connection has thrown away all that was prepared.
            _known.pop(connection, None)
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise
            return self._run(connection, values)

    def _run(self, connection: Connection[Any], values: Sequence[Any]) -> Sequence[Row]:
        known = _known.get(connection) or _known.setdefault(connection, _Known(connection))
        transformer, link = known.transformer, connection.pgconn
        # Its types know nothing of NULL here, though libpq does.
        given: Any = transformer.dump_sequence(values, self._formats)
        name = self._name(known, connection)
        result = link.exec_prepared(name, given, transformer.formats, Format.BINARY)
        if result.status != ExecStatus.TUPLES_OK:
            _check(result, link)
            return ()
        transformer.set_pgresult(result)
        make = self._make or self._learn(result)
        rows = transformer.load_rows(0, result.ntuples, make)
        transformer.set_pgresult(None)  # which may be large
        return rows

    def _name(self, known: _Known, connection: Connection[Any]) -> bytes:
        key = (self.text, known.transformer.types or ())
        name = known.names.get(key)
        if name is None:
            name = b"gatebell_%d" % next(_numbers)
            _check(connection.pgconn.prepare(name, *key), connection.pgconn)
            known.names[key] = name
        return name

    def _learn(self, result: PGresult) -> Callable[..., Row]:
        names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
        self._make = self._rows(names)
        return self._make


def _check(result: PGresult, link: PGconn) -> None:
    if result.status == ExecStatus.COMMAND_OK:
        return
    if link.status == ConnStatus.BAD:
        raise OperationalError(result.get_error_message())
    raise error_from_result(result)
