"""Delivers audit events to their destinations, each in a thread of its own.

The background worker looks every second whether something is to be sent. Of several workers each
destination has one at a time (`domain/audit/streaming/deliveries.py`).
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import NamedTuple, Self

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.audit.streaming.deliveries import (
    Claim,
    Delivery,
    claim_due_streams,
    has_due_streams,
    next_delivery,
    record_delivered,
    record_failure,
    release,
)
from domain.audit.streaming.destinations import FAILING_AFTER
from domain.audit.streaming.messages import signed_headers
from domain.clock import Clock, system_clock
from domain.keyring import Keyring, UndecipherableError
from domain.outgoing_urls import parse_outgoing_url
from domain.randomness import random_share
from web.database.engine import open_engine
from web.outgoing.client import DEADLINE_SECONDS, OutgoingClient
from web.outgoing.errors import OutgoingError
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.audit_streams")
#: Enough for many destinations: none is held while a request is under way.
_CONNECTIONS = 3
_POLL_SECONDS = 1.0
_AFTER_FAILURE_SECONDS = 5.0
_LOST_SECRET = "its secret was encrypted with a SECRET_KEY that is no longer known: rotate it"  # noqa: S105 - a sentence


class _Outcome(NamedTuple):
    #: None for a success.
    problem: str | None
    asked_seconds: int | None = None


class AuditStreaming:
    """The deliveries of one worker."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        share: Callable[[], float] = random_share,
    ) -> None:
        """Open the database; `share` varies the pauses between attempts."""
        self._settings = settings
        self._clock = clock
        self._share = share
        self._keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
        self._engine = open_engine(replace(settings, database_pool_size=_CONNECTIONS))
        # A look must not take the lock of a writer.
        self._reading = self._engine.execution_options(begin_mode="DEFERRED")
        self._is_stopped = Event()
        self._threads: list[Thread] = []

    def __enter__(self) -> Self:
        """Return the deliveries, which have not begun."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Let the requests under way finish, and close the database."""
        self.stop()

    def start(self) -> None:
        """Begin to deliver, in the background."""
        watcher = Thread(target=self._watch, name="audit streams", daemon=True)
        watcher.start()
        self._threads.append(watcher)

    def stop(self) -> None:
        """Let the requests under way finish; other events stay for the next worker."""
        self._is_stopped.set()
        deadline = monotonic() + DEADLINE_SECONDS + _POLL_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - monotonic(), 0))
        self._engine.dispose()

    def deliver_due(self) -> int:
        """Send everything that is due now, and return how many destinations that concerned."""
        begun = self._begin_due()
        for thread in begun:
            thread.join()
        return len(begun)

    def _watch(self) -> None:
        pause = 0.0
        while not self._is_stopped.wait(pause):
            try:
                self._threads = [each for each in self._threads if each.is_alive()]
                self._threads += self._begin_due()
                pause = _POLL_SECONDS
            except SQLAlchemyError as error:  # unavailable or not migrated; /readyz reports it
                _log.debug("no look at audit streams", extra={"reason": type(error).__name__})
                pause = _AFTER_FAILURE_SECONDS

    def _begin_due(self) -> list[Thread]:
        with Session(self._reading) as session:
            if not has_due_streams(session=session, now=self._clock()):
                return []
        with Session(self._engine) as session, session.begin():
            claims = claim_due_streams(session=session, now=self._clock())
        begun = [
            Thread(target=self._deliver_all, args=(claim,), name="audit stream", daemon=True)
            for claim in claims
        ]
        for thread in begun:
            thread.start()
        return begun

    def _deliver_all(self, claim: Claim) -> None:
        """Send the events of a destination until there is none, or one fails."""
        client = OutgoingClient.of(self._settings)
        try:
            delivery = self._next(claim)
            while delivery is not None:
                if self._is_stopped.is_set():
                    self._release(claim)
                    break
                delivery = self._send(claim, delivery, client)
        except SQLAlchemyError as error:
            # The claim ends by itself; what was sent and could not be noted is sent once more.
            reason = type(error).__name__
            _log.warning("audit stream interrupted", extra=_about(claim, reason=reason))
        finally:
            client.close()

    def _next(self, claim: Claim) -> Delivery | None:
        try:
            with Session(self._engine) as session, session.begin():
                return self._next_in(session, claim)
        except UndecipherableError:
            self._note_failure(claim, _Outcome(_LOST_SECRET))
            return None

    def _next_in(self, session: Session, claim: Claim) -> Delivery | None:
        return next_delivery(claim, session=session, keyring=self._keyring, now=self._clock())

    def _release(self, claim: Claim) -> None:
        with Session(self._engine) as session, session.begin():
            release(claim, session=session)

    def _send(self, claim: Claim, delivery: Delivery, client: OutgoingClient) -> Delivery | None:
        """Send an event; return the next one, or None if this failed or was the last."""
        outcome = self._attempt(delivery, client)
        if outcome.problem is not None:
            self._note_failure(claim, outcome)
            return None
        with Session(self._engine) as session, session.begin():
            record_delivered(claim, delivery, session=session, now=self._clock())
            return self._next_in(session, claim)

    def _attempt(self, delivery: Delivery, client: OutgoingClient) -> _Outcome:
        headers = signed_headers(delivery.message, delivery.secrets, now=self._clock())
        try:
            answer = client.post(parse_outgoing_url(delivery.url), delivery.message.body, headers)
        except OutgoingError as error:
            return _Outcome(str(error))
        return _Outcome(answer.problem, answer.retry_after)

    def _note_failure(self, claim: Claim, outcome: _Outcome) -> None:
        with Session(self._engine) as session, session.begin():
            now, problem = self._clock(), outcome.problem or ""
            failure = record_failure(
                claim,
                problem,
                share=self._share(),
                asked_seconds=outcome.asked_seconds,
                session=session,
                now=now,
            )
        if failure is None:
            return
        said = _about(claim, reason=problem, failures=failure.failures)
        if now - failure.failing_since >= FAILING_AFTER:
            _log.error("audit stream failing", extra=said)
        else:
            _log.warning("audit event not delivered, trying again later", extra=said)


def _about(claim: Claim, **more: object) -> dict[str, object]:
    return {"audit_stream_id": claim.stream_id, **more}
