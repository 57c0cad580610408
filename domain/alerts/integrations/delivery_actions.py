"""What can be done with deliveries: read them, send them again, and try what one would do.

What users send themselves is stored through the kept connections, as the receivers do.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.deliveries import log
from domain.alerts.deliveries.log import DeliveryFilter
from domain.alerts.deliveries.types import Delivery
from domain.alerts.formats.base import Reading
from domain.alerts.handling.occurrences import touched_alerts
from domain.alerts.integrations import trials
from domain.alerts.integrations.delivery_types import (
    SELECTIONS,
    DeliveredAlert,
    DeliveryDetail,
    DeliveryQuery,
    ReplayBody,
    ReplayResult,
    TestAlertBody,
    TestAlertResult,
)
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.replays import (
    Period,
    Refused,
    find_refused,
    get_refused,
    replay,
    stand_for,
    store_second_refusal,
)
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.listing.types import alert_url
from domain.alerts.receiving.receivers import BodyTooLargeError, DisabledReceiverError
from domain.alerts.receiving.refusals import store_refusal
from domain.alerts.storing.inbound_delivery import InboundDelivery, Receiving
from domain.clock import start_stopwatch
from domain.database.locks import release_locks
from domain.database.paging import Slice, read_cursor
from domain.errors import ConflictError, DomainError
from domain.projects.views import ProjectView
from domain.types.base import Found

#: The length of the column.
_LONGEST_SENDER = 64
#: As whom the operator sends.
_OPERATOR = "command line"


@question("alert_deliveries.index", plural="deliveries")
def list_deliveries(
    work: Work, project: ProjectView, integration_id: int, query: DeliveryQuery
) -> Found[Delivery]:
    """List the deliveries to an alert integration, newest first."""
    wanted = DeliveryFilter(
        integration_id=get_receiver(work, project, integration_id).id,
        show=SELECTIONS[query.show],
        status_code=query.status,
    )
    part = Slice(size=query.size, before=read_cursor(query.cursor))
    page = log.list_deliveries(wanted, part, session=work.session)
    return Found.of_page(page, lambda delivery: delivery)


@question("alert_deliveries.show")
def show_delivery(
    work: Work, project: ProjectView, integration_id: int, delivery_id: int
) -> DeliveryDetail:
    """Show a delivery with its body and its alerts."""
    integration = get_receiver(work, project, integration_id)
    row = log.get_row(integration.id, delivery_id, session=work.session)
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

    Return the new delivery, which may be refused. Raises NotFoundError if the body is not stored,
    DisabledReceiverError if the integration is off.
    """
    integration = _get_active(work, project, integration_id)
    body = log.get_body(integration.id, delivery_id, session=work.session)
    earlier = get_refused(delivery_id, session=work.session)
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

    The oldest first, at most MOST_REPLAYED. Raises DisabledReceiverError if the integration is off.
    """
    integration = _get_active(work, project, integration_id)
    period = Period(since=body.since, until=body.until or work.now, after=body.after)
    ids, has_more = find_refused(integration.id, period, session=work.session)
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

    Raises the errors of a receiver.
    """
    integration = get_receiver(work, project, integration_id)
    payload = test.payload
    if payload is None:
        payload = integration.format.example_body(now=work.now)
    means, body = work.policy(Receiving), payload.encode("utf-8", "surrogatepass")
    if not test.dry_run:
        _check_active(integration)
    if len(body) > means.largest_body:
        raise BodyTooLargeError(f"The payload is larger than {means.largest_body} bytes.")
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
        message = "This integration is off; turn it on first."
        raise DisabledReceiverError(message)


def _store_again(work: Work, integration: IntegrationView, delivery_id: int, body: bytes) -> int:
    """Store an accepted body as a new delivery, accepted or refused; return its id."""
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
        stand_for(refused, delivery_id, connection=means.connection)
        return refused
    return result.delivery_id


def _replay_one(work: Work, integration: IntegrationView, refused: Refused) -> int:
    """Replay a refused delivery; log that it is refused again if it is. Return the new id."""
    means, delivery = work.policy(Receiving), _delivery(work, integration, refused.body)
    connection = means.connection
    _end_transaction(work)
    try:
        result = replay(refused, delivery, connection=connection, reading=work.policy(Reading))
    except ConflictError:
        raise
    except DomainError as error:
        status = means.status_of(error)
        store = partial(store_refusal, delivery, status, error, connection=connection)
        return store_second_refusal(refused, store, connection=connection)
    return result.delivery_id


def _stored_after_all(work: Work, integration: IntegrationView, delivery_id: int) -> int | None:
    """Return the id of the new delivery, or None if somebody else was quicker.

    Raise the errors of a receiver.
    """
    refused = get_refused(delivery_id, session=work.session)
    _end_transaction(work)
    if refused is None:
        return None
    delivery, connection = (
        _delivery(work, integration, refused.body),
        work.policy(Receiving).connection,
    )
    with suppress(ConflictError):
        reading = work.policy(Reading)
        return replay(refused, delivery, connection=connection, reading=reading).delivery_id
    return None


def _end_transaction(work: Work) -> None:
    """End the session's transaction, which on SQLite would lock out the connection that stores.

    One that only reads would not see what is stored, nor could it write after that.
    """
    release_locks(work.session)


def _delivery(work: Work, integration: IntegrationView, body: bytes) -> InboundDelivery:
    """Return a delivery that is read with the integration's present mapping."""
    return InboundDelivery(
        project_id=integration.project_id,
        integration_id=integration.id,
        format=integration.type.name,
        sender=(work.actor.name or _OPERATOR)[:_LONGEST_SENDER],
        body=body,
        size=len(body),
        received_at=work.now,
        stopwatch=start_stopwatch(),
        mapping=integration.mapping,
        late_copies=work.policy(Receiving).late_copies,
    )
