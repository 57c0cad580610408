"""/api/v4/projects/:id/alert_management_integrations/:integration_id/deliveries: the log."""

from flask import Blueprint, Response

from blueprints.api_v4.alerts.alert_integrations import AT, ONE
from domain.alerts.deliveries import log
from domain.alerts.handling.occurrences import touched_alerts
from domain.alerts.integrations.integrations import get_receiver
from domain.alerts.integrations.replays import Period
from domain.alerts.listing.types import alert_url
from domain.audit.events import Actor
from domain.database.paging import LARGEST_ID, Slice, read_cursor
from domain.projects.views import ProjectView
from domain.types.base import Found
from web.alerts.files import payload_file
from web.alerts.user_deliveries import replay_period, send_again
from web.api.description.described import answers_with
from web.api.operations import operation
from web.api.schemas.alerts.alert_deliveries import (
    DeliveredAlert,
    Delivery,
    DeliveryDetail,
    DeliveryQuery,
    ReplayBody,
    ReplayResult,
)
from web.extensions import db
from web.http.work import work
from web.services import now, settings

alert_deliveries = Blueprint("alert_deliveries", __name__, url_prefix=f"{AT}{ONE}/deliveries")
_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"


@alert_deliveries.get("")
@operation("alert_deliveries.index", query=DeliveryQuery, returns=Delivery)
def index(project: ProjectView, integration_id: int, query: DeliveryQuery) -> Found[Delivery]:
    """List the deliveries to an alert integration, newest first."""
    wanted = query.of_integration(get_receiver(work(), project, integration_id).id)
    part = Slice(size=query.size, before=read_cursor(query.cursor))
    return Found.of_page(log.list_deliveries(wanted, part, session=db.session()), Delivery.of)


@alert_deliveries.get(_ONE_DELIVERY)
@operation("alert_deliveries.show", returns=DeliveryDetail)
def show(project: ProjectView, integration_id: int, delivery_id: int) -> DeliveryDetail:
    """Show a delivery with its body and its alerts."""
    return _shown(project, integration_id, delivery_id)


@alert_deliveries.get(f"{_ONE_DELIVERY}/body")
@answers_with(file="application/octet-stream")
@operation("alert_deliveries.body")
def body(project: ProjectView, integration_id: int, delivery_id: int) -> Response:
    """Return the body of a delivery, as it was received."""
    integration = get_receiver(work(), project, integration_id)
    return payload_file(log.get_body(integration.id, delivery_id, session=db.session()))


@alert_deliveries.post(f"{_ONE_DELIVERY}/resend")
@operation("alert_deliveries.resend", returns=DeliveryDetail, status=201)
def resend(
    project: ProjectView, integration_id: int, delivery_id: int, actor: Actor
) -> DeliveryDetail:
    """Process the body of a delivery again, with the current mapping."""
    integration = get_receiver(work(), project, integration_id)
    resent = send_again(integration, delivery_id, sender=actor.name)
    return _shown(project, integration_id, resent.delivery_id)


@alert_deliveries.post("/replay")
@operation("alert_deliveries.replay", body=ReplayBody, returns=ReplayResult)
def replay(
    project: ProjectView, integration_id: int, body: ReplayBody, actor: Actor
) -> ReplayResult:
    """Process the rejected deliveries of a period again, with the current mapping."""
    integration = get_receiver(work(), project, integration_id)
    period = Period(since=body.since, until=body.until or now(), after=body.after)
    return ReplayResult.of(replay_period(integration, period, sender=actor.name))


def _shown(project: ProjectView, integration_id: int, delivery_id: int) -> DeliveryDetail:
    integration = get_receiver(work(), project, integration_id)
    delivery = log.get_delivery(integration.id, delivery_id, session=db.session())
    touched = touched_alerts(delivery.id, session=db.session())
    base_url = settings().base_url
    alerts = [
        DeliveredAlert.of(each, alert_url(project.path, each.iid, base_url)) for each in touched
    ]
    return DeliveryDetail.of_detail(delivery, alerts)
