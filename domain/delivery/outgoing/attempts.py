"""Attempts to deliver a message to a destination, their results, and the pauses after failures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.delivery.outgoing.signing import OutgoingMessage
from domain.delivery.queue import Backoff

#: Lifetime of a claim. It exceeds the deadline of a request (`web/outgoing/client.py`), so that a
#: claim outlives the request.
DESTINATION_CLAIM_LIFETIME = timedelta(seconds=25)
#: The first pause is short, because a single failure is not significant, and all other messages
#: wait. Pauses vary, so that destinations on one host do not recover at the same time.
DESTINATION_BACKOFF = Backoff(
    early=tuple(timedelta(seconds=each) for each in (1, 10, 20, 40, 60, 80, 100, 100, 100, 100)),
    first=timedelta(minutes=4),
    longest=timedelta(hours=3),
    jitter=0.2,
)
#: Status codes for errors in a single message. Other status codes concern the receiver as a whole:
#: its URL, its permissions or its state. A receiver that fails to process one message returns 500.
_MESSAGE_ERROR_STATUSES = frozenset(
    {400, 406, 409, 411, 412, 413, 414, 415, 422, 431, 451, 500, 501}
)


@dataclass(frozen=True, kw_only=True)
class ClaimedDelivery:
    """The next message for a destination, with the URL and the signing secrets."""

    entry_id: int
    url: str = field(repr=False)
    message: OutgoingMessage
    secrets: Sequence[str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DeliveryAttempt:
    """The result of an attempt to deliver a message."""

    #: Problem as a phrase that starts with a lowercase letter, or None after a success.
    problem: str | None
    #: Number of seconds in the Retry-After response header.
    retry_after_seconds: int | None = None
    #: Status code of the response, if there was one.
    status: int | None = None
    #: First bytes of the response.
    response: bytes = b""
    milliseconds: int | None = None

    @property
    def is_message_rejected(self) -> bool:
        """True if the receiver works, but rejects this message (RFC 9110 section 15)."""
        return self.status in _MESSAGE_ERROR_STATUSES


@dataclass(frozen=True, kw_only=True)
class DeliveryFailure:
    """The state of a destination after a failed attempt."""

    failures: int
    failing_since: datetime
    next_try_at: datetime
    #: True if the message is moved behind later messages.
    sets_aside: bool = False


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The rules for the delays between retries."""

    #: Random number from 0 to 1 that varies the pauses.
    share: float
    #: Time without a delivery after which a destination may be paused.
    patience: timedelta

    def compute_delay(self, attempt: DeliveryAttempt, failures: int) -> timedelta:
        """Return the pause before the next attempt, after a number of consecutive failures."""
        requested = timedelta(seconds=attempt.retry_after_seconds or 0)
        pause = DESTINATION_BACKOFF.compute_pause(failures, share=self.share, requested=requested)
        return min(pause, DESTINATION_BACKOFF.longest)
