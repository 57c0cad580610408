"""The receivers: where monitoring systems post their alerts. The order of checks is the API's."""

from collections.abc import Callable
from datetime import datetime

from flask import Blueprint, Response, request

from domain.alerts import receivers
from domain.alerts.deliveries import store_refusal
from domain.alerts.formats import read_body
from domain.alerts.incoming import ParsedBody
from domain.alerts.intake import Receipt, receive
from domain.alerts.integrations import IntegrationType
from domain.alerts.parcel import Parcel
from domain.alerts.receivers import Receiver
from domain.errors import DomainError
from web.access import checks_its_key
from web.alert_limits import check_rate
from web.errors import status_of
from web.fast_json import json_response
from web.metrics import count_alerts
from web.request_bodies import ReceivedBody, check_media_type, read_bounded
from web.services import now, reading, services, settings

intake = Blueprint("intake", __name__)


@intake.post("/<names:project_path>/alerts/notify/<slug>/<endpoint_identifier>.json")
@checks_its_key
def notify(project_path: str, slug: str, endpoint_identifier: str) -> Response:
    """Receive at an integration's full address; the slug is only for people."""
    del slug
    return _receive(
        lambda moment: receivers.find_receiver(
            project_path, endpoint_identifier, hot=services().hot, now=moment
        )
    )


@intake.post("/<names:project_path>/alerts/notify.json")
@checks_its_key
def notify_http(project_path: str) -> Response:
    """Receive for the project's oldest HTTP endpoint."""
    return _receive_at_oldest(project_path, IntegrationType.HTTP)


@intake.post("/<names:project_path>/prometheus/alerts/notify.json")
@checks_its_key
def notify_prometheus(project_path: str) -> Response:
    """Receive for the project's oldest metrics endpoint."""
    return _receive_at_oldest(project_path, IntegrationType.PROMETHEUS)


def _receive_at_oldest(project_path: str, kind: IntegrationType) -> Response:
    return _receive(
        lambda moment: receivers.find_oldest_receiver(
            project_path, kind, hot=services().hot, now=moment
        )
    )


def _receive(find: Callable[[datetime], Receiver]) -> Response:
    moment = now()
    received = read_bounded(settings().alert_body_limit_bytes)
    receiver = find(moment)
    parcel = Parcel(
        project_id=receiver.project_id,
        integration_id=receiver.integration_id,
        format=receiver.type.value,
        sender=request.remote_addr or "",
        body=received.content,
        received_at=moment,
    )
    try:
        _check(receiver, received)
        receipt = _store(receiver, parcel)
    except DomainError as error:
        _log_refusal(parcel, error)
        raise
    return json_response([{"iid": item.iid, "title": item.title} for item in receipt.items])


def _check(receiver: Receiver, received: ReceivedBody) -> None:
    key = receivers.presented_key(request.headers.get("Authorization"))
    receivers.check_key(receiver, key, keyring=services().keyring)
    receivers.check_open(receiver)
    check_media_type()
    received.check()


def _store(receiver: Receiver, parcel: Parcel) -> Receipt:
    parsed: ParsedBody = read_body(
        parcel.body, receiver.type, now=parcel.received_at, reading=reading()
    )
    check_rate(receiver, settings().alert_rate_limit, now=parcel.received_at)
    receivers.note_use(receiver, hot=services().hot, now=parcel.received_at)
    receipt = receive(parsed, parcel, hot=services().hot)
    for item in receipt.items:
        count_alerts(item.action.value, 1)
    return receipt


def _log_refusal(parcel: Parcel, error: DomainError) -> None:
    """Leave a trace for the maintainer, unless there are too many already."""
    count_alerts("refused", 1)
    per_minute = settings().refused_delivery_samples_per_minute
    is_kept = services().refusals.is_kept(
        parcel.integration_id, now=parcel.received_at, per_minute=per_minute
    )
    if is_kept:
        known = parcel.without_body() if isinstance(error, receivers.WrongKeyError) else parcel
        store_refusal(known, status_of(error), str(error), hot=services().hot)
