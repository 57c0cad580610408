"""The receivers, to which monitoring systems post their alerts.

The order of the checks is part of the API: it decides which error a client gets.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol

from flask import Response, request

from domain import threads
from domain.alerts.integration_type import IntegrationType
from domain.alerts.reading.formats import read_body
from domain.alerts.receiving import receivers, refusals
from domain.alerts.receiving.receivers import LiveKey, Receiver
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.intake import receive
from domain.alerts.storing.intake_result import IntakeResult
from domain.clock import Stopwatch, start_stopwatch
from domain.database.statements import KeptConnection
from domain.errors import DomainError
from web.access.marks import checks_its_key
from web.alerts.delivery_limits import check_rate
from web.api.description.described import JSON, RECEIVERS, Caller, Description, described
from web.api.schemas.receivers import AnyAlerts, GenericAlerts, MetricsAlerts, ReceivedAlerts
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.errors import status_of
from web.http.json_responses import json_response
from web.http.request_bodies import (
    check_declared_length,
    check_media_type,
    read_bounded,
)
from web.metrics import count_alerts
from web.services import Services, reading, services, settings

intake = MachineBlueprint("intake", __name__, errors=ErrorFormat.MESSAGE)

#: The largest size that the column holds, in bytes; a sender may declare more.
_LARGEST_SIZE = 2**31 - 1
#: In bytes. Larger bodies are parsed in a thread, since that takes several milliseconds.
_WORTH_A_THREAD = 2**16
#: In bytes. After a larger body the connection is closed, since it keeps the memory of its largest
#: statement.
_WORTH_A_CONNECTION = 2**19
#: What requests are answered with, besides success.
_REFUSALS = (400, 401, 403, 404, 408, 413, 415, 422, 429)


@intake.post("/<names:project_path>/alerts/notify/<slug>/<endpoint_identifier>.json")
@described(
    Description(
        name="receivers.integration",
        tag=RECEIVERS,
        caller=Caller.SENDER,
        body=AnyAlerts,
        accepts=(JSON,),
        returns=ReceivedAlerts,
        errors=_REFUSALS,
    )
)
@checks_its_key
def notify(project_path: str, slug: str, endpoint_identifier: str) -> Response:
    """Receive at the URL of an integration; the slug is for people only."""
    if (slug, endpoint_identifier) == ("alerts", "notify"):  # no identifier is so short
        return notify_http(f"{project_path}/alerts/notify")
    return _receive(partial(receivers.find_receiver, project_path, endpoint_identifier))


@intake.post("/<names:project_path>/alerts/notify.json")
@described(
    Description(
        name="receivers.http",
        tag=RECEIVERS,
        caller=Caller.SENDER,
        body=GenericAlerts,
        accepts=(JSON,),
        returns=ReceivedAlerts,
        errors=_REFUSALS,
    )
)
@checks_its_key
def notify_http(project_path: str) -> Response:
    """Receive for the project's oldest HTTP integration."""
    find = partial(receivers.find_oldest_receiver, project_path, IntegrationType.HTTP)
    return _receive(find)


@intake.post("/<names:project_path>/prometheus/alerts/notify.json")
@described(
    Description(
        name="receivers.metrics",
        tag=RECEIVERS,
        caller=Caller.SENDER,
        body=MetricsAlerts,
        accepts=(JSON,),
        returns=ReceivedAlerts,
        errors=_REFUSALS,
    )
)
@checks_its_key
def notify_prometheus(project_path: str) -> Response:
    """Receive for the project's oldest Prometheus integration, or a project named prometheus."""
    return _receive(partial(receivers.find_metrics_receiver, project_path))


class _Finder(Protocol):
    def __call__(self, *, connection: KeptConnection, now: datetime) -> Receiver: ...


def _receive(find: _Finder) -> Response:
    """Check URL and key before the body is read, so that strangers cannot send large ones."""
    own, limit = services(), settings().alert_body_limit_bytes
    moment, stopwatch = own.clock(), start_stopwatch()
    receiver = _find(find, moment, limit)
    delivery = _inbound_delivery(receiver, moment, stopwatch)
    try:
        check_declared_length(limit)
        authorization = request.headers.get("Authorization")
        key = receivers.check_key(receiver, authorization, keyring=own.keyring)
        received = read_bounded(limit)
        delivery = replace(delivery, body=received.content, size=len(received.content))
        receivers.check_open(receiver)
        check_media_type()
        received.check()
        result = _store(receiver, key, delivery, own=own)
    except DomainError as error:
        _log_refusal(delivery, error)
        raise
    refusals.flush(own.refusals.due(now=moment), connection=own.connections)
    return json_response([{"iid": item.iid, "title": item.title} for item in result.items])


def _find(find: _Finder, moment: datetime, limit: int) -> Receiver:
    try:
        return find(connection=services().connections, now=moment)
    except receivers.UnknownReceiverError:
        check_declared_length(limit)  # a body over the limit gets 413 at any URL
        raise


def _inbound_delivery(
    receiver: Receiver, moment: datetime, stopwatch: Stopwatch
) -> InboundDelivery:
    """Return the delivery without its body, which has not been read yet."""
    return InboundDelivery(
        project_id=receiver.project_id,
        integration_id=receiver.integration_id,
        format=receiver.type.value,
        sender=request.remote_addr or "",
        body=b"",
        size=min(request.content_length or 0, _LARGEST_SIZE),
        received_at=moment,
        stopwatch=stopwatch,
        mapping=receiver.mapping,
    )


def _store(
    receiver: Receiver, key: LiveKey, delivery: InboundDelivery, *, own: Services
) -> IntakeResult:
    read = partial(
        read_body,
        delivery.body,
        receiver.type,
        now=delivery.received_at,
        reading=reading(),
        mapping=receiver.mapping,
    )
    parsed = threads.reading.run(read) if delivery.size > _WORTH_A_THREAD else read()
    check_rate(receiver)
    receivers.record_use(receiver, key, connection=own.connections, now=delivery.received_at)
    result = receive(parsed, delivery, connection=own.connections)
    if delivery.size > _WORTH_A_CONNECTION:
        own.connections.close_last_used()
    actions = [item.action for item in result.items]
    for action in set(actions):
        count_alerts(action.value, actions.count(action))
    return result


def _log_refusal(delivery: InboundDelivery, error: DomainError) -> None:
    """Log the refusal as a row, or add it to the count of an earlier one."""
    count_alerts("refused", 1)
    sampler, connection, status = services().refusals, services().connections, status_of(error)
    kind = (delivery.integration_id, status)
    per_minute = settings().refused_delivery_samples_per_minute
    if sampler.gets_row(kind, now=delivery.received_at, per_minute=per_minute):
        row = refusals.store_refusal(delivery, status, error, connection=connection)
        refusals.flush(sampler.use_row(kind, row), connection=connection)
    refusals.flush(sampler.due(now=delivery.received_at), connection=connection)
