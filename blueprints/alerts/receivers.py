"""Steps that all alert receivers share, and responses that contain a file."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from time import perf_counter_ns
from typing import Protocol

from flask import Response, g, request
from werkzeug.exceptions import TooManyRequests

from domain.alerts.listing import exports
from domain.alerts.listing.filters import AlertFilter
from domain.alerts.listing.sort_orders import SortOrder
from domain.alerts.parsing.incoming_alert import ParsedBody
from domain.alerts.parsing.json_body import parse_body_object
from domain.alerts.parsing.pagerduty import hide_routing_key
from domain.alerts.receiving import receivers, sns
from domain.alerts.receiving.receivers import (
    RateLimitExceededError,
    Receiver,
    RetryableRateLimitError,
    ValidKey,
)
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import store_alerts
from domain.alerts.storing.intake_result import IntakeResult
from domain.core import thread_pools
from domain.core.database.statements import StatementConnection
from domain.core.errors import DomainError
from domain.delivery.outgoing.errors import OutgoingError
from domain.delivery.outgoing.urls import OutgoingUrl
from web.access.rate_limits import limit_alerts_by_integration
from web.extensions import db
from web.http.errors import get_error_status
from web.http.request_bodies import check_declared_length, check_media_type, read_limited_body
from web.http.text_files import build_text_file_response
from web.metrics import count_alerts
from web.outgoing.client import OutgoingClient
from web.services import Services, get_current_time, get_parser_settings, get_services, get_settings
from web.settings.environment import Settings
from web.settings.policies import alerts as policies

_EXPORT_FORMATS = {"json": exports.export_alerts_as_json, "csv": exports.export_alerts_as_csv}


def build_alert_export(
    alert_filter: AlertFilter, order: SortOrder, *, path: str, kind: str
) -> Response:
    """Return the matching alerts as a download.

    `kind` is "json" or "csv". The file name contains the last part of `path`.
    """
    rows = _EXPORT_FORMATS[kind](alert_filter, order, session=db.session())
    return build_text_file_response(
        rows, f"alerts-{path.rpartition('/')[2]}-{get_current_time():%Y-%m-%d}.{kind}"
    )


def build_payload_response(body: bytes) -> Response:
    """Return the body of a delivery, byte for byte as it was received."""
    # The type is not JSON because a rejected body can contain anything.
    response = Response(body, content_type="application/octet-stream")
    response.headers["Content-Disposition"] = "attachment"
    return response


_RATE_LIMIT_ERRORS = {
    HTTPStatus.TOO_MANY_REQUESTS: RateLimitExceededError,
    HTTPStatus.SERVICE_UNAVAILABLE: RetryableRateLimitError,
}
#: Maximum size that fits in the database column, in bytes. A sender may declare a larger size.
_MAX_STORED_SIZE = 2**31 - 1
#: Size in bytes above which a body is parsed in a thread, because parsing takes milliseconds.
_MIN_BYTES_FOR_THREAD = 2**16
#: Size in bytes above which the database connection is closed after a body is stored. An open
#: connection keeps the memory that its largest statement needed.
_MIN_BYTES_TO_CLOSE_CONNECTION = 2**19


def build_inbound_delivery(
    receiver: Receiver, moment: datetime, began_ns: int, current: Settings
) -> InboundDelivery:
    """Return a delivery for this request, without the body, which might not have been read yet."""
    return InboundDelivery(
        project_id=receiver.project_id,
        integration_id=receiver.integration_id,
        format=receiver.format.name,
        sender=request.remote_addr or "",
        body=b"",
        size=min(request.content_length or 0, _MAX_STORED_SIZE),
        received_at=moment,
        began_ns=began_ns,
        mapping=receiver.mapping,
        monitor_id=receiver.monitor_id,
        user_agent=request.environ.get("HTTP_USER_AGENT"),
        late_copies=timedelta(seconds=current.late_copy_seconds),
    )


class _ReceiverLookup(Protocol):
    def __call__(self, *, connection: StatementConnection, now: datetime) -> Receiver: ...


def receive_request(find: _ReceiverLookup) -> tuple[ParsedBody, IntakeResult]:
    """Receive the alerts in this request, and return the parsed body and the stored result.

    The URL and the key are checked before the body is read, so that clients without a key cannot
    send large bodies.
    """
    began, own = perf_counter_ns(), get_services()
    moment, current = own.clock(), own.live_settings.get_current_settings()
    try:
        receiver = find(connection=own.connections, now=moment)
    except receivers.UnknownReceiverError:
        # Bodies over the limit are rejected with status 413 at any URL.
        check_declared_length(current.alert_body_limit_bytes)
        raise
    limit = policies.get_body_limit(current, receiver.format)
    delivery = build_inbound_delivery(receiver, moment, began, current)
    try:
        check_declared_length(limit)
        key = receivers.get_matching_key(
            receiver, _get_integration_key(receiver), keyring=own.keyring
        )
        received = read_limited_body(limit)
        given = received.content
        body = hide_routing_key(given) if b"routing_key" in given else given
        delivery = replace(delivery, body=body, size=len(given))
        receivers.check_accepts_alerts(receiver)
        kind = request.headers.get(sns.TYPE_HEADER) if receiver.format.accepts_sns else None
        if kind is None:  # Amazon SNS sends JSON with a text media type.
            check_media_type(*receiver.format.media_types)
        if received.flaw is not None:
            raise received.flaw
        read = (
            partial(_process_subscription_request, body, kind)
            if kind is not None and _is_subscription_request(kind)
            else partial(
                receiver.format.read,
                body,
                now=moment,
                reading=own.live_settings.get_derived_value(policies.build_parser_settings),
                mapping=receiver.mapping,
            )
        )
        parsed, result = parse_and_store(receiver, key, delivery, read, services=own)
    except DomainError as error:
        log_rejection(delivery, error)
        raise
    return parsed, result


def _get_integration_key(receiver: Receiver) -> str:
    """Return the integration key in this request.

    Raise WrongKeyError if the request has no key.
    """
    authorization = request.headers.get("Authorization")
    if request.query_string and not receivers.is_bearer_or_basic(authorization):
        in_url = receivers.get_key_in_url(receiver, request.args.get("key"))
        if in_url is not None:
            return in_url
    return receivers.parse_authorization_key(authorization)


def parse_and_store(
    receiver: Receiver,
    key: ValidKey,
    delivery: InboundDelivery,
    read: Callable[[], ParsedBody],
    *,
    services: Services,
) -> tuple[ParsedBody, IntakeResult]:
    """Parse a body and store its alerts, and return the parsed body and the stored result.

    If ALERT_RATE_LIMIT is exceeded, raise RateLimitExceededError, or RetryableRateLimitError for
    senders that retry only after status 503.
    """
    parsed = (
        thread_pools.parsing_pool.run_task(read)
        if delivery.size > _MIN_BYTES_FOR_THREAD
        else read()
    )
    g.integration_id = receiver.integration_id
    try:
        limit_alerts_by_integration.count_request()
    except TooManyRequests:
        rate = get_settings().alert_rate_limit.replace("/", " requests per ")
        message = f"This integration accepts {rate}."
        raise _RATE_LIMIT_ERRORS[receiver.format.retry_status](message) from None
    moment = delivery.received_at
    if key.last_used_at is None or moment - key.last_used_at >= receivers.KEY_USE_UPDATE_INTERVAL:
        receivers.record_integration_key_use(
            receiver, key, connection=services.connections, now=moment
        )
    result = store_alerts(parsed, delivery, connection=services.connections)
    if delivery.size > _MIN_BYTES_TO_CLOSE_CONNECTION:
        services.connections.close_last_used_connection()
    actions = [item.action for item in result.items]
    for action in set(actions):
        count_alerts(action.value, actions.count(action))
    if due := services.refusals.pop_due_counts(now=moment):
        receivers.flush_rejections(due, connection=services.connections)
    return parsed, result


def log_rejection(delivery: InboundDelivery, error: DomainError) -> None:
    """Store a rejected delivery in the delivery log, or only count it.

    If similar deliveries are rejected frequently, they are added to the count of an earlier row.
    """
    count_alerts("refused", 1)
    sampler, connection, status = (
        get_services().refusals,
        get_services().connections,
        get_error_status(error),
    )
    kind = (delivery.integration_id, status)
    per_minute = get_settings().refused_delivery_samples_per_minute
    if sampler.should_store(kind, now=delivery.received_at, per_minute=per_minute):
        row = receivers.store_rejection(delivery, status, error, connection=connection)
        receivers.flush_rejections(sampler.set_counter_row(kind, row), connection=connection)
    receivers.flush_rejections(
        sampler.pop_due_counts(now=delivery.received_at), connection=connection
    )


def _is_subscription_request(kind: str | None) -> bool:
    """Return whether an SNS request is about a subscription rather than an alert."""
    return kind in {sns.CONFIRMATION_TYPE, sns.UNSUBSCRIPTION_TYPE}


def _process_subscription_request(body: bytes, kind: str) -> ParsedBody:
    """Confirm a subscription, or record that it has ended.

    Raise the same errors as other receivers.
    """
    payload = parse_body_object(body, nesting_limit=get_parser_settings().nesting_limit)
    if kind == sns.UNSUBSCRIPTION_TYPE:
        return sns.build_unsubscription_body(payload)
    return sns.confirm_subscription(payload, get=_fetch_from_sns)


def _fetch_from_sns(url: OutgoingUrl) -> tuple[int, bytes]:
    try:
        answer = OutgoingClient.from_settings(get_settings()).fetch_url(url)
    except OutgoingError as error:
        raise sns.UnconfirmedSubscriptionError(f"Could not reach {url.host}: {error}.") from error
    return answer.status, answer.beginning
