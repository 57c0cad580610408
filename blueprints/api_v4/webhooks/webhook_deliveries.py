"""/api/v4/projects/:id/webhooks/:webhook_id/deliveries: what was sent to a webhook."""

from flask import Blueprint

from blueprints.api_v4.webhooks.webhooks import AT, ONE
from domain.database.paging import LARGEST_ID, Slice, read_cursor
from domain.projects.views import ProjectView
from domain.webhooks import log
from web.api.operations import Found, operation
from web.api.schemas.webhooks.webhooks import (
    WebhookDelivery,
    WebhookDeliveryDetail,
    WebhookDeliveryQuery,
)
from web.extensions import db
from web.webhooks import changes

webhook_deliveries = Blueprint("webhook_deliveries", __name__, url_prefix=f"{AT}{ONE}/deliveries")
_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"


@webhook_deliveries.get("")
@operation("webhook_deliveries.index", query=WebhookDeliveryQuery, returns=WebhookDelivery)
def index(
    project: ProjectView, webhook_id: int, query: WebhookDeliveryQuery
) -> Found[WebhookDelivery]:
    """List the deliveries to a webhook, newest first."""
    wanted = query.of_webhook(changes.get(project, webhook_id).id)
    part = Slice(size=query.size, before=read_cursor(query.cursor))
    return Found.of_page(
        log.list_deliveries(wanted, part, session=db.session()), WebhookDelivery.of
    )


@webhook_deliveries.get(_ONE_DELIVERY)
@operation("webhook_deliveries.show", returns=WebhookDeliveryDetail)
def show(project: ProjectView, webhook_id: int, delivery_id: int) -> WebhookDeliveryDetail:
    """Show a delivery with what was sent and what came back."""
    return _shown(project, webhook_id, delivery_id)


@webhook_deliveries.post(f"{_ONE_DELIVERY}/send_again")
@operation("webhook_deliveries.send_again", returns=WebhookDeliveryDetail, status=202)
def send_again(project: ProjectView, webhook_id: int, delivery_id: int) -> WebhookDeliveryDetail:
    """Queue a delivery again, with the same id."""
    changes.send_again(project, webhook_id, delivery_id)
    return _shown(project, webhook_id, delivery_id)


def _shown(project: ProjectView, webhook_id: int, delivery_id: int) -> WebhookDeliveryDetail:
    webhook = changes.get(project, webhook_id)
    found = log.get_delivery(webhook.id, delivery_id, session=db.session())
    return WebhookDeliveryDetail.of(found)
