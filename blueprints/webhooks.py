"""Pages for a project's outgoing webhooks and their deliveries."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.change_feed import Follower, find_oldest_change_time
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from domain.delivery.webhooks import actions, endpoints
from domain.delivery.webhooks.endpoints import MAX_ENDPOINTS, list_recent_deliveries
from domain.delivery.webhooks.types import (
    DeliveryState,
    WebhookBody,
    WebhookChangeBody,
    parse_delivery_state,
)
from domain.projects.views import ProjectView
from forms.webhooks import EVENT_CHOICES, SecretRotationForm, WebhookForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.delivery_test_notices import flash_delivery_test_result
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.sealing.sealed_values import store_one_time_secret, take_one_time_secret
from web.services import get_settings

_COLLECTION_PATH = "/<names:project_path>/-/settings/webhooks"
_ITEM_PATH = f"/<int(max={MAX_ID}):webhook_id>"
_SECRET_NAME = "webhook"  # noqa: S105 - a name

webhooks = PageBlueprint("webhooks", __name__, url_prefix=_COLLECTION_PATH)


@webhooks.get("")
@permission_required("webhooks.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the webhooks with their delivery status."""
    get_list_query()
    found = actions.list_webhooks(
        get_unit_of_work(), project, DestinationQuery(per_page=MAX_ENDPOINTS)
    )
    return render_template("webhooks/index.html", project=project, webhooks=found.items)


@webhooks.route("/new", methods=["GET", "POST"])
@permission_required("webhooks.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a webhook and show its secret."""
    form = WebhookForm(events=[each["name"] for each in EVENT_CHOICES])
    made = form.run_if_valid(
        lambda: actions.create_webhook(get_unit_of_work(), project, form.build_webhook(WebhookBody))
    )
    if made is not None:
        store_one_time_secret(_SECRET_NAME, made.id, made.secret)
        return _redirect_to_webhook(project, made.id)
    return render_form_page("webhooks/new.html", form, project=project, events=EVENT_CHOICES)


@webhooks.get(_ITEM_PATH)
@permission_required("webhooks.show")
def show(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Show a webhook, with its secret if the secret was just created or rotated."""
    get_list_query()
    return _render_show_page(project, webhook_id)


@webhooks.post(_ITEM_PATH)
@permission_required("webhooks.change")
def change(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Change the URL, events and conditions of a webhook."""
    form = WebhookForm()
    changed = form.run_if_valid(
        lambda: actions.change_webhook(
            get_unit_of_work(), project, webhook_id, form.build_webhook(WebhookChangeBody)
        )
    )
    if changed is None:
        return _render_show_page(project, webhook_id, form=form)
    flash("Webhook saved.")
    return _redirect_to_webhook(project, webhook_id)


@webhooks.post(f"{_ITEM_PATH}/rotate_secret")
@permission_required("webhooks.rotate_secret")
def rotate_secret(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Create a new secret and show it.

    The old secret stays valid for the chosen time.
    """
    form = SecretRotationForm()
    made = form.run_if_valid(
        lambda: actions.rotate_secret(
            get_unit_of_work(), project, webhook_id, form.build_entered_body(SecretRotationBody)
        )
    )
    if made is None:
        return _render_show_page(project, webhook_id, rotation=form)
    store_one_time_secret(_SECRET_NAME, webhook_id, made.secret)
    return _redirect_to_webhook(project, webhook_id)


@webhooks.post(f"{_ITEM_PATH}/test", endpoint="send_test")
@permission_required("webhooks.send_test")
def send_test_message(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Send a test message immediately and show the result."""
    flash_delivery_test_result(
        actions.send_test(get_unit_of_work(), project, webhook_id), "test message"
    )
    return _redirect_to_webhook(project, webhook_id)


@webhooks.post(f"{_ITEM_PATH}/pause")
@permission_required("webhooks.change")
def pause(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Pause a webhook, so that nothing is sent until it is resumed."""
    actions.pause_webhook(get_unit_of_work(), project, webhook_id)
    flash("Webhook paused. Nothing is sent until you resume it.")
    return _redirect_to_webhook(project, webhook_id)


@webhooks.post(f"{_ITEM_PATH}/resume")
@permission_required("webhooks.change")
def resume(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Resume a webhook, starting with its queued events."""
    actions.resume_webhook(get_unit_of_work(), project, webhook_id)
    flash("Sending resumed.")
    return _redirect_to_webhook(project, webhook_id)


@webhooks.post(f"{_ITEM_PATH}/delete")
@permission_required("webhooks.delete")
def delete(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Delete a webhook and its queued events."""
    removed = actions.delete_webhook(get_unit_of_work(), project, webhook_id)
    flash(f"The webhook {removed.redacted_url} was deleted.")
    return redirect(url_for("webhooks.index", project_path=project.path))


def _render_show_page(
    project: ProjectView,
    webhook_id: int,
    *,
    form: WebhookForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    webhook = actions.show_webhook(get_unit_of_work(), project, webhook_id)
    form = form or WebhookForm.from_webhook(webhook)
    rotation = rotation or SecretRotationForm()
    page = render_template(
        "webhooks/show.html",
        project=project,
        webhook=webhook,
        form=form,
        events=EVENT_CHOICES,
        rotation=rotation,
        recent=list_recent_deliveries(webhook_id, session=db.session()),
        secret=take_one_time_secret(_SECRET_NAME, webhook_id),
        pause_days=get_settings().webhook_pause_days,
    )
    is_wrong = bool(form.errors or rotation.errors)
    return page, 422 if is_wrong else 200, {"Cache-Control": "no-store"}


def _redirect_to_webhook(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    return redirect(url_for("webhooks.show", project_path=project.path, webhook_id=webhook_id))


webhook_deliveries = PageBlueprint(
    "webhook_deliveries", __name__, url_prefix=f"{_COLLECTION_PATH}{_ITEM_PATH}/deliveries"
)
_DELIVERY_PATH = f"/<int(max={MAX_ID}):delivery_id>"


@webhook_deliveries.get("", endpoint="index")
@permission_required("webhook_deliveries.index")
def list_deliveries(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """List the deliveries with their results."""
    webhook = actions.show_webhook(get_unit_of_work(), project, webhook_id)
    given = get_list_query("state", *CURSOR_PARAMETERS)
    state = parse_delivery_state(given.get("state"))
    found = endpoints.list_deliveries(
        webhook_id, state, get_requested_keyset_range(), session=db.session()
    )
    return render_template(
        "webhooks/deliveries.html",
        waits_since=find_oldest_change_time(Follower.WEBHOOKS, [project.id], session=db.session()),
        project=project,
        webhook=webhook,
        chosen=state,
        states=tuple(DeliveryState),
        page=build_page_links(found),
    )


@webhook_deliveries.get(_DELIVERY_PATH, endpoint="show")
@permission_required("webhook_deliveries.show")
def show_delivery(project: ProjectView, webhook_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show the request and the response of a delivery."""
    webhook = actions.show_webhook(get_unit_of_work(), project, webhook_id)
    return render_template(
        "webhooks/delivery.html",
        project=project,
        webhook=webhook,
        delivery=actions.show_delivery(get_unit_of_work(), project, webhook_id, delivery_id),
    )


@webhook_deliveries.post(f"{_DELIVERY_PATH}/send_again")
@permission_required("webhook_deliveries.send_again")
def send_again(project: ProjectView, webhook_id: int, delivery_id: int) -> ResponseReturnValue:
    """Queue a delivery again, with the same ID."""
    with show_errors_on_next_page(ConflictError):
        actions.resend_delivery(get_unit_of_work(), project, webhook_id, delivery_id)
        flash("The delivery is being sent again. Reload the page to see the result.")
    url = url_for(
        "webhook_deliveries.show",
        project_path=project.path,
        webhook_id=webhook_id,
        delivery_id=delivery_id,
    )
    return redirect(url)
