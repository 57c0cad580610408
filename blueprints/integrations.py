"""A project's alert integrations: list, create, configure, credentials, test, deliveries."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts import integrations as domain
from domain.alerts.deliveries import get_delivery, list_deliveries
from domain.alerts.examples import example_body, snippets
from domain.alerts.integrations import IntegrationDetails, IntegrationType, IntegrationView
from domain.alerts.parcel import Parcel
from domain.alerts.receivers import BodyTooLargeError, DisabledReceiverError
from domain.alerts.trial import TrialResult, send_trial
from domain.errors import DomainError, InvalidError
from domain.paging import Slice, read_cursor
from domain.projects.views import ProjectView
from forms.integration import IntegrationForm, NewIntegrationForm
from forms.test_alert import TestAlertForm
from web.access import project_member, visitor
from web.extensions import db
from web.pages import page_links
from web.places import integration_place
from web.services import now, reading, services, settings

integrations = Blueprint(
    "integrations", __name__, url_prefix="/<names:project_path>/-/settings/integrations"
)


@integrations.get("")
@project_member(at_least=Role.DEVELOPER)
def index(project: ProjectView) -> ResponseReturnValue:
    """List name, type and status. Developers come here to send test alerts."""
    found = domain.list_integrations(integration_place(project), session=db.session())
    return render_template("integrations/index.html", project=project, integrations=found)


@integrations.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView) -> ResponseReturnValue:
    """Create an integration and show its credentials."""
    form = NewIntegrationForm(type=request.args.get("type", "http"), active=True)
    if not form.validate_on_submit():
        return _form_page("new", form, project)
    try:
        created, _ = domain.create_integration(
            integration_place(project),
            IntegrationType(form.type.data),
            _details(form),
            session=db.session(),
            keyring=services().keyring,
            now=now(),
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("new", form, project)
    flash("The integration is saved. Give these credentials to the sender.")
    return redirect(_url("credentials", project, created.id))


@integrations.route("/<int:integration_id>/configure", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def configure(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Change name and address, and turn it on or off."""
    row = _row(project, integration_id)
    form = IntegrationForm(name=row.name, active=row.active, api_url=row.api_url)
    if not form.validate_on_submit():
        return _form_page("configure", form, project, _view(project, row))
    try:
        domain.change_integration(row, _details(form), session=db.session())
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _form_page("configure", form, project, _view(project, row))
    flash("The integration is saved.")
    return redirect(_url("configure", project, integration_id))


@integrations.get("/<int:integration_id>/credentials")
@project_member(at_least=Role.MAINTAINER)
def credentials(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show address and key, and what to paste where."""
    row = _row(project, integration_id)
    seen = _view(project, row)
    key = services().keyring.decrypt(row.key_ciphertext)
    page = render_template(
        "integrations/credentials.html",
        project=project,
        integration=seen,
        key=key,
        key_last_used_at=row.key_last_used_at,
        previous_key_expires_at=row.previous_key_expires_at,
        snippets=snippets(seen.type, seen.url, key, now=now()),
    )
    return page, 200, {"Cache-Control": "no-store"}


@integrations.post("/<int:integration_id>/reset_key")
@project_member(at_least=Role.MAINTAINER)
def reset_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the key at once."""
    domain.reset_key(_row(project, integration_id), keyring=services().keyring)
    flash("The key is replaced. Senders with the old one are refused from now on.")
    return redirect(_url("credentials", project, integration_id))


@integrations.route("/<int:integration_id>/test", methods=["GET", "POST"])
@project_member(at_least=Role.DEVELOPER)
def test(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Send a test alert and explain what became of it."""
    row = _row(project, integration_id)
    seen = _view(project, row)
    form = TestAlertForm(payload=example_body(seen.type, now=now()))
    if not form.validate_on_submit():
        return _test_page(project, seen, form)
    try:
        result = _send_trial(project, seen, form.payload.data or "")
    except DomainError as error:
        form.object_to("payload", str(error))
        return _test_page(project, seen, form)
    return _test_page(project, seen, form, result)


def _send_trial(project: ProjectView, seen: IntegrationView, payload: str) -> TrialResult:
    body = payload.encode("utf-8", "surrogatepass")
    if not seen.active or seen.type is IntegrationType.EXTERNAL:
        message = "This integration is turned off; turn it on under “Configure” first."
        raise DisabledReceiverError(message)
    limit = settings().alert_body_limit_bytes
    if len(body) > limit:
        message = f"The payload is larger than {limit} bytes."
        raise BodyTooLargeError(message)
    parcel = Parcel(
        project_id=project.id,
        integration_id=seen.id,
        format=seen.type.value,
        sender=visitor().username[:64],
        body=body,
        received_at=now(),
        is_test=True,
    )
    return send_trial(parcel, hot=services().hot, reading=reading())


@integrations.get("/<int:integration_id>/deliveries")
@project_member(at_least=Role.MAINTAINER)
def deliveries(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """List what came and what became of it."""
    row = _row(project, integration_id)
    part = Slice(size=settings().page_size, before=read_cursor(request.args.get("before")))
    found = list_deliveries(integration_id, part, session=db.session())
    return render_template(
        "integrations/deliveries.html",
        project=project,
        integration=_view(project, row),
        page=page_links(found),
    )


@integrations.get("/<int:integration_id>/deliveries/<int:delivery_id>")
@project_member(at_least=Role.MAINTAINER)
def delivery(project: ProjectView, integration_id: int, delivery_id: int) -> ResponseReturnValue:
    """Show one delivery with its payload."""
    row = _row(project, integration_id)
    return render_template(
        "integrations/delivery.html",
        project=project,
        integration=_view(project, row),
        delivery=get_delivery(integration_id, delivery_id, session=db.session()),
    )


@integrations.get("/<int:integration_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Ask whether the integration shall really go."""
    seen = _view(project, _row(project, integration_id))
    return render_template("integrations/delete.html", project=project, integration=seen)


@integrations.post("/<int:integration_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def remove(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Delete the integration; its alerts stay."""
    row = _row(project, integration_id)
    domain.remove_integration(row, session=db.session())
    flash(f"{row.name} is deleted; its alerts stay.")
    return redirect(url_for("integrations.index", project_path=project.path))


def _row(project: ProjectView, integration_id: int) -> domain.IntegrationRow:
    return domain.get_integration(integration_id, project_id=project.id, session=db.session())


def _view(project: ProjectView, row: domain.IntegrationRow) -> IntegrationView:
    return domain.view(row, integration_place(project), session=db.session())


def _details(form: IntegrationForm) -> IntegrationDetails:
    return IntegrationDetails(
        name=form.name.data or "",
        active=form.active.data,
        api_url=(form.api_url.data or "").strip() or None,
    )


def _url(view: str, project: ProjectView, integration_id: int) -> str:
    return url_for(f"integrations.{view}", project_path=project.path, integration_id=integration_id)


def _form_page(
    name: str,
    form: IntegrationForm,
    project: ProjectView,
    integration: IntegrationView | None = None,
) -> ResponseReturnValue:
    page = render_template(
        f"integrations/{name}.html", project=project, integration=integration, form=form
    )
    return page, 422 if form.errors else 200


def _test_page(
    project: ProjectView,
    integration: IntegrationView,
    form: TestAlertForm,
    result: TrialResult | None = None,
) -> ResponseReturnValue:
    page = render_template(
        "integrations/test.html",
        project=project,
        integration=integration,
        form=form,
        result=result,
    )
    return page, 422 if form.errors else 200
