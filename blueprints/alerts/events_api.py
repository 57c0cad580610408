"""PagerDuty's Events API v2, for tools in which users can change only the API's host name.

See https://developer.pagerduty.com/docs/events-api-v2-overview. The routing key is the key of an
HTTP endpoint. The key is in the body, so the body is read first, up to PagerDuty's size limit.
"""

from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import Any

import orjson
from flask import Response

from blueprints.alerts.receivers import build_inbound_delivery, log_rejection, parse_and_store
from domain.alerts.parsing import pagerduty
from domain.alerts.parsing.incoming_alert import EventAction, ParsedPagerDutyEvent
from domain.alerts.parsing.json_body import parse_body_object
from domain.alerts.receiving import receivers
from domain.core.errors import DomainError
from web.access.decorators import authenticates_integration
from web.access.rate_limits import limit_events_by_address
from web.api.openapi.view_descriptions import JSON, RECEIVERS, Caller, ViewDescription
from web.api.schemas.receivers import AcceptedEvent, ChangeEvent, PagerDutyEvent
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.json_responses import build_json_response
from web.http.request_bodies import read_limited_body
from web.services import get_parser_settings, get_services, get_settings

events_api = ApiClientBlueprint("events_api", __name__, errors=ErrorFormat.EVENTS, url_prefix="/v2")

#: PagerDuty's limit for the size of a body, in bytes.
_MAX_BODY_BYTES = 512 * 1024
_ERROR_STATUSES = (400, 408, 413, 429)
_RESPONSE_MESSAGES = {EventAction.CHANGE: "Change event processed"}


def _describe_receiver(name: str, body: Any) -> ViewDescription:
    return ViewDescription(
        name=f"receivers.{name}",
        tag=RECEIVERS,
        caller=Caller.ANYONE,
        body=body,
        accepts=(JSON,),
        returns=AcceptedEvent,
        status=202,
        errors=_ERROR_STATUSES,
    )


@events_api.post("/enqueue")
@_describe_receiver("events", PagerDutyEvent)
@authenticates_integration.with_changes(writes=False)
@limit_events_by_address
def enqueue() -> Response:
    """Accept an alert event in the format of PagerDuty's Events API v2."""
    return _receive_event(is_change=False)


@events_api.post("/change/enqueue")
@_describe_receiver("change_events", ChangeEvent)
@authenticates_integration.with_changes(writes=False)
@limit_events_by_address
def enqueue_change() -> Response:
    """Accept a change event and store it in the delivery log.

    Change events do not create alerts.
    """
    return _receive_event(is_change=True)


def _receive_event(*, is_change: bool) -> Response:
    began, own, policy = perf_counter_ns(), get_services(), get_parser_settings()
    moment, current = own.clock(), get_settings()
    received = read_limited_body(min(_MAX_BODY_BYTES, current.alert_body_limit_bytes))
    received.raise_for_error()
    payload = parse_body_object(received.content, nesting_limit=policy.nesting_limit)
    routing_key = payload.get("routing_key")
    given = routing_key if isinstance(routing_key, str) else ""
    receiver = receivers.get_receiver_by_key(
        given, connection=own.connections, keyring=own.keyring, now=moment
    )
    key = receivers.get_matching_key(receiver, given, keyring=own.keyring)
    body, size = _remove_routing_key(received.content, payload), len(received.content)
    delivery = replace(
        build_inbound_delivery(receiver, moment, began, current), body=body, size=size
    )
    read = partial(receiver.format.parse, payload, now=moment, reading=policy)
    try:
        receivers.check_accepts_alerts(receiver)
        pagerduty.check_event_kind(payload, is_change=is_change)
        parsed, _ = parse_and_store(receiver, key, delivery, read, services=own)
    except DomainError as error:
        log_rejection(delivery, error)
        raise
    return build_event_response(parsed.event or ParsedPagerDutyEvent(EventAction.CHANGE))


def _remove_routing_key(body: bytes, payload: dict[str, object]) -> bytes:
    """Return the body without the routing key, even if the key contains escape sequences."""
    hidden = pagerduty.hide_routing_key(body)
    if hidden != body:
        return hidden
    return orjson.dumps({**payload, "routing_key": pagerduty.HIDDEN_ROUTING_KEY}, default=str)


def build_event_response(event: ParsedPagerDutyEvent) -> Response:
    """Return PagerDuty's response to an accepted event."""
    answer = {
        "status": "success",
        "message": _RESPONSE_MESSAGES.get(event.action, "Event processed"),
    }
    if event.action is not EventAction.CHANGE:
        answer["dedup_key"] = event.dedup_key
    return build_json_response(answer, 202)
