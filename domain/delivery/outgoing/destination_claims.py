"""Assigns the messages for a destination to one worker at a time.

A worker claims a destination for a limited time, and renews the claim before each message. Each new
claim has a higher number, so the results of a worker that lost its claim do not change the
destination.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.due_time_sql import Moment
from domain.delivery.outgoing.signing import OutgoingMessage
from models.destination import Destination

#: Lifetime of a claim. It exceeds the deadline of a request (`web/outgoing/client.py`), so that a
#: claim outlives the request.
CLAIM_LIFETIME = timedelta(seconds=25)

#: Status codes for errors in a single message. Other status codes concern the receiver as a whole:
#: its URL, its permissions or its state. A receiver that fails to process one message returns 500.
_MESSAGE_ERROR_STATUSES = frozenset(
    {400, 406, 409, 411, 412, 413, 414, 415, 422, 431, 451, 500, 501}
)

DestinationTable = type[Destination]
#: Pauses after the first failures in seconds. With the maximum variation, the longest pause is two
#: minutes. The first pause is short, because a single failure is not significant, and all other
#: messages wait.
_FIRST_PAUSES_SECONDS = (1, 10, 20, 40, 60, 80, 100, 100, 100, 100)
_MAX_PAUSE_SECONDS = 3 * 3600
#: Fraction by which pauses vary in both directions, so that destinations on one host do not recover
#: at the same time.
_JITTER = 0.2
_MAX_DOUBLINGS = 10
MAX_DESTINATION_PAUSE = timedelta(seconds=_MAX_PAUSE_SECONDS)
_MAX_FIRST_PAUSE_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class DestinationClaim:
    """A worker's claim to deliver to a destination."""

    destination_id: int
    number: int


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


def list_due_conditions(kind: DestinationTable, now: Moment) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for destinations to which a worker may deliver."""
    is_free = or_(kind.claimed_until.is_(None), kind.claimed_until < now)
    may_try = or_(kind.next_try_at.is_(None), kind.next_try_at <= now)
    return kind.paused_at.is_(None), is_free, may_try


def list_claim_conditions(
    kind: DestinationTable, claim: DestinationClaim
) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that select a claim's destination while the claim is valid."""
    return kind.id == claim.destination_id, kind.claim == claim.number


def claim_destinations(
    kind: DestinationTable, found: Select[int], *, session: Session, now: datetime
) -> Sequence[DestinationClaim]:
    """Claim the destinations that a query returns, unless other workers have claimed them."""
    # A fixed order prevents deadlocks between workers.
    claims = [
        _claim_destination(kind, each, session, now) for each in sorted(session.scalars(found))
    ]
    return [each for each in claims if each is not None]


def _claim_destination(
    kind: DestinationTable, destination_id: int, session: Session, now: datetime
) -> DestinationClaim | None:
    number = session.scalar(
        build_bulk_update(kind)
        # If another worker was faster, PostgreSQL checks the conditions again.
        .where(kind.id == destination_id, *list_due_conditions(kind, now))
        .values(claim=kind.claim + 1, claimed_until=now + CLAIM_LIFETIME)
        .returning(kind.claim)
    )
    return (
        None if number is None else DestinationClaim(destination_id=destination_id, number=number)
    )


def release_destination_claim(
    kind: DestinationTable, claim: DestinationClaim, *, session: Session
) -> None:
    """Release a claim, so that other workers need not wait until it expires."""
    _update_destination(kind, claim, session, claimed_until=None)


def record_success(
    kind: DestinationTable, claim: DestinationClaim, *, session: Session, now: datetime
) -> None:
    """Record that a destination accepted a message."""
    _update_destination(
        kind,
        claim,
        session,
        last_delivered_at=now,
        tries=0,
        failing_since=None,
        last_error=None,
        next_try_at=None,
    )


def _update_destination(
    kind: DestinationTable, claim: DestinationClaim, session: Session, **values: Any
) -> None:
    session.execute(
        build_bulk_update(kind).where(*list_claim_conditions(kind, claim)).values(**values)
    )


def record_failure(
    kind: DestinationTable,
    claim: DestinationClaim,
    attempt: DeliveryAttempt,
    *,
    pause: Callable[[int], timedelta],
    session: Session,
    now: datetime,
) -> DeliveryFailure | None:
    """Schedule the next attempt and release the claim, or return None if the claim was lost.

    The problem in `attempt` is shown to users. `pause` is called with the number of failures since
    the last success.
    """
    tries = session.scalar(
        select(kind.tries).where(*list_claim_conditions(kind, claim)).with_for_update()
    )
    if tries is None:
        return None
    next_try_at = now + pause(tries + 1)
    failing_since = session.scalars(
        build_bulk_update(kind)
        .where(*list_claim_conditions(kind, claim))
        .values(
            tries=tries + 1,
            failing_since=func.coalesce(kind.failing_since, now),
            last_failed_at=now,
            last_error=attempt.problem,
            next_try_at=next_try_at,
            claimed_until=None,
        )
        .returning(kind.failing_since)
    ).one()
    return DeliveryFailure(
        failures=tries + 1, failing_since=failing_since or now, next_try_at=next_try_at
    )


def compute_retry_delay(
    failures: int, *, share: float, retry_after_seconds: int | None = None
) -> timedelta:
    """Return the pause after a number of consecutive failures.

    `share`, a number from 0 to 1, varies the pause. If the destination requests a longer pause
    (Retry-After), that pause is used, up to a limit. The limit is two minutes for the first ten
    failures, and three hours after that.
    """
    most = (
        _MAX_FIRST_PAUSE_SECONDS if failures <= len(_FIRST_PAUSES_SECONDS) else _MAX_PAUSE_SECONDS
    )
    varied = _get_base_delay_seconds(failures) * (1 - _JITTER + 2 * _JITTER * share)
    return timedelta(seconds=min(max(varied, retry_after_seconds or 0), most))


def _get_base_delay_seconds(failures: int) -> int:
    if failures <= len(_FIRST_PAUSES_SECONDS):
        return _FIRST_PAUSES_SECONDS[max(failures, 1) - 1]
    doublings = min(failures - len(_FIRST_PAUSES_SECONDS), _MAX_DOUBLINGS)
    return int(min(_MAX_FIRST_PAUSE_SECONDS * 2**doublings, _MAX_PAUSE_SECONDS))
