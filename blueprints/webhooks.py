"""Pages for a project's outgoing webhooks and their deliveries."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.change_feed import Follower, waits_since
from domain.core.database.paging import LARGEST_ID
from domain.core.errors import ConflictError
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from domain.delivery.webhooks import actions, endpoints
from domain.delivery.webhooks.endpoints import MOST_ENDPOINTS, recent_deliveries
from domain.delivery.webhooks.types import DeliveryState, WebhookBody, WebhookChangeBody, read_state
from domain.projects.views import ProjectView
from forms.webhooks import EVENT_CHOICES, SecretRotationForm, WebhookForm
from web.access.decorators import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.pages.sent_tests import say_sent
from web.sealing.sealer import keep_one_time_secret, take_one_time_secret
from web.services import settings

_AT = "/<names:project_path>/-/settings/webhooks"
_ONE = f"/<int(max={LARGEST_ID}):webhook_id>"
_SECRET = "webhook"  # noqa: S105 - a name

webhooks = PageBlueprint("webhooks", __name__, url_prefix=_AT)


@webhooks.get("")
@permitted("webhooks.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the webhooks with their delivery status."""
    list_query()
    found = actions.list_webhooks(work(), project, DestinationQuery(per_page=MOST_ENDPOINTS))
    return render_template("webhooks/index.html", project=project, webhooks=found.items)


@webhooks.route("/new", methods=["GET", "POST"])
@permitted("webhooks.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a webhook and show its secret."""
    form = WebhookForm(events=[each["name"] for each in EVENT_CHOICES])
    made = form.carry_out(
        lambda: actions.create_webhook(work(), project, form.webhook(WebhookBody))
    )
    if made is not None:
        keep_one_time_secret(_SECRET, made.id, made.secret)
        return _back_to(project, made.id)
    return form_page("webhooks/new.html", form, project=project, events=EVENT_CHOICES)


@webhooks.get(_ONE)
@permitted("webhooks.show")
def show(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Show a webhook, with its secret if it was just created or rotated."""
    list_query()
    return _show_page(project, webhook_id)


@webhooks.post(_ONE)
@permitted("webhooks.change")
def change(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Change the URL, events and conditions of a webhook."""
    form = WebhookForm()
    changed = form.carry_out(
        lambda: actions.change_webhook(work(), project, webhook_id, form.webhook(WebhookChangeBody))
    )
    if changed is None:
        return _show_page(project, webhook_id, form=form)
    flash("Webhook saved.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{_ONE}/rotate_secret")
@permitted("webhooks.rotate_secret")
def rotate_secret(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Create a new secret and show it; the old secret stays valid for the chosen time."""
    form = SecretRotationForm()
    made = form.carry_out(
        lambda: actions.rotate_secret(work(), project, webhook_id, form.read(SecretRotationBody))
    )
    if made is None:
        return _show_page(project, webhook_id, rotation=form)
    keep_one_time_secret(_SECRET, webhook_id, made.secret)
    return _back_to(project, webhook_id)


@webhooks.post(f"{_ONE}/test", endpoint="send_test")
@permitted("webhooks.send_test")
def send_test_message(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Send a test message immediately and show the result."""
    say_sent(actions.send_test(work(), project, webhook_id), "test message")
    return _back_to(project, webhook_id)


@webhooks.post(f"{_ONE}/pause")
@permitted("webhooks.change")
def pause(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Pause sending to a webhook."""
    actions.pause_webhook(work(), project, webhook_id)
    flash("Webhook paused. Nothing is sent until you resume it.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{_ONE}/resume")
@permitted("webhooks.change")
def resume(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Resume sending, including queued events."""
    actions.resume_webhook(work(), project, webhook_id)
    flash("Sending resumed.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{_ONE}/delete")
@permitted("webhooks.delete")
def delete(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Delete a webhook and its queued events."""
    removed = actions.delete_webhook(work(), project, webhook_id)
    flash(f"The webhook {removed.shown_url} was deleted.")
    return redirect(url_for("webhooks.index", project_path=project.path))


def _show_page(
    project: ProjectView,
    webhook_id: int,
    *,
    form: WebhookForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    webhook = actions.show_webhook(work(), project, webhook_id)
    form = form or WebhookForm.of(webhook)
    rotation = rotation or SecretRotationForm()
    page = render_template(
        "webhooks/show.html",
        project=project,
        webhook=webhook,
        form=form,
        events=EVENT_CHOICES,
        rotation=rotation,
        recent=recent_deliveries(webhook_id, session=db.session()),
        secret=take_one_time_secret(_SECRET, webhook_id),
        pause_days=settings().webhook_pause_days,
    )
    is_wrong = bool(form.errors or rotation.errors)
    return page, 422 if is_wrong else 200, {"Cache-Control": "no-store"}


def _back_to(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    return redirect(url_for("webhooks.show", project_path=project.path, webhook_id=webhook_id))


webhook_deliveries = PageBlueprint(
    "webhook_deliveries", __name__, url_prefix=f"{_AT}{_ONE}/deliveries"
)
_ONE_DELIVERY = f"/<int(max={LARGEST_ID}):delivery_id>"


@webhook_deliveries.get("", endpoint="index")
@permitted("webhook_deliveries.index")
def list_deliveries(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """List the deliveries with their results."""
    webhook = actions.show_webhook(work(), project, webhook_id)
    given = list_query("state", *CURSORS)
    state = read_state(given.get("state"))
    found = endpoints.list_deliveries(webhook_id, state, asked_slice(), session=db.session())
    return render_template(
        "webhooks/deliveries.html",
        waits_since=waits_since(Follower.WEBHOOKS, [project.id], session=db.session()),
        project=project,
        webhook=webhook,
        chosen=state,
        states=tuple(DeliveryState),
        page=page_links(found),
    )


@webhook_deliveries.get(_ONE_DELIVERY, endpoint="show")
@permitted("webhook_deliveries.show")
def show_delivery(project: ProjectView, webhook_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show the request and the response of a delivery."""
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
