"""Postgres connections for greenlets, with a deadline for every statement.

A frozen Postgres server does not enforce its own `statement_timeout`, so the web server does. If a
statement takes a long time, a probe on a separate connection checks whether Postgres responds. If
it does not respond, all statements fail immediately until it responds again.

Behind a transaction pooler, the statement and the probe may have to wait for a connection. Their
timeouts therefore include the time that a request may wait for a connection. Behind a pooler,
statements are not canceled. The pooler ends the session of a disconnected client, and Postgres ends
the statement (`web.database.sessions`).
"""

from contextlib import suppress
from functools import partial
from os import getpid
from time import monotonic
from typing import Any, NamedTuple, Never, TypeVar

import psycopg
from gevent import Timeout, get_hub, getcurrent, sleep, spawn
from gevent.lock import Semaphore
from gevent.socket import timeout as HasWaited  # noqa: N812 - more descriptive than its own name
from gevent.socket import wait_readwrite
from psycopg import Connection, Error, OperationalError
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from psycopg.waiting import Ready, Wait
from sqlalchemy import Engine, event

Value = TypeVar("Value")

#: Seconds between two checks of an unresponsive Postgres server.
_PROBE_PAUSE_SECONDS = 0.3
#: Seconds in addition to `statement_timeout` before a statement is abandoned.
_TIMEOUT_MARGIN_SECONDS = 2.0

_FROZEN_MESSAGE = "Postgres does not answer."
_TIMEOUT_MESSAGE = "Postgres took too long for a statement."
#: Number of the read event in gevent's event loop.
_READ_EVENT = 1


class ProbeTimeouts(NamedTuple):
    """Timeouts of the probe, in seconds."""

    #: Time after which a running statement is checked with the probe.
    for_statement: float = 0.3
    #: Timeout of each probe attempt. The probe makes two attempts.
    for_probe: float = 0.35


class PostgresProbe:
    """A probe that checks whether Postgres responds. Each process has one probe."""

    def __init__(self, probe_timeouts: ProbeTimeouts, *, may_cancel: bool) -> None:
        """Create a probe without a connection.

        Set `may_cancel` if process IDs come from Postgres itself and not from a pooler.
        """
        self.patience = probe_timeouts
        self._may_cancel = may_cancel
        #: Function that opens a connection with the engine's options.
        self.connect: partial[Connection[Any]] | None = None
        self._own: Connection[Any] | None = None
        self._process = 0
        self._asking = Semaphore()
        #: `True` if Postgres did not respond at the last check.
        self.is_known_unresponsive = False
        self._asked_at = float("-inf")

    def is_responding(self) -> bool:
        """Return whether Postgres responds.

        The check takes at most twice the time limit of the probe.
        """
        began = monotonic()
        with self._asking:
            if self._asked_at < began:
                # Probe twice, because this process itself may have been too busy at the first
                # attempt.
                is_there = self._run_probe_query("SELECT 1") or self._run_probe_query("SELECT 1")
                self._asked_at = monotonic()
                if not is_there and not self.is_known_unresponsive:
                    spawn(self._wait_until_responding)
                self.is_known_unresponsive = not is_there
        return not self.is_known_unresponsive

    def _wait_until_responding(self) -> None:
        """Probe until Postgres responds, so that requests do not need to probe."""
        while self.is_known_unresponsive:
            sleep(_PROBE_PAUSE_SECONDS)
            self.is_responding()

    def cancel_statement(self, backend: int) -> None:
        """Cancel an abandoned statement on the server."""
        if self._may_cancel:
            with self._asking:
                self._run_probe_query("SELECT pg_cancel_backend(%s)", backend)

    def _run_probe_query(self, question: str, *values: int) -> bool:
        if self._process != getpid():  # connections must not be shared with a parent process
            self._own, self._process = None, getpid()
        try:
            with Timeout(self.patience.for_probe, OperationalError(_FROZEN_MESSAGE)):
                if self._own is None and self.connect is not None:
                    self._own = self.connect()
                if self._own is not None:
                    self._own.execute(question, values, prepare=False)
        except Error:
            self._discard_connection()
            return False
        return True

    def _discard_connection(self) -> None:
        if self._own is not None:
            with suppress(Error):
                self._own.close()
        self._own = None


class DeadlineConnection(Connection[Any]):
    """A connection that abandons a statement at its deadline or if Postgres is frozen.

    The connection is then closed in the middle of the statement, and SQLAlchemy treats it as lost.
    """

    _probe: PostgresProbe | None = None
    _limit = float("inf")
    #: gevent hub that waits for this connection, and its watchers. They are created once, because
    #: creating them costs as much as waiting.
    _hub: Any = None
    _readable: Any
    _patience: Any

    def set_deadlines(self, probe: PostgresProbe, limit: float) -> None:
        """Set the probe, and the time limit for statements in seconds."""
        self._probe, self._limit = probe, limit

    def wait(self, gen: PQGen[Value], interval: float = 0.1, timeout: float | None = None) -> Value:
        """Run psycopg's generator, and wait for the socket when the generator requests it."""
        if timeout is not None or self._probe is None:
            return super().wait(gen, interval, timeout)
        if self._probe.is_known_unresponsive:
            self._abandon_statement(_FROZEN_MESSAGE)
        try:
            return self._wait_until_deadline(gen, self._probe)
        except Error:
            raise
        except BaseException:  # the request timed out, or the greenlet was killed
            backend = self.info.backend_pid
            self.close()
            spawn(self._probe.cancel_statement, backend)
            raise

    def _wait_until_deadline(self, gen: PQGen[Value], probe: PostgresProbe) -> Value:
        began = 0.0
        try:
            state = next(gen)
            while True:
                try:
                    self._wait_for_socket(state, probe.patience.for_statement)
                except HasWaited:
                    began = began or monotonic() - probe.patience.for_statement
                    self._check_deadline(began, probe)
                else:
                    state = gen.send(Ready.RW)
        except StopIteration as done:
            value: Value = done.value
            return value

    def _wait_for_socket(self, state: Wait, seconds: float) -> None:
        """Wait until the socket is ready.

        Raise HasWaited after the timeout.
        """
        if state is not Wait.R:
            wait_readwrite(self.fileno(), seconds)
            return
        hub = get_hub()
        if hub is not self._hub:
            self._hub = hub
            self._readable = hub.loop.io(self.fileno(), _READ_EVENT)
            self._patience = hub.loop.timer(seconds, seconds)
        # `again` restarts the timer. After `start`, which gevent's Timeout uses, the timer would
        # continue with its remaining time.
        self._patience.again(getcurrent().throw, HasWaited)
        try:
            hub.wait(self._readable)
        finally:
            self._patience.stop()

    def _check_deadline(self, began: float, probe: PostgresProbe) -> None:
        if monotonic() - began > self._limit:
            self._abandon_statement(_TIMEOUT_MESSAGE)
        if not probe.is_responding():
            self._abandon_statement(_FROZEN_MESSAGE)

    def _abandon_statement(self, reason: str) -> Never:
        self.close()
        raise OperationalError(reason)


class DeadlineConnectionFactory:
    """Creates deadline connections for SQLAlchemy engines, with one shared probe."""

    def __init__(self, *, statement_seconds: float, pooler_seconds: float | None) -> None:
        """Store the `statement_timeout` and the longest time to wait for a transaction pooler."""
        self._limit = statement_seconds + _TIMEOUT_MARGIN_SECONDS
        if pooler_seconds is None:
            self._probe = PostgresProbe(ProbeTimeouts(), may_cancel=True)
        else:
            patience = ProbeTimeouts(min(pooler_seconds, self._limit), pooler_seconds)
            self._probe = PostgresProbe(patience, may_cancel=False)

    def attach_to_engine(self, engine: Engine) -> None:
        """Use this factory for all new connections of an engine."""
        event.listen(engine, "do_connect", self._open_connection)

    def _open_connection(
        self, _dialect: Any, _record: Any, cargs: list[Any], cparams: dict[str, Any]
    ) -> DeadlineConnection:
        probe = self._probe
        probe.connect = partial(psycopg.connect, *cargs, **cparams | {"autocommit": True})
        if probe.is_known_unresponsive:
            raise OperationalError(_FROZEN_MESSAGE)
        try:
            connection = DeadlineConnection.connect(*cargs, **cparams)
        except ConnectionTimeout:
            probe.is_responding()  # this starts probing before other requests fail
            raise
        connection.set_deadlines(probe, self._limit)
        return connection
