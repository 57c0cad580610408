"""Deliveries that users send instead of a monitoring system: test alerts, and stored bodies again.

Pages and the API share these steps. They store through the kept connections.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from domain.alerts.deliveries.log import get_body
from domain.alerts.integrations import trials
from domain.alerts.integrations.replays import (
    Period,
    Refused,
    Replays,
    find_refused,
    get_refused,
    replay,
    stand_for,
    store_second_refusal,
)
from domain.alerts.integrations.trials import TestAlertResult
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.receiving.receivers import BodyTooLargeError, DisabledReceiverError
from domain.alerts.receiving.refusals import store_refusal
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.clock import start_stopwatch
from domain.database.locks import release_locks
from domain.errors import ConflictError, DomainError
from web.extensions import db
from web.http.errors import status_of
from web.services import now, reading, services, settings
from web.settings.policies import late_copies

#: The length of the column.
_LONGEST_SENDER = 64
_IS_OFF = "This integration is off; turn it on first."


@dataclass(frozen=True, kw_only=True)
class Resent:
    """A stored body that was sent again, as a new delivery."""

    delivery_id: int
    is_accepted: bool


def send_test(integration: IntegrationView, body: bytes, *, sender: str) -> TestAlertResult:
    """Store a test alert and explain it; raise the errors of a receiver."""
    if not integration.active:
        raise DisabledReceiverError(_IS_OFF)
    delivery = _test_delivery(integration, body, sender=sender)
    _end_transaction()
    return trials.send_test_alert(delivery, connection=services().connections, reading=reading())


def dry_run(integration: IntegrationView, body: bytes, *, sender: str) -> TestAlertResult:
    """Explain what a test alert would do, and store nothing; raise the errors of a receiver."""
    delivery = _test_delivery(integration, body, sender=sender)
    return trials.dry_run(delivery, connection=services().connections, reading=reading())


def send_again(integration: IntegrationView, delivery_id: int, *, sender: str) -> Resent:
    """Store the body of a delivery as a new one, accepted or refused.

    Raise NotFoundError if it is not stored, DisabledReceiverError if the integration is off.
    """
    if not integration.active:
        raise DisabledReceiverError(_IS_OFF)
    body = get_body(integration.id, delivery_id, session=db.session())
    earlier = get_refused(delivery_id, session=db.session())
    if earlier is not None:
        return _replay_one(integration, earlier, sender=sender)
    delivery, connection = _delivery(integration, body, sender=sender), services().connections
    _end_transaction()
    try:
        result = trials.send_again(
            delivery, earlier_id=delivery_id, connection=connection, reading=reading()
        )
    except DomainError as error:
        refused = store_refusal(delivery, status_of(error), error, connection=connection)
        stand_for(refused, delivery_id, connection=connection)
        return Resent(delivery_id=refused, is_accepted=False)
    return Resent(delivery_id=result.delivery_id, is_accepted=True)


def _replay_one(integration: IntegrationView, refused: Refused, *, sender: str) -> Resent:
    """Replay a refused delivery; log that it is refused again if it is."""
    delivery = _delivery(integration, refused.body, sender=sender)
    connection = services().connections
    _end_transaction()
    try:
        result = replay(refused, delivery, connection=connection, reading=reading())
    except ConflictError:
        raise
    except DomainError as error:
        status = status_of(error)
        store = partial(store_refusal, delivery, status, error, connection=connection)
        row = store_second_refusal(refused, store, connection=connection)
        return Resent(delivery_id=row, is_accepted=False)
    return Resent(delivery_id=result.delivery_id, is_accepted=True)


def replay_period(integration: IntegrationView, period: Period, *, sender: str) -> Replays:
    """Replay the refused deliveries of a period, the oldest first, at most MOST_REPLAYED.

    Raise DisabledReceiverError if the integration is off.
    """
    if not integration.active:
        raise DisabledReceiverError(_IS_OFF)
    ids, has_more = find_refused(integration.id, period, session=db.session())
    replayed, still_refused = [], []
    for delivery_id in ids:
        try:
            stored = _stored_after_all(integration, delivery_id, sender=sender)
        except DomainError:
            still_refused.append(delivery_id)
        else:
            replayed += [stored] if stored else []
    return Replays(
        replayed=tuple(replayed),
        still_refused=tuple(still_refused),
        next_after=ids[-1] if has_more else None,
    )


def _stored_after_all(integration: IntegrationView, delivery_id: int, *, sender: str) -> int | None:
    """Return the id of the new delivery, or None if somebody else was quicker.

    Raise the errors of a receiver.
    """
    refused = get_refused(delivery_id, session=db.session())
    _end_transaction()
    if refused is None:
        return None
    delivery, connection = (
        _delivery(integration, refused.body, sender=sender),
        services().connections,
    )
    with suppress(ConflictError):
        return replay(refused, delivery, connection=connection, reading=reading()).delivery_id
    return None


def _end_transaction() -> None:
    """End the session's transaction, which on SQLite would lock out the connection that stores.

    One that only reads would not see what is stored, nor could it write after that.
    """
    release_locks(db.session())


def _test_delivery(integration: IntegrationView, body: bytes, *, sender: str) -> InboundDelivery:
    limit = settings().alert_body_limit_bytes
    if len(body) > limit:
        raise BodyTooLargeError(f"The payload is larger than {limit} bytes.")
    return replace(_delivery(integration, body, sender=sender), is_test=True)


def _delivery(integration: IntegrationView, body: bytes, *, sender: str) -> InboundDelivery:
    """Return a delivery that is read with the integration's present mapping."""
    return InboundDelivery(
        project_id=integration.project_id,
        integration_id=integration.id,
        format=integration.type.name,
        sender=sender[:_LONGEST_SENDER],
        body=body,
        size=len(body),
        received_at=now(),
        stopwatch=start_stopwatch(),
        mapping=integration.mapping,
        late_copies=late_copies(settings()),
    )
