"""The delivery log of a webhook, and the action that sends one again."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.webhooks.settings import AT, ONE
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError
from domain.projects.views import ProjectView
from domain.webhooks import actions, log
from domain.webhooks.types import DeliveryState, read_state
from web.access.marks import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.pages.refusals import refusals_shown

webhook_deliveries = PageBlueprint(
    "webhook_deliveries", __name__, url_prefix=f"{AT}{ONE}/deliveries"
)
_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"


@webhook_deliveries.get("")
@permitted("webhook_deliveries.index")
def index(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """List the deliveries with their results."""
    webhook = actions.show_webhook(work(), project, webhook_id)
    given = list_query("state", *CURSORS)
    wanted = log.DeliveryFilter(endpoint_id=webhook_id, state=read_state(given.get("state")))
    return render_template(
        "webhooks/deliveries.html",
        project=project,
        webhook=webhook,
        wanted=wanted,
        states=tuple(DeliveryState),
        page=page_links(log.list_deliveries(wanted, asked_slice(), session=db.session())),
    )


@webhook_deliveries.get(_ONE_DELIVERY)
@permitted("webhook_deliveries.show")
def show(project: ProjectView, webhook_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show what was sent and what came back."""
    webhook = actions.show_webhook(work(), project, webhook_id)
    return render_template(
        "webhooks/delivery.html",
        project=project,
        webhook=webhook,
        delivery=actions.show_delivery(work(), project, webhook_id, delivery_id),
    )


@webhook_deliveries.post(f"{_ONE_DELIVERY}/send_again")
@permitted("webhook_deliveries.send_again")
def send_again(project: ProjectView, webhook_id: int, delivery_id: int) -> ResponseReturnValue:
    """Queue a delivery again, with the same id."""
    with refusals_shown(ConflictError):
        actions.send_again(work(), project, webhook_id, delivery_id)
        flash("The delivery is being sent again. Reload the page to see the result.")
    url = url_for(
        "webhook_deliveries.show",
        project_path=project.path,
        webhook_id=webhook_id,
        delivery_id=delivery_id,
    )
    return redirect(url)
