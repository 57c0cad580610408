"""The receivers, to which monitoring systems post their alerts.

The order of the checks is part of the API: it decides which error a client gets.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol

from flask import Response, request

from blueprints.alerts.events_api import event_response
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import MetricsAlerts
from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.reading.pagerduty import without_routing_key
from domain.alerts.receiving import receivers, refusals
from domain.alerts.receiving.receivers import Receiver
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.clock import start_stopwatch
from domain.database.statements import KeptConnection
from domain.errors import DomainError
from web.access.marks import checks_its_key
from web.alerts.receiving import inbound_delivery, log_refusal, store
from web.alerts.sns import asks_no_alert, kind_of_request, read_subscription
from web.api.description.described import JSON, RECEIVERS, Caller, Description, described
from web.api.schemas.receivers import AnyAlerts, GenericAlerts, ReceivedAlerts
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.json_responses import json_response
from web.http.request_bodies import check_declared_length, check_media_type, read_bounded
from web.services import reading, services, settings

intake = MachineBlueprint("intake", __name__, errors=ErrorFormat.MESSAGE)

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
    """Receive alerts at the URL of an integration; the slug is ignored."""
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
    """Receive alerts for the project's oldest HTTP endpoint."""
    find = partial(receivers.find_oldest_receiver, project_path, HTTP)
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
    own, limit, stopwatch = services(), settings().alert_body_limit_bytes, start_stopwatch()
    moment = own.clock()
    receiver = _find(find, moment, limit)
    delivery = inbound_delivery(receiver, moment, stopwatch)
    try:
        check_declared_length(limit)
        key = receivers.check_key(
            receiver, request.headers.get("Authorization"), keyring=own.keyring
        )
        received = read_bounded(limit)
        body = without_routing_key(received.content)
        delivery = replace(delivery, body=body, size=len(received.content))
        receivers.check_open(receiver)
        kind = _checked_kind(receiver)
        received.check()
        parsed, result = store(receiver, key, delivery, _reader(receiver, delivery, kind), own=own)
    except DomainError as error:
        log_refusal(delivery, error)
        raise
    refusals.flush(own.refusals.due(now=moment), connection=own.connections)
    if parsed.event is not None:
        return event_response(parsed.event)
    return json_response([{"iid": item.iid, "title": item.title} for item in result.items])


def _checked_kind(receiver: Receiver) -> str | None:
    """Return the type of a request of Amazon SNS, which declares its JSON to be text.

    For another request return None, or raise NotJsonError if it declares what its format does not
    read.
    """
    kind = kind_of_request(receiver)
    if kind is None:
        check_media_type(*receiver.format.media_types)
    return kind


def _reader(
    receiver: Receiver, delivery: InboundDelivery, kind: str | None
) -> Callable[[], ParsedBody]:
    if kind is not None and asks_no_alert(kind):
        return partial(read_subscription, delivery.body, kind)
    return partial(
        receiver.format.read,
        delivery.body,
        now=delivery.received_at,
        reading=reading(),
        mapping=receiver.mapping,
    )


def _find(find: _Finder, moment: datetime, limit: int) -> Receiver:
    try:
        return find(connection=services().connections, now=moment)
    except receivers.UnknownReceiverError:
        check_declared_length(limit)  # a body over the limit gets 413 at any URL
        raise
