"""The steps shared by all alert receivers, and file responses."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from time import perf_counter_ns
from typing import Protocol

from flask import Response, g, request
from werkzeug.exceptions import TooManyRequests

from domain.alerts.listing import queries
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.sort_orders import SortOrder
from domain.alerts.reading.body import read_object
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.reading.pagerduty import without_routing_key
from domain.alerts.receiving import receivers, sns
from domain.alerts.receiving.receivers import BusyError, LiveKey, OverLimitError, Receiver
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import receive
from domain.alerts.storing.intake_result import IntakeResult
from domain.core import threads
from domain.core.database.statements import KeptConnection
from domain.core.errors import DomainError
from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.urls import OutgoingUrl
from web.access.rate_limits import by_integration
from web.extensions import db
from web.http.errors import status_of
from web.http.request_bodies import check_declared_length, check_media_type, read_bounded
from web.http.text_files import text_file
from web.metrics import count_alerts
from web.outgoing.client import OutgoingClient
from web.services import Services, now, reading, services, settings
from web.settings.policies import alerts as policies
from web.settings.reader import Settings

_KINDS = {"json": queries.as_json, "csv": queries.as_csv}


def alert_file(wanted: AlertFilter, order: SortOrder, *, path: str, kind: str) -> Response:
    """Return the alerts as a download; `kind` is "json" or "csv".

    The file name contains the last part of `path`.
    """
    rows = _KINDS[kind](wanted, order, session=db.session())
    return text_file(rows, f"alerts-{path.rpartition('/')[2]}-{now():%Y-%m-%d}.{kind}")


def payload_file(body: bytes) -> Response:
    """Return the body of a delivery, byte for byte as it was received."""
    # The type is not JSON because a rejected body can contain anything.
    response = Response(body, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = "attachment"
    return response


_OVER_LIMIT = {
    HTTPStatus.TOO_MANY_REQUESTS: OverLimitError,
    HTTPStatus.SERVICE_UNAVAILABLE: BusyError,
}
#: Maximum size that fits in the database column, in bytes. A sender may declare a larger one.
_LARGEST_SIZE = 2**31 - 1
#: Size in bytes above which a body is parsed in a thread, since parsing takes milliseconds.
_WORTH_A_THREAD = 2**16
#: Size in bytes above which the database connection is closed afterwards. Connections keep the
#: memory of their largest statement.
_WORTH_A_CONNECTION = 2**19


def inbound_delivery(
    receiver: Receiver, moment: datetime, began_ns: int, current: Settings
) -> InboundDelivery:
    """Return the delivery of this request without the body, which may not have been read yet."""
    return InboundDelivery(
        project_id=receiver.project_id,
        integration_id=receiver.integration_id,
        format=receiver.format.name,
        sender=request.remote_addr or "",
        body=b"",
        size=min(request.content_length or 0, _LARGEST_SIZE),
        received_at=moment,
        began_ns=began_ns,
        mapping=receiver.mapping,
        monitor_id=receiver.monitor_id,
        user_agent=request.environ.get("HTTP_USER_AGENT"),
        late_copies=timedelta(seconds=current.late_copy_seconds),
    )


class _Finder(Protocol):
    def __call__(self, *, connection: KeptConnection, now: datetime) -> Receiver: ...


def receive_request(find: _Finder) -> tuple[ParsedBody, IntakeResult]:
    """Receive this request, and return the parsed body and the result of the intake.

    The URL and the key are checked before the body is read, so that clients without a key cannot
    send large bodies.
    """
    began, own = perf_counter_ns(), services()
    moment, current = own.clock(), own.live_settings.current()
    try:
        receiver = find(connection=own.connections, now=moment)
    except receivers.UnknownReceiverError:
        # A body over the limit gets status 413 at any URL.
        check_declared_length(current.alert_body_limit_bytes)
        raise
    limit = policies.body_limit(current, receiver.format)
    delivery = inbound_delivery(receiver, moment, began, current)
    try:
        check_declared_length(limit)
        key = receivers.key_of(receiver, _given_key(receiver), keyring=own.keyring)
        received = read_bounded(limit)
        given = received.content
        body = without_routing_key(given) if b"routing_key" in given else given
        delivery = replace(delivery, body=body, size=len(given))
        receivers.check_open(receiver)
        kind = request.headers.get(sns.TYPE_HEADER) if receiver.format.takes_sns else None
        if kind is None:  # Amazon SNS declares its JSON as text.
            check_media_type(*receiver.format.media_types)
        if received.flaw is not None:
            raise received.flaw
        read = (
            partial(_read_subscription, body, kind)
            if kind is not None and _asks_no_alert(kind)
            else partial(
                receiver.format.read,
                body,
                now=moment,
                reading=own.live_settings.derived(policies.reading),
                mapping=receiver.mapping,
            )
        )
        parsed, result = store(receiver, key, delivery, read, own=own)
    except DomainError as error:
        log_refusal(delivery, error)
        raise
    return parsed, result


def _given_key(receiver: Receiver) -> str:
    """Return the key of this request.

    Raise WrongKeyError if the request has no key.
    """
    authorization = request.headers.get("Authorization")
    if authorization is None and request.query_string:
        in_url = receivers.key_of_url(receiver, request.args.get("key"))
        if in_url is not None:
            return in_url
    return receivers.presented_key(authorization)


def store(
    receiver: Receiver,
    key: LiveKey,
    delivery: InboundDelivery,
    read: Callable[[], ParsedBody],
    *,
    own: Services,
) -> tuple[ParsedBody, IntakeResult]:
    """Parse and store a body, and return the parsed body and the result of the intake.

    Above ALERT_RATE_LIMIT, raise OverLimitError, or BusyError for senders that retry only after
    status 503.
    """
    parsed = threads.reading.run(read) if delivery.size > _WORTH_A_THREAD else read()
    g.integration_id = receiver.integration_id
    try:
        by_integration.count()
    except TooManyRequests:
        rate = settings().alert_rate_limit.replace("/", " requests per ")
        message = f"This integration accepts {rate}."
        raise _OVER_LIMIT[receiver.format.retry_status](message) from None
    moment = delivery.received_at
    if key.last_used_at is None or moment - key.last_used_at >= receivers.USE_RESOLUTION:
        receivers.record_use(receiver, key, connection=own.connections, now=moment)
    result = receive(parsed, delivery, connection=own.connections)
    if delivery.size > _WORTH_A_CONNECTION:
        own.connections.close_last_used()
    actions = [item.action for item in result.items]
    for action in set(actions):
        count_alerts(action.value, actions.count(action))
    if due := own.refusals.due(now=moment):
        receivers.flush_refusals(due, connection=own.connections)
    return parsed, result


def log_refusal(delivery: InboundDelivery, error: DomainError) -> None:
    """Log a rejected delivery as a row, or add it to the count of an earlier row."""
    count_alerts("refused", 1)
    sampler, connection, status = services().refusals, services().connections, status_of(error)
    kind = (delivery.integration_id, status)
    per_minute = settings().refused_delivery_samples_per_minute
    if sampler.gets_row(kind, now=delivery.received_at, per_minute=per_minute):
        row = receivers.store_refusal(delivery, status, error, connection=connection)
        receivers.flush_refusals(sampler.use_row(kind, row), connection=connection)
    receivers.flush_refusals(sampler.due(now=delivery.received_at), connection=connection)


def _asks_no_alert(kind: str | None) -> bool:
    """Return whether an SNS request is about a subscription rather than an alert."""
    return kind in {sns.CONFIRMATION, sns.UNSUBSCRIBED}


def _read_subscription(body: bytes, kind: str) -> ParsedBody:
    """Confirm a subscription, or record that it has ended.

    Raise the usual errors of receivers.
    """
    payload = read_object(body, nesting_limit=reading().nesting_limit)
    if kind == sns.UNSUBSCRIBED:
        return sns.note_end(payload)
    return sns.confirm_subscription(payload, get=_get_from_sns)


def _get_from_sns(url: OutgoingUrl) -> tuple[int, bytes]:
    try:
        answer = OutgoingClient.of(settings()).get(url)
    except OutgoingError as error:
        raise sns.RefusedSubscriptionError(f"Could not reach {url.host}: {error}.") from error
    return answer.status, answer.beginning
