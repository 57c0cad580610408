"""/<project>/-/settings/webhooks: outgoing webhooks of a project."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError
from domain.projects.views import ProjectView
from domain.webhooks.endpoints import list_endpoints
from domain.webhooks.log import recent_deliveries
from forms.audit_stream import SecretRotationForm
from forms.webhook import EVENT_CHOICES, WebhookForm
from web.access.marks import project_member
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
from web.sealing.one_time_secrets import keep_one_time_secret, take_one_time_secret
from web.services import now, settings
from web.webhooks import changes

AT = "/<names:project_path>/-/settings/webhooks"
ONE = f"/<int(max={LARGEST_ID}):webhook_id>"
_SECRET = "webhook"  # noqa: S105 - a name

webhooks = PageBlueprint("webhooks", __name__, url_prefix=AT)


@webhooks.get("")
@project_member(at_least=Role.MAINTAINER)
def index(project: ProjectView) -> ResponseReturnValue:
    """List the webhooks with the state of their delivery."""
    list_query()
    found = list_endpoints(project.id, session=db.session(), now=now())
    return render_template("webhooks/index.html", project=project, webhooks=found)


@webhooks.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView) -> ResponseReturnValue:
    """Create a webhook and show its secret."""
    form = WebhookForm(events=[each["name"] for each in EVENT_CHOICES])
    if form.validate_on_submit() and form.has_valid_conditions():
        try:
            made = changes.create(project, form.details)
        except ConflictError as error:
            form.object_to("", str(error))
        else:
            keep_one_time_secret(_SECRET, made.endpoint.id, made.secret)
            return _back_to(project, made.endpoint.id)
    page = render_template("webhooks/new.html", project=project, form=form, events=EVENT_CHOICES)
    return page, 422 if form.errors else 200


@webhooks.get(ONE)
@project_member(at_least=Role.MAINTAINER)
def show(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Show a webhook, with its secret right after its creation or rotation."""
    list_query()
    return _show_page(project, webhook_id)


@webhooks.post(ONE)
@project_member(at_least=Role.MAINTAINER)
def change(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Change URL, events and conditions."""
    form = WebhookForm()
    if not (form.validate_on_submit() and form.has_valid_conditions()):
        return _show_page(project, webhook_id, form=form)
    changes.change(project, webhook_id, form.details)
    flash("Webhook saved.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{ONE}/rotate_secret")
@project_member(at_least=Role.MAINTAINER)
def rotate_secret(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Create a new secret and show it; the old one signs for the chosen time."""
    rotation = SecretRotationForm()
    if not rotation.validate_on_submit():
        return _show_page(project, webhook_id, rotation=rotation)
    until = now() + rotation.chosen.length
    made = changes.rotate(project, webhook_id, previous_until=until)
    keep_one_time_secret(_SECRET, webhook_id, made.secret)
    return _back_to(project, webhook_id)


@webhooks.post(f"{ONE}/test", endpoint="send_test")
@project_member(at_least=Role.MAINTAINER)
def send_test_message(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Send a test message at once, and say what came of it."""
    result = changes.send_test(project, webhook_id).attempt
    if result.problem is None:
        flash(f"Test message delivered: {result.status} after {result.milliseconds} ms.")
    else:
        flash(f"The test message was not delivered: {result.problem}.", "error")
    return _back_to(project, webhook_id)


@webhooks.post(f"{ONE}/pause")
@project_member(at_least=Role.MAINTAINER)
def pause(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Stop sending to a webhook."""
    changes.pause(project, webhook_id)
    flash("Paused. Nothing is sent until you resume.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{ONE}/resume")
@project_member(at_least=Role.MAINTAINER)
def resume(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Send from now on, and at once what waits."""
    changes.resume(project, webhook_id)
    flash("Events are sent from now on.")
    return _back_to(project, webhook_id)


@webhooks.post(f"{ONE}/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, webhook_id: int) -> ResponseReturnValue:
    """Delete a webhook with what waits for it."""
    removed = changes.remove(project, webhook_id)
    flash(f"The webhook {removed.shown_url} was deleted.")
    return redirect(url_for("webhooks.index", project_path=project.path))


def _show_page(
    project: ProjectView,
    webhook_id: int,
    *,
    form: WebhookForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    webhook = changes.get(project, webhook_id)
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
