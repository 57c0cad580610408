"""Replays refused deliveries, after what refused them was changed.

A delivery is marked in the transaction that stores its body again, so none is replayed twice, by
however many people at once, and none is marked that was not stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import format_named
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import receive_within
from domain.alerts.storing.intake_result import IntakeResult
from domain.database.statements import KeptConnection
from domain.errors import ConflictError
from models import Delivery

#: So many are looked at in one request.
MOST_REPLAYED = 200
#: Senders send again what was answered with these.
_RETRIED_BY_SENDERS = 500
#: As literals: with a parameter Postgres would not use the index of refused deliveries.
_IS_REFUSED = text("deliveries.status_code >= 300")


@dataclass(frozen=True, kw_only=True)
class Period:
    """Which deliveries to replay: those that arrived from one time until another."""

    since: datetime
    until: datetime
    #: Only those that are newer than this one, to go on after the last.
    after: int = 0


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A refused delivery that can be replayed."""

    id: int
    received_at: datetime
    body: bytes


def find_refused(
    integration_id: int, period: Period, *, session: Session
) -> tuple[tuple[int, ...], bool]:
    """Return the ids of refused deliveries with a body, the oldest first, and if there are more.

    What was replayed already is left out, and what the sender sends again by itself.
    """
    statement = (
        select(Delivery.id)
        .where(
            Delivery.integration_id == integration_id,
            _IS_REFUSED,
            Delivery.id > period.after,
            Delivery.status_code < _RETRIED_BY_SENDERS,
            Delivery.replayed_as.is_(None),
            Delivery.body.is_not(None),
            Delivery.received_at >= period.since,
            Delivery.received_at <= period.until,
        )
        .order_by(Delivery.id)
        .limit(MOST_REPLAYED + 1)
    )
    ids: Sequence[int] = session.scalars(statement).all()
    return tuple(ids[:MOST_REPLAYED]), len(ids) > MOST_REPLAYED


def get_refused(delivery_id: int, *, session: Session) -> Refused | None:
    """Return a refused delivery with its body, or None if it is gone or was replayed."""
    row = session.execute(
        select(Delivery.id, Delivery.received_at, Delivery.body).where(
            Delivery.id == delivery_id, _IS_REFUSED, Delivery.replayed_as.is_(None)
        )
    ).first()
    if row is None or row.body is None:
        return None
    return Refused(id=row.id, received_at=row.received_at, body=row.body)


_MARK = (
    update(Delivery)
    .where(Delivery.id == bindparam("refused"), Delivery.replayed_as.is_(None))
    .values(replayed_as=bindparam("stored_as"))
    .returning(Delivery.id)
)


def replay(
    refused: Refused, delivery: InboundDelivery, *, connection: KeptConnection, reading: Reading
) -> IntakeResult:
    """Store the body of a refused delivery as `delivery`; raise the errors of a receiver.

    Times that the sender left out are those of the first arrival. Raise ConflictError if somebody
    else has replayed it meanwhile.
    """
    parsed = format_named(delivery.format).read(
        delivery.body,
        now=refused.received_at,
        reading=reading,
        mapping=delivery.mapping,
    )
    said = f"Replayed: first received as delivery {refused.id}, and refused."
    noted = replace(parsed, parse_warnings=(said, *parsed.parse_warnings))
    return connection.transact(lambda: _store(refused, noted, delivery, connection))


def _store(
    refused: Refused, parsed: ParsedBody, delivery: InboundDelivery, connection: KeptConnection
) -> IntakeResult:
    # What recovered since it arrived is over.
    first = replace(delivery, first_received_at=refused.received_at)
    result = receive_within(parsed, first, connection=connection)
    _mark(refused.id, result.delivery_id, connection)
    return result


def store_second_refusal(
    refused: Refused, store: Callable[[], int], *, connection: KeptConnection
) -> int:
    """Log that a delivery was refused again by `store`, and return the id of the new one.

    From now on the new one stands for the body: else it would be replayed twice.
    """

    def work() -> int:
        stored = store()
        _mark(refused.id, stored, connection)
        return stored

    return connection.transact(work)


def _mark(refused_id: int, stored_as: int, connection: KeptConnection) -> None:
    if not connection.all(_MARK, {"refused": refused_id, "stored_as": stored_as}):
        message = "Somebody else has replayed this delivery."
        raise ConflictError(message)


def stand_for(refused_id: int, accepted_id: int, *, connection: KeptConnection) -> None:
    """Keep a refused copy of an accepted delivery from being replayed."""
    _mark(refused_id, accepted_id, connection)
