"""The delivery log of an integration, and the action that sends a stored body again."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts.deliveries import log as domain
from domain.alerts.deliveries.warnings import warnings_of
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations.test_alerts import send_again as receive_again
from domain.alerts.receiving.receivers import DisabledReceiverError
from domain.alerts.receiving.refusals import store_refusal
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.errors import DomainError
from domain.projects.views import ProjectView
from web.access.marks import project_member
from web.alerts.page_deliveries import page_delivery
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.errors import status_of
from web.pages.links import page_links
from web.pages.list_query import asked_slice, list_query
from web.pages.namespaces import integration_of
from web.services import reading, services

deliveries = PageBlueprint(
    "deliveries",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/deliveries",
)


@deliveries.get("")
@project_member(at_least=Role.MAINTAINER)
def index(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """List the deliveries with their outcomes."""
    integration = integration_of(project, integration_id)
    given = list_query("show", "status", "before")
    wanted = domain.DeliveryFilter(
        integration_id=integration_id,
        show=domain.read_selection(given.get("show")),
        status_code=domain.read_status(given.get("status")),
    )
    return render_template(
        "integrations/deliveries.html",
        project=project,
        integration=integration,
        wanted=wanted,
        shows=tuple(domain.DeliverySelection),
        refusals=domain.count_refusals(integration_id, session=db.session()),
        warnings=warnings_of(integration_id, session=db.session()),
        recent=domain.RECENT,
        page=page_links(domain.list_deliveries(wanted, asked_slice(), session=db.session())),
    )


@deliveries.get("/<int:delivery_id>")
@project_member(at_least=Role.MAINTAINER)
def show(project: ProjectView, integration_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show one delivery with its payload."""
    integration = integration_of(project, integration_id)
    return render_template(
        "integrations/delivery.html",
        project=project,
        integration=integration,
        delivery=domain.get_delivery(integration_id, delivery_id, session=db.session()),
    )


@deliveries.post("/<int:delivery_id>/send_again")
@project_member(at_least=Role.MAINTAINER).but(writes=False)
def send_again(project: ProjectView, integration_id: int, delivery_id: int) -> ResponseReturnValue:
    """Store the body of a delivery as a new one, read with the present mapping."""
    integration = integration_of(project, integration_id)
    if not integration.active or integration.type is IntegrationType.EXTERNAL:
        raise DisabledReceiverError("This integration is off; turn it on first.")
    body = domain.get_body(integration_id, delivery_id, session=db.session())
    new_id = _receive(page_delivery(integration, body), delivery_id)
    url = url_for(
        "deliveries.show",
        project_path=project.path,
        integration_id=integration_id,
        delivery_id=new_id,
    )
    return redirect(url)


def _receive(delivery: InboundDelivery, earlier_id: int) -> int:
    """Return the id of the new delivery, accepted or refused."""
    connection = services().connections
    try:
        result = receive_again(
            delivery, earlier_id=earlier_id, connection=connection, reading=reading()
        )
    except DomainError as error:
        flash("The delivery was processed again and rejected.", "error")
        return store_refusal(delivery, status_of(error), error, connection=connection)
    flash(f"Delivery {earlier_id} was sent again as this delivery.")
    return result.delivery_id
