"""Actions on deliveries: list, resend and replay them, and send test alerts.

Bodies that users send are stored through dedicated connections, as in the receivers.

A rejected delivery is marked in the transaction that stores its body again. Therefore, it cannot be
replayed twice, even by several users at the same time, and it is never marked without being stored.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import perf_counter_ns

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.orm import Session

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts import deliveries
from domain.alerts.deliveries import Delivery, DeliveryFilter
from domain.alerts.formats.base import Reading
from domain.alerts.formats.registry import format_named
from domain.alerts.handling.occurrences import touched_alerts
from domain.alerts.integrations import trials
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.trials import (
    SELECTIONS,
    DeliveredAlert,
    DeliveryDetail,
    DeliveryQuery,
    ReplayBody,
    ReplayResult,
    TestAlertBody,
    TestAlertResult,
)
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.listing.types import alert_url
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.receiving.receivers import (
    BodyTooLargeError,
    DisabledReceiverError,
    store_refusal,
)
from domain.alerts.storing.inbound_delivery import InboundDelivery, Receiving
from domain.alerts.storing.intake import receive_within
from domain.alerts.storing.intake_result import IntakeResult
from domain.core.database.locks import release_locks
from domain.core.database.statements import KeptConnection
from domain.core.errors import ConflictError, DomainError
from domain.core.types.base import Found, columns_of
from domain.projects.views import ProjectView
from models import Delivery as DeliveryRow

#: Maximum number of deliveries that are replayed in one request.
MOST_REPLAYED = 200
#: Lowest status code after which senders retry.
_RETRIED_BY_SENDERS = 500
#: A literal, since Postgres would not use the index of rejected deliveries with a parameter.
_IS_REFUSED = text("deliveries.status_code >= 300")
#: Length of the column for the sender.
_LONGEST_SENDER = 64
#: Sender of deliveries from the command line.
_OPERATOR = "command line"


@dataclass(frozen=True, kw_only=True)
class _Refused:
    """A rejected delivery that can be replayed."""

    id: int
    received_at: datetime
    body: bytes


def _find_refused(
    integration_id: int, period: ReplayBody, *, session: Session, now: datetime
) -> tuple[tuple[int, ...], bool]:
    """Return the IDs of rejected deliveries with a body, oldest first, and whether there are more.

    Deliveries that were already replayed are excluded, as are deliveries that senders retry
    themselves.
    """
    statement = (
        select(DeliveryRow.id)
        .where(
            DeliveryRow.integration_id == integration_id,
            _IS_REFUSED,
            DeliveryRow.id > period.after,
            DeliveryRow.status_code < _RETRIED_BY_SENDERS,
            DeliveryRow.replayed_as.is_(None),
            DeliveryRow.body.is_not(None),
            DeliveryRow.received_at >= period.since,
            DeliveryRow.received_at <= (period.until or now),
        )
        .order_by(DeliveryRow.id)
        .limit(MOST_REPLAYED + 1)
    )
    ids: Sequence[int] = session.scalars(statement).all()
    return tuple(ids[:MOST_REPLAYED]), len(ids) > MOST_REPLAYED


def _get_refused(delivery_id: int, *, session: Session) -> _Refused | None:
    """Return a rejected delivery with its body, or None if it was deleted or replayed."""
    row = session.execute(
        select(DeliveryRow.id, DeliveryRow.received_at, DeliveryRow.body).where(
            DeliveryRow.id == delivery_id, _IS_REFUSED, DeliveryRow.replayed_as.is_(None)
        )
    ).first()
    if row is None or row.body is None:
        return None
    return _Refused(**columns_of(row, _Refused))


_MARK = (
    update(DeliveryRow)
    .where(DeliveryRow.id == bindparam("refused"), DeliveryRow.replayed_as.is_(None))
    .values(replayed_as=bindparam("stored_as"))
    .returning(DeliveryRow.id)
)


def _replay(
    refused: _Refused, delivery: InboundDelivery, *, connection: KeptConnection, reading: Reading
) -> IntakeResult:
    """Store the body of a rejected delivery as `delivery`.

    Times that the sender omitted are set to the time of the first arrival. Raise the errors of a
    receiver, or ConflictError if the delivery has been replayed in the meantime.
    """
    parsed = format_named(delivery.format).read(
        delivery.body,
        now=refused.received_at,
        reading=reading,
        mapping=delivery.mapping,
    )
    said = f"Replayed from delivery {refused.id}, which was rejected."
    noted = replace(parsed, parse_warnings=(said, *parsed.parse_warnings))
    return connection.transact(lambda: _store(refused, noted, delivery, connection))


def _store(
    refused: _Refused, parsed: ParsedBody, delivery: InboundDelivery, connection: KeptConnection
) -> IntakeResult:
    # With the time of the first arrival, alerts that have recovered since then stay resolved.
    first = replace(delivery, first_received_at=refused.received_at)
    result = receive_within(parsed, first, connection=connection)
    _mark(refused.id, result.delivery_id, connection)
    return result


def _store_second_refusal(
    refused: _Refused, store: Callable[[], int], *, connection: KeptConnection
) -> int:
    """Store a repeated rejection with `store`, and return the ID of the new delivery.

    The earlier delivery is marked as replayed, since the new one replaces it. Otherwise, the same
    body could be replayed twice.
    """

    def work() -> int:
        stored = store()
        _mark(refused.id, stored, connection)
        return stored

    return connection.transact(work)


def _mark(refused_id: int, stored_as: int, connection: KeptConnection) -> None:
    if not connection.all(_MARK, {"refused": refused_id, "stored_as": stored_as}):
        raise ConflictError("Another user has already replayed this delivery.")


@question("alert_deliveries.index", plural="deliveries")
def list_deliveries(
    work: Work, project: ProjectView, integration_id: int, query: DeliveryQuery
) -> Found[Delivery]:
    """List the deliveries of an alert integration, newest first."""
    wanted = DeliveryFilter(
        integration_id=get_receiver(work, project, integration_id).id,
        show=SELECTIONS[query.show],
        status_code=query.status,
    )
    page = deliveries.list_deliveries(wanted, query.part, session=work.session)
    return Found.of_page(page, lambda delivery: delivery)


@question("alert_deliveries.show")
def show_delivery(
    work: Work, project: ProjectView, integration_id: int, delivery_id: int
) -> DeliveryDetail:
    """Show a delivery with its body and its alerts."""
    integration = get_receiver(work, project, integration_id)
    row = deliveries.get_row(integration.id, delivery_id, session=work.session)
    alerts = [
        DeliveredAlert(
            **{**vars(each), "action": each.action.value},
            web_url=alert_url(project.path, each.iid, work.settings.base_url),
        )
        for each in touched_alerts(row.id, session=work.session)
    ]
    return DeliveryDetail.model_validate({**vars(row), "alerts": alerts})


@action("alert_deliveries.resend")
def resend(
    work: Work, project: ProjectView, integration_id: int, delivery_id: int
) -> DeliveryDetail:
    """Process the body of a delivery again, with the current mapping.

    Return the new delivery, which may be rejected. Raise NotFoundError if the body is not stored,
    and DisabledReceiverError if the integration is turned off.
    """
    integration = _get_active(work, project, integration_id)
    body = deliveries.get_body(integration.id, delivery_id, session=work.session)
    earlier = _get_refused(delivery_id, session=work.session)
    if earlier is not None:
        new_id = _replay_one(work, integration, earlier)
    else:
        new_id = _store_again(work, integration, delivery_id, body)
    return show_delivery(work, project, integration_id, new_id)


@action("alert_deliveries.replay")
def replay_deliveries(
    work: Work, project: ProjectView, integration_id: int, body: ReplayBody
) -> ReplayResult:
    """Process the rejected deliveries of a period again, with the current mapping.

    At most MOST_REPLAYED deliveries are processed, oldest first. Raise DisabledReceiverError if the
    integration is turned off.
    """
    integration = _get_active(work, project, integration_id)
    ids, has_more = _find_refused(integration.id, body, session=work.session, now=work.now)
    replayed, still_refused = [], []
    for delivery_id in ids:
        try:
            stored = _stored_after_all(work, integration, delivery_id)
        except DomainError:
            still_refused.append(delivery_id)
        else:
            replayed += [stored] if stored else []
    return ReplayResult(
        replayed=tuple(replayed),
        still_refused=tuple(still_refused),
        next_after=ids[-1] if has_more else None,
    )


@action("alert_integrations.test")
def send_test(
    work: Work, project: ProjectView, integration_id: int, test: TestAlertBody
) -> TestAlertResult:
    """Send a test alert, or explain what it would do.

    Raise the errors of a receiver.
    """
    integration = get_receiver(work, project, integration_id)
    payload = test.payload
    if payload is None:
        payload = integration.format.example_body(now=work.now)
    means, body = work.policy(Receiving), payload.encode("utf-8", "surrogatepass")
    if not test.dry_run:
        _check_active(integration)
    limit = means.body_limit(integration.format)
    if len(body) >= limit:
        raise BodyTooLargeError(f"The payload must be smaller than {limit} bytes.")
    delivery, reading = _delivery(work, integration, body), work.policy(Reading)
    delivery = replace(delivery, is_test=True)
    if test.dry_run:
        return trials.dry_run(delivery, connection=means.connection, reading=reading)
    _end_transaction(work)
    return trials.send_test_alert(delivery, connection=means.connection, reading=reading)


def _get_active(work: Work, project: ProjectView, integration_id: int) -> IntegrationView:
    integration = get_receiver(work, project, integration_id)
    _check_active(integration)
    return integration


def _check_active(integration: IntegrationView) -> None:
    if not integration.active:
        raise DisabledReceiverError("This integration is turned off. Turn it on first.")


def _store_again(work: Work, integration: IntegrationView, delivery_id: int, body: bytes) -> int:
    """Store the body of an accepted delivery as a new delivery, and return its ID.

    The new delivery may be rejected.
    """
    means, delivery = work.policy(Receiving), _delivery(work, integration, body)
    _end_transaction(work)
    try:
        result = trials.send_again(
            delivery,
            earlier_id=delivery_id,
            connection=means.connection,
            reading=work.policy(Reading),
        )
    except DomainError as error:
        status = means.status_of(error)
        refused = store_refusal(delivery, status, error, connection=means.connection)
        _mark(refused, delivery_id, means.connection)
        return refused
    return result.delivery_id


def _replay_one(work: Work, integration: IntegrationView, refused: _Refused) -> int:
    """Replay a rejected delivery, and return the ID of the new delivery.

    If the body is rejected again, the rejection is logged as the new delivery.
    """
    means, delivery = work.policy(Receiving), _delivery(work, integration, refused.body)
    connection = means.connection
    _end_transaction(work)
    try:
        result = _replay(refused, delivery, connection=connection, reading=work.policy(Reading))
    except ConflictError:
        raise
    except DomainError as error:
        status = means.status_of(error)
        store = partial(store_refusal, delivery, status, error, connection=connection)
        return _store_second_refusal(refused, store, connection=connection)
    return result.delivery_id


def _stored_after_all(work: Work, integration: IntegrationView, delivery_id: int) -> int | None:
    """Replay a delivery and return the ID of the new one, or None if it was already replayed.

    Raise the errors of a receiver.
    """
    refused = _get_refused(delivery_id, session=work.session)
    _end_transaction(work)
    if refused is None:
        return None
    delivery, reading = _delivery(work, integration, refused.body), work.policy(Reading)
    connection = work.policy(Receiving).connection
    with suppress(ConflictError):
        return _replay(refused, delivery, connection=connection, reading=reading).delivery_id
    return None


def _end_transaction(work: Work) -> None:
    """End the session's transaction before another connection stores a delivery.

    On SQLite, an open transaction would block that connection. A transaction that has only read
    would not see the new delivery, and could not write any more.
    """
    release_locks(work.session)


def _delivery(work: Work, integration: IntegrationView, body: bytes) -> InboundDelivery:
    """Return a delivery that is parsed with the current mapping of the integration."""
    return InboundDelivery(
        project_id=integration.project_id,
        integration_id=integration.id,
        format=integration.type.name,
        sender=(work.actor.name or _OPERATOR)[:_LONGEST_SENDER],
        body=body,
        size=len(body),
        received_at=work.now,
        began_ns=perf_counter_ns(),
        mapping=integration.mapping,
        monitor_id=integration.monitor_id,
        late_copies=work.policy(Receiving).late_copies,
    )
