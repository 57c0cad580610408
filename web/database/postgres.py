"""Connections to Postgres that wait for it in greenlets, and never longer than they have to.

`statement_timeout` is Postgres's own word, and one that is frozen does not keep it. So the web
server keeps the time itself: who has waited for a moment asks, on a connection apart, whether
Postgres answers anybody at all. If it does not, everybody is told at once, until it does.
"""

from contextlib import suppress
from functools import partial
from os import getpid
from time import monotonic
from typing import Any, Never, TypeVar

import psycopg
from gevent import Timeout, sleep, spawn
from gevent.lock import Semaphore
from gevent.socket import timeout as HasWaited  # noqa: N812 - its own name says nothing
from gevent.socket import wait_read, wait_readwrite, wait_write
from psycopg import Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from psycopg.waiting import Ready, Wait
from sqlalchemy import Engine, event

Value = TypeVar("Value")

#: So many seconds a statement may take before anybody asks whether Postgres is there.
_PATIENCE_SECONDS = 0.3
#: … and so many it has to answer that; it is asked twice.
_ANSWER_SECONDS = 0.35
#: How much longer than `statement_timeout` anybody waits for a statement.
_MARGIN_SECONDS = 2.0

_FROZEN = "Postgres does not answer."
_TOO_LONG = "Postgres took too long for a statement."
_WAITS = {Wait.R: wait_read, Wait.W: wait_write, Wait.RW: wait_readwrite}


class Sentinel:
    """Knows whether Postgres answers; one for each process."""

    def __init__(self) -> None:
        """Know nothing yet."""
        #: What opens a connection, as those who ask for something do.
        self.connect: partial[Connection[Any]] | None = None
        self._own: Connection[Any] | None = None
        self._process = 0
        self._asking = Semaphore()
        #: It did not answer, and has not answered since.
        self.is_known_to_be_away = False
        self._asked_at = float("-inf")

    def is_there(self) -> bool:
        """Ask it, unless somebody just does; takes 0.7 seconds at the most."""
        began = monotonic()
        with self._asking:
            if self._asked_at < began:
                # Twice: the first time it may be this process that was too busy to listen.
                is_there = self._ask("SELECT 1") or self._ask("SELECT 1")
                self._asked_at = monotonic()
                if not is_there and not self.is_known_to_be_away:
                    spawn(self._wait_for_its_return)
                self.is_known_to_be_away = not is_there
        return not self.is_known_to_be_away

    def _wait_for_its_return(self) -> None:
        """Ask again and again, so that nobody else has to try."""
        while self.is_known_to_be_away:
            sleep(_PATIENCE_SECONDS)
            self.is_there()

    def cancel(self, backend: int) -> None:
        """End the statement that nobody waits for any more."""
        with self._asking:
            self._ask("SELECT pg_cancel_backend(%s)", backend)

    def _ask(self, question: str, *values: int) -> bool:
        if self._process != getpid():  # a connection is not to be shared with a parent
            self._own, self._process = None, getpid()
        try:
            with Timeout(_ANSWER_SECONDS, OperationalError(_FROZEN)):
                if self._own is None and self.connect is not None:
                    self._own = self.connect()
                if self._own is not None:
                    self._own.execute(question, values, prepare=False)
        except Error:
            self._forget()
            return False
        return True

    def _forget(self) -> None:
        if self._own is not None:
            with suppress(Error):
                self._own.close()
        self._own = None


class PunctualConnection(Connection[Any]):
    """A connection that gives up on a statement when it took too long, or Postgres is frozen.

    It is closed then, since it is in the middle of that statement: SQLAlchemy takes it for lost.
    """

    _sentinel: Sentinel | None = None
    _limit = float("inf")

    def be_punctual(self, sentinel: Sentinel, limit: float) -> None:
        """Wait no longer than so many seconds, and no longer than the sentinel says."""
        self._sentinel, self._limit = sentinel, limit

    def wait(self, gen: PQGen[Value], interval: float = 0.1, timeout: float | None = None) -> Value:
        """Do what the generator does, and wait for Postgres where it has to."""
        if timeout is not None or self._sentinel is None:
            return super().wait(gen, interval, timeout)
        if self._sentinel.is_known_to_be_away:
            self._give_up(_FROZEN)
        try:
            return self._wait(gen, self._sentinel)
        except Exception:
            raise
        except BaseException:  # whoever waited has no more time, or is told to stop
            backend = self.info.backend_pid
            self.close()
            spawn(self._sentinel.cancel, backend)
            raise

    def _wait(self, gen: PQGen[Value], sentinel: Sentinel) -> Value:
        began = 0.0
        try:
            state = next(gen)
            while True:
                try:
                    _WAITS[state](self.fileno(), _PATIENCE_SECONDS)
                except HasWaited:
                    began = began or monotonic() - _PATIENCE_SECONDS
                    self._check(began, sentinel)
                else:
                    state = gen.send(Ready.RW)
        except StopIteration as done:
            value: Value = done.value
            return value

    def _check(self, began: float, sentinel: Sentinel) -> None:
        if monotonic() - began > self._limit:
            self._give_up(_TOO_LONG)
        if not sentinel.is_there():
            self._give_up(_FROZEN)

    def _give_up(self, reason: str) -> Never:
        self.close()
        raise OperationalError(reason)


class PunctualConnections:
    """Opens them for engines of SQLAlchemy, all with one sentinel."""

    def __init__(self, *, statement_seconds: float) -> None:
        """Take what Postgres itself allows a statement."""
        self._limit = statement_seconds + _MARGIN_SECONDS
        self._sentinel = Sentinel()

    def serve(self, engine: Engine) -> None:
        """Open the connections of this engine from now on."""
        event.listen(engine, "do_connect", self._open)

    def _open(
        self, _dialect: Any, _record: Any, cargs: list[Any], cparams: dict[str, Any]
    ) -> PunctualConnection:
        sentinel = self._sentinel
        sentinel.connect = partial(psycopg.connect, *cargs, **cparams | {"autocommit": True})
        if sentinel.is_known_to_be_away:
            raise OperationalError(_FROZEN)
        try:
            connection = PunctualConnection.connect(*cargs, **cparams)
        except ConnectionTimeout:
            sentinel.is_there()  # so that nobody else has to try
            raise
        connection.be_punctual(sentinel, self._limit)
        return connection
