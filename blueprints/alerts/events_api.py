"""PagerDuty's Events API v2, for tools in which only the host name can be changed.

See https://developer.pagerduty.com/docs/events-api-v2-overview. The routing key is the key of an
HTTP endpoint. The key is in the body, so the body is read first, up to PagerDuty's size limit.
"""

from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import Any

import orjson
from flask import Response

from blueprints.alerts.receiving import inbound_delivery, log_refusal, store
from domain.alerts.reading import pagerduty
from domain.alerts.reading.body import read_object
from domain.alerts.reading.incoming import EventAction, SenderEvent
from domain.alerts.receiving import receivers
from domain.core.errors import DomainError
from web.access.decorators import checks_its_key
from web.access.rate_limits import by_events_address
from web.api.description.described import JSON, RECEIVERS, Caller, Description
from web.api.schemas.receivers import AcceptedEvent, ChangeEvent, PagerDutyEvent
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.json_responses import json_response
from web.http.request_bodies import read_bounded
from web.services import reading, services, settings

events_api = MachineBlueprint("events_api", __name__, errors=ErrorFormat.EVENTS, url_prefix="/v2")

#: PagerDuty's size limit in bytes.
_MOST = 512 * 1024
_ERRORS = (400, 408, 413, 429)
_SAID = {EventAction.CHANGE: "Change event processed"}


def _description(name: str, body: Any) -> Description:
    return Description(
        name=f"receivers.{name}",
        tag=RECEIVERS,
        caller=Caller.ANYONE,
        body=body,
        accepts=(JSON,),
        returns=AcceptedEvent,
        status=202,
        errors=_ERRORS,
    )


@events_api.post("/enqueue")
@_description("events", PagerDutyEvent)
@checks_its_key.but(writes=False)
@by_events_address
def enqueue() -> Response:
    """Receive an alert event of PagerDuty's Events API v2."""
    return _receive(is_change=False)


@events_api.post("/change/enqueue")
@_description("change_events", ChangeEvent)
@checks_its_key.but(writes=False)
@by_events_address
def enqueue_change() -> Response:
    """Receive a change event for the delivery log.

    Change events create no alerts.
    """
    return _receive(is_change=True)


def _receive(*, is_change: bool) -> Response:
    began, own, policy = perf_counter_ns(), services(), reading()
    moment, current = own.clock(), settings()
    received = read_bounded(min(_MOST, current.alert_body_limit_bytes))
    received.check()
    payload = read_object(received.content, nesting_limit=policy.nesting_limit)
    routing_key = payload.get("routing_key")
    given = routing_key if isinstance(routing_key, str) else ""
    receiver = receivers.find_receiver_by_key(
        given, connection=own.connections, keyring=own.keyring, now=moment
    )
    key = receivers.key_of(receiver, given, keyring=own.keyring)
    body, size = _storable(received.content, payload), len(received.content)
    delivery = replace(inbound_delivery(receiver, moment, began, current), body=body, size=size)
    read = partial(receiver.format.parse, payload, now=moment, reading=policy)
    try:
        receivers.check_open(receiver)
        pagerduty.check_kind(payload, is_change=is_change)
        parsed, _ = store(receiver, key, delivery, read, own=own)
    except DomainError as error:
        log_refusal(delivery, error)
        raise
    return event_response(parsed.event or SenderEvent(EventAction.CHANGE))


def _storable(body: bytes, payload: dict[str, object]) -> bytes:
    """Return the body without the routing key, even if escapes hide the key."""
    hidden = pagerduty.without_routing_key(body)
    if hidden != body:
        return hidden
    return orjson.dumps({**payload, "routing_key": pagerduty.HIDDEN}, default=str)


def event_response(event: SenderEvent) -> Response:
    """Return PagerDuty's response to an accepted event."""
    answer = {"status": "success", "message": _SAID.get(event.action, "Event processed")}
    if event.action is not EventAction.CHANGE:
        answer["dedup_key"] = event.dedup_key
    return json_response(answer, 202)
