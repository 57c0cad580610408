"""Delivers signed messages to destinations, each in a thread of its own.

The background worker looks every second whether something is to be sent. Of several workers each
destination has one at a time (`domain/outgoing/claims.py`).
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from threading import Thread
from time import monotonic
from typing import ClassVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.clock import Clock, system_clock
from domain.keyring import Keyring, UndecipherableError
from domain.outgoing.claims import Attempt, Claim, Delivery, Failure
from domain.outgoing.states import FAILING_AFTER
from domain.randomness import random_share
from web.jobs.loops import Loop
from web.outgoing.attempts import attempt
from web.outgoing.client import DEADLINE_SECONDS, OutgoingClient
from web.settings.reader import Settings

_LOST_SECRET = "its secret was encrypted with a SECRET_KEY that is no longer known: rotate it"  # noqa: S105 - a sentence


class DestinationWorker(Loop):
    """The deliveries of one worker to destinations of one kind."""

    #: Enough for many destinations: none is held while a request is in progress.
    connections = 3
    #: Of a thread for one destination, and of log lines.
    NAME: ClassVar[str]
    LOG: ClassVar[logging.Logger]
    #: The name of a destination's number in log lines.
    NUMBER: ClassVar[str]
    #: The log line of a failed attempt.
    NOT_DELIVERED: ClassVar[str]
    #: The most destinations that are delivered to at the same time.
    MOST_AT_ONCE: ClassVar[int] = 64
    #: After so long a destination lets others have its thread.
    TURN_SECONDS: ClassVar[float] = float("inf")

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = system_clock,
        share: Callable[[], float] = random_share,
    ) -> None:
        """Open the database; `share` varies the pauses between attempts."""
        super().__init__(settings, clock=clock)
        self.share = share
        self.keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
        self._threads: list[Thread] = []

    @abstractmethod
    def has_due(self, session: Session) -> bool:
        """Return whether there is something to claim; it writes nothing."""

    @abstractmethod
    def claim_due(self, session: Session, most: int) -> Sequence[Claim]:
        """Claim destinations that have something to be sent, and no more than `most`."""

    @abstractmethod
    def next_delivery(self, claim: Claim, session: Session) -> Delivery | None:
        """Renew a claim and return the next message, or give the claim up and return None."""

    @abstractmethod
    def release(self, claim: Claim, session: Session) -> None:
        """Give up a claim."""

    @abstractmethod
    def record_delivered(
        self, claim: Claim, delivery: Delivery, attempt: Attempt, session: Session
    ) -> None:
        """Record that a message was taken, even if the claim was lost meanwhile."""

    @abstractmethod
    def record_failure(
        self, claim: Claim, delivery: Delivery | None, attempt: Attempt, session: Session
    ) -> Failure | None:
        """Schedule the next attempt and give up the claim; return None if it was lost.

        There is no delivery if the secrets of the destination cannot be read.
        """

    def run_due(self) -> int:
        """Send everything that is due now, and return how many destinations that concerned."""
        begun = self._begin_due()
        for thread in begun:
            thread.join()
        return len(begun)

    def look(self) -> int:
        """Begin to send what is due: a destination that is slow holds up no other."""
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads += self._begin_due()
        return 0

    def stop(self) -> None:
        """Let the requests under way finish; other messages stay for the next worker."""
        self.is_stopped.set()
        deadline = monotonic() + DEADLINE_SECONDS + self.pause_seconds
        for thread in self._threads:
            thread.join(max(deadline - monotonic(), 0))
        super().stop()

    def _begin_due(self) -> list[Thread]:
        most = self.MOST_AT_ONCE - len(self._threads)
        with Session(self.reading) as session:
            if most <= 0 or not self.has_due(session):
                return []
        with Session(self.engine) as session, session.begin():
            claims = self.claim_due(session, most)
        begun = [
            Thread(target=self._deliver_all, args=(claim,), name=self.NAME, daemon=True)
            for claim in claims
        ]
        for thread in begun:
            thread.start()
        return begun

    def _deliver_all(self, claim: Claim) -> None:
        """Send the messages of a destination until there is none, one fails, or its turn ends."""
        client = OutgoingClient.of(self.settings)
        ends = monotonic() + self.TURN_SECONDS
        try:
            delivery = self._next(claim)
            while delivery is not None:
                if self.is_stopped.is_set() or monotonic() > ends:
                    self._release(claim)
                    break
                delivery = self._send(claim, delivery, client)
        except SQLAlchemyError as error:
            # The claim ends by itself; what was sent and could not be noted is sent once more.
            said = self._about(claim, reason=type(error).__name__)
            self.LOG.warning("%s interrupted", self.NAME, extra=said)
        finally:
            client.close()

    def _next(self, claim: Claim) -> Delivery | None:
        try:
            with Session(self.engine) as session, session.begin():
                return self.next_delivery(claim, session)
        except UndecipherableError:
            self._note_failure(claim, None, Attempt(problem=_LOST_SECRET))
            return None

    def _release(self, claim: Claim) -> None:
        with Session(self.engine) as session, session.begin():
            self.release(claim, session)

    def _send(self, claim: Claim, delivery: Delivery, client: OutgoingClient) -> Delivery | None:
        """Send a message; return the next one, or None if this failed or was the last."""
        made = attempt(client, delivery.url, delivery.message, delivery.secrets, now=self.clock())
        if made.problem is not None:
            self._note_failure(claim, delivery, made)
            return None
        with Session(self.engine) as session, session.begin():
            self.record_delivered(claim, delivery, made, session)
            return self.next_delivery(claim, session)

    def _note_failure(self, claim: Claim, delivery: Delivery | None, made: Attempt) -> None:
        with Session(self.engine) as session, session.begin():
            failure = self.record_failure(claim, delivery, made, session)
        if failure is None:
            return
        said = self._about(claim, reason=made.problem, failures=failure.failures)
        if self.clock() - failure.failing_since >= FAILING_AFTER:
            self.LOG.error("%s failing", self.NAME, extra=said)
        else:
            self.LOG.warning(self.NOT_DELIVERED, extra=said)

    def _about(self, claim: Claim, **more: object) -> dict[str, object]:
        return {self.NUMBER: claim.destination_id, **more}
