"""Actions that list, resend and replay deliveries, and that send test alerts.

Bodies that users send are stored through dedicated connections, as in the receivers.

A rejected delivery is marked as replayed in the transaction that stores its body again. Therefore,
a delivery cannot be replayed twice, even by several users at the same time, and is never marked
without being stored.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from time import perf_counter_ns

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts import deliveries
from domain.alerts.deliveries import Delivery, DeliveryFilter
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import get_format
from domain.alerts.handling.occurrences import list_affected_alerts
from domain.alerts.integrations import trial_alerts as trials
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.mapping_actions import (
    build_recognition_resource,
    recognize_with_answers,
)
from domain.alerts.integrations.mapping_types import DeliveryRecognition, DeliveryRecognitionBody
from domain.alerts.integrations.related_deliveries import find_related_deliveries
from domain.alerts.integrations.samples import MessageTexts
from domain.alerts.integrations.trial_alerts import (
    SELECTIONS_BY_NAME,
    DeliveredAlert,
    DeliveryDetail,
    DeliveryQuery,
    ReplayBody,
    ReplayResult,
    TestAlertBody,
    TestAlertResult,
)
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.listing.types import build_alert_url
from domain.alerts.parsing.incoming_alert import ParsedBody
from domain.alerts.receiving.receivers import (
    BodyTooLargeError,
    DisabledReceiverError,
    store_rejection,
)
from domain.alerts.storing.inbound_delivery import InboundDelivery, ReceiverContext
from domain.alerts.storing.intake import store_alerts_in_transaction
from domain.alerts.storing.intake_result import IntakeResult
from domain.core.database.locks import commit_to_release_locks
from domain.core.database.statements import StatementConnection
from domain.core.errors import ConflictError, DomainError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.projects.views import ProjectView
from models import Delivery as DeliveryRow

#: Maximum number of deliveries that are replayed in one request.
MAX_REPLAYED_DELIVERIES = 200
#: Lowest status code of responses after which senders retry.
_MIN_RETRIED_STATUS = 500
#: SQL condition with a literal. With a parameter, Postgres would not use the index on rejected
#: deliveries.
_IS_REJECTED = text("deliveries.status_code >= 300")
#: Maximum length of the sender column.
_MAX_SENDER_LENGTH = 64
#: Sender of deliveries from the command line.
_COMMAND_LINE_SENDER = "command line"


@dataclass(frozen=True, kw_only=True)
class _RejectedDelivery:
    """A rejected delivery that can be replayed."""

    id: int
    received_at: datetime
    body: bytes


def _find_rejected_ids(
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
            _IS_REJECTED,
            DeliveryRow.id > period.after,
            DeliveryRow.status_code < _MIN_RETRIED_STATUS,
            DeliveryRow.replayed_as.is_(None),
            DeliveryRow.body.is_not(None),
            DeliveryRow.received_at >= period.since,
            DeliveryRow.received_at <= (period.until or now),
        )
        .order_by(DeliveryRow.id)
        .limit(MAX_REPLAYED_DELIVERIES + 1)
    )
    ids: Sequence[int] = session.scalars(statement).all()
    return tuple(ids[:MAX_REPLAYED_DELIVERIES]), len(ids) > MAX_REPLAYED_DELIVERIES


def _find_rejected_delivery(delivery_id: int, *, session: Session) -> _RejectedDelivery | None:
    """Return a rejected delivery with its body, or None if it was deleted or replayed."""
    row = session.execute(
        select(DeliveryRow.id, DeliveryRow.received_at, DeliveryRow.body).where(
            DeliveryRow.id == delivery_id, _IS_REJECTED, DeliveryRow.replayed_as.is_(None)
        )
    ).first()
    if row is None or row.body is None:
        return None
    return _RejectedDelivery(**get_column_values(row, _RejectedDelivery))


_MARK_AS_REPLAYED = (
    update(DeliveryRow)
    .where(DeliveryRow.id == bindparam("refused"), DeliveryRow.replayed_as.is_(None))
    .values(replayed_as=bindparam("stored_as"))
    .returning(DeliveryRow.id)
)


def _replay_body(
    refused: _RejectedDelivery,
    delivery: InboundDelivery,
    *,
    connection: StatementConnection,
    reading: ParserSettings,
) -> IntakeResult:
    """Store the body of a rejected delivery as `delivery`.

    Times that the sender omitted are set to the time at which the delivery first arrived. Raise the
    errors that a receiver raises, or ConflictError if the delivery has already been replayed.
    """
    parsed = get_format(delivery.format).read(
        delivery.body,
        now=refused.received_at,
        reading=reading,
        mapping=delivery.mapping,
    )
    said = f"Replayed from delivery {refused.id}, which was rejected."
    noted = replace(parsed, parse_warnings=(said, *parsed.parse_warnings))
    return connection.run_transaction(lambda: _store_replay(refused, noted, delivery, connection))


def _store_replay(
    refused: _RejectedDelivery,
    parsed: ParsedBody,
    delivery: InboundDelivery,
    connection: StatementConnection,
) -> IntakeResult:
    # The time of the first arrival ensures that alerts that have recovered since then stay
    # resolved.
    first = replace(delivery, first_received_at=refused.received_at)
    result = store_alerts_in_transaction(parsed, first, connection=connection)
    _mark_as_replayed(refused.id, result.delivery_id, connection)
    return result


def _store_repeated_rejection(
    refused: _RejectedDelivery, store: Callable[[], int], *, connection: StatementConnection
) -> int:
    """Call `store` to store a repeated rejection, and return the ID of the new delivery.

    The earlier delivery is marked as replayed, since the new delivery replaces it. Otherwise, the
    same body could be replayed twice.
    """

    def store_and_mark_as_replayed() -> int:
        stored = store()
        _mark_as_replayed(refused.id, stored, connection)
        return stored

    return connection.run_transaction(store_and_mark_as_replayed)


def _mark_as_replayed(refused_id: int, stored_as: int, connection: StatementConnection) -> None:
    if not connection.execute_statement(
        _MARK_AS_REPLAYED, {"refused": refused_id, "stored_as": stored_as}
    ):
        raise ConflictError("Another user has already replayed this delivery.")


@read_action("alert_deliveries.index", plural="deliveries")
def list_deliveries(
    work: UnitOfWork, project: ProjectView, integration_id: int, query: DeliveryQuery
) -> ListPage[Delivery]:
    """List the deliveries of an alert integration, newest first."""
    wanted = DeliveryFilter(
        integration_id=get_receiving_integration(work, project, integration_id).id,
        show=SELECTIONS_BY_NAME[query.show],
        status_code=query.status,
        period=query.period,
    )
    page = deliveries.list_deliveries(wanted, query.requested_range, session=work.session)
    return ListPage.from_keyset_page(page, lambda delivery: delivery)


@read_action("alert_deliveries.show")
def show_delivery(
    work: UnitOfWork, project: ProjectView, integration_id: int, delivery_id: int
) -> DeliveryDetail:
    """Show a delivery with its body and its alerts."""
    integration = get_receiving_integration(work, project, integration_id)
    row = deliveries.get_delivery_row(integration.id, delivery_id, session=work.session)
    alerts = [
        DeliveredAlert(
            **{**vars(each), "action": each.action.value},
            web_url=build_alert_url(project.path, each.iid, work.settings.base_url),
        )
        for each in list_affected_alerts(row.id, session=work.session)
    ]
    return DeliveryDetail.model_validate({**vars(row), "alerts": alerts})


@read_action("alert_deliveries.recognize")
def recognize_deliveries(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: DeliveryRecognitionBody
) -> DeliveryRecognition:
    """Identify the tool that sent stored deliveries, and propose a type and a mapping."""
    integration = get_receiving_integration(work, project, integration_id)
    ids = {"sample": body.sample, "repeat": body.sample_repeat, "recovery": body.sample_recovery}
    texts = {
        name: deliveries.get_delivery_text(integration.id, delivery_id, session=work.session)
        for name, delivery_id in ids.items()
        if delivery_id is not None
    }
    found = recognize_with_answers(
        MessageTexts(**texts), body.answers, now=work.now, reading=work.policy(ParserSettings)
    )
    related = find_related_deliveries(work, project, integration_id, found.messages.firing)
    recognition = build_recognition_resource(found)
    return DeliveryRecognition.model_construct(**vars(recognition), related=related)


@action("alert_deliveries.resend")
def resend_inbound_delivery(
    work: UnitOfWork, project: ProjectView, integration_id: int, delivery_id: int
) -> DeliveryDetail:
    """Reprocess the body of a delivery with the current mapping.

    Return the new delivery, which may be rejected. Raise NotFoundError if the body is not stored,
    and DisabledReceiverError if the integration is turned off.
    """
    integration = _get_active_integration(work, project, integration_id)
    body = deliveries.get_delivery_body(integration.id, delivery_id, session=work.session)
    earlier = _find_rejected_delivery(delivery_id, session=work.session)
    if earlier is not None:
        new_id = _replay_delivery(work, integration, earlier)
    else:
        new_id = _store_as_new_delivery(work, integration, delivery_id, body)
    return show_delivery(work, project, integration_id, new_id)


@action("alert_deliveries.replay")
def replay_deliveries(
    work: UnitOfWork, project: ProjectView, integration_id: int, body: ReplayBody
) -> ReplayResult:
    """Reprocess rejected deliveries from a period with the current mapping.

    At most MAX_REPLAYED_DELIVERIES deliveries are processed, oldest first. Raise
    DisabledReceiverError if the integration is turned off.
    """
    integration = _get_active_integration(work, project, integration_id)
    ids, has_more = _find_rejected_ids(integration.id, body, session=work.session, now=work.now)
    replayed, still_refused = [], []
    for delivery_id in ids:
        try:
            stored = _replay_delivery_once(work, integration, delivery_id)
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
def send_test_alert_or_preview(
    work: UnitOfWork, project: ProjectView, integration_id: int, test: TestAlertBody
) -> TestAlertResult:
    """Send a test alert, or preview its effects.

    Raise the errors that a receiver raises.
    """
    integration = get_receiving_integration(work, project, integration_id)
    payload = test.payload
    if payload is None:
        reading = work.policy(ParserSettings)
        payload = integration.build_example_body(now=work.now, reading=reading)
    means, body = work.policy(ReceiverContext), payload.encode("utf-8", "surrogatepass")
    if not test.dry_run:
        _check_integration_active(integration)
    limit = means.body_limit(integration.format)
    if len(body) >= limit:
        raise BodyTooLargeError(f"The payload must be smaller than {limit} bytes.")
    delivery, reading = _build_delivery(work, integration, body), work.policy(ParserSettings)
    delivery = replace(delivery, is_test=True)
    if test.dry_run:
        return trials.preview_test_alert(delivery, connection=means.connection, reading=reading)
    _end_transaction(work)
    return trials.send_test_alert(delivery, connection=means.connection, reading=reading)


def _get_active_integration(
    work: UnitOfWork, project: ProjectView, integration_id: int
) -> IntegrationView:
    integration = get_receiving_integration(work, project, integration_id)
    _check_integration_active(integration)
    return integration


def _check_integration_active(integration: IntegrationView) -> None:
    if not integration.active:
        raise DisabledReceiverError("This integration is turned off. Turn it on first.")


def _store_as_new_delivery(
    work: UnitOfWork, integration: IntegrationView, delivery_id: int, body: bytes
) -> int:
    """Store the body of an accepted delivery as a new delivery, and return its ID.

    The new delivery may be rejected.
    """
    means, delivery = work.policy(ReceiverContext), _build_delivery(work, integration, body)
    _end_transaction(work)
    try:
        result = trials.store_resent_body(
            delivery,
            earlier_id=delivery_id,
            connection=means.connection,
            reading=work.policy(ParserSettings),
        )
    except DomainError as error:
        status = means.status_of(error)
        refused = store_rejection(delivery, status, error, connection=means.connection)
        _mark_as_replayed(refused, delivery_id, means.connection)
        return refused
    return result.delivery_id


def _replay_delivery(
    work: UnitOfWork, integration: IntegrationView, refused: _RejectedDelivery
) -> int:
    """Replay a rejected delivery, and return the ID of the new delivery.

    If the body is rejected again, the rejection is logged as the new delivery.
    """
    means, delivery = work.policy(ReceiverContext), _build_delivery(work, integration, refused.body)
    connection = means.connection
    _end_transaction(work)
    try:
        result = _replay_body(
            refused, delivery, connection=connection, reading=work.policy(ParserSettings)
        )
    except ConflictError:
        raise
    except DomainError as error:
        status = means.status_of(error)
        store = partial(store_rejection, delivery, status, error, connection=connection)
        return _store_repeated_rejection(refused, store, connection=connection)
    return result.delivery_id


def _replay_delivery_once(
    work: UnitOfWork, integration: IntegrationView, delivery_id: int
) -> int | None:
    """Replay a delivery, and return the ID of the new delivery.

    Return None if the delivery was already replayed. Raise the errors that a receiver raises.
    """
    refused = _find_rejected_delivery(delivery_id, session=work.session)
    _end_transaction(work)
    if refused is None:
        return None
    delivery, reading = (
        _build_delivery(work, integration, refused.body),
        work.policy(ParserSettings),
    )
    connection = work.policy(ReceiverContext).connection
    with suppress(ConflictError):
        return _replay_body(refused, delivery, connection=connection, reading=reading).delivery_id
    return None


def _end_transaction(work: UnitOfWork) -> None:
    """End the session's transaction before another connection stores a delivery.

    On SQLite, an open transaction would block the other connection. If the transaction has only
    read data, it would not see the new delivery, and could no longer write.
    """
    commit_to_release_locks(work.session)


def _build_delivery(work: UnitOfWork, integration: IntegrationView, body: bytes) -> InboundDelivery:
    """Return a delivery that is parsed with the current mapping of the integration."""
    return InboundDelivery(
        project_id=integration.project_id,
        integration_id=integration.id,
        format=integration.type.name,
        sender=(work.actor.name or _COMMAND_LINE_SENDER)[:_MAX_SENDER_LENGTH],
        body=body,
        size=len(body),
        received_at=work.now,
        began_ns=perf_counter_ns(),
        mapping=integration.mapping,
        monitor_id=integration.monitor_id,
        late_copies=work.policy(ReceiverContext).late_copies,
    )
