"""The receivers, to which monitoring systems post their alerts.

The order of the checks is part of the API: it decides which error a client gets.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from time import perf_counter_ns
from typing import Protocol

from flask import Response, request

from blueprints.alerts.events_api import event_response
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import MetricsAlerts
from domain.alerts.reading.pagerduty import without_routing_key
from domain.alerts.receiving import receivers, refusals, sns
from domain.alerts.receiving.receivers import Receiver
from domain.database.statements import KeptConnection
from domain.errors import DomainError
from web.access.marks import checks_its_key
from web.alerts.receiving import inbound_delivery, log_refusal, store
from web.alerts.sns import asks_no_alert, read_subscription
from web.api.description.described import JSON, RECEIVERS, Caller, Description, described
from web.api.schemas.receivers import AnyAlerts, GenericAlerts, ReceivedAlerts
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.json_responses import json_response
from web.http.request_bodies import check_declared_length, check_media_type, read_bounded
from web.services import services
from web.settings import policies

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
    began, own = perf_counter_ns(), services()
    moment, current = own.clock(), own.live_settings.current()
    limit = current.alert_body_limit_bytes
    try:
        receiver = find(connection=own.connections, now=moment)
    except receivers.UnknownReceiverError:
        check_declared_length(limit)  # a body over the limit gets 413 at any URL
        raise
    delivery = inbound_delivery(receiver, moment, began, current)
    try:
        check_declared_length(limit)
        key = receivers.key_of(
            receiver,
            receivers.presented_key(request.headers.get("Authorization")),
            keyring=own.keyring,
        )
        received = read_bounded(limit)
        given = received.content
        body = without_routing_key(given) if b"routing_key" in given else given
        delivery = replace(delivery, body=body, size=len(given))
        receivers.check_open(receiver)
        kind = request.headers.get(sns.TYPE_HEADER) if receiver.format.takes_sns else None
        if kind is None:  # requests of Amazon SNS declare their JSON to be text
            check_media_type(*receiver.format.media_types)
        received.check()
        read = (
            partial(read_subscription, body, kind)
            if kind is not None and asks_no_alert(kind)
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
    if due := own.refusals.due(now=moment):
        refusals.flush(due, connection=own.connections)
    if parsed.event is not None:
        return event_response(parsed.event)
    return json_response([{"iid": item.iid, "title": item.title} for item in result.items])
