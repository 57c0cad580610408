"""The list of a project's alert integrations, and the pages that add and delete one.

The settings, keys, test alerts and deliveries of an integration have a blueprint each.
"""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations import integrations as domain
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from forms.integration import NewIntegrationForm
from web.access.marks import project_member
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context, integration_of
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now, services

integrations = PageBlueprint(
    "integrations", __name__, url_prefix="/<names:project_path>/-/settings/integrations"
)


@integrations.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.ADMIN_INTEGRATIONS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List name, type and status; developers may send test alerts from here."""
    found = domain.list_integrations(integration_context(project), session=db.session())
    return render_template("integrations/index.html", project=project, integrations=found)


@integrations.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def new(project: ProjectView) -> ResponseReturnValue:
    """Add an integration and show its credentials."""
    form = NewIntegrationForm(type=request.args.get("type", "http"), active=True)
    if not form.validate_on_submit():
        return _new_page(form, project)
    try:
        created = _create(form, project)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _new_page(form, project)
    record_change("created", project, created)
    flash("Integration saved.")
    return redirect(_first_page(created, project))


def _create(form: NewIntegrationForm, project: ProjectView) -> domain.IntegrationView:
    created, _ = domain.create_integration(
        integration_context(project),
        IntegrationType(form.type.data),
        form.details,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    return created


def _first_page(created: domain.IntegrationView, project: ProjectView) -> str:
    is_link = created.type is IntegrationType.EXTERNAL
    endpoint = "integration_settings.configure" if is_link else "integration_keys.credentials"
    return url_for(endpoint, project_path=project.path, integration_id=created.id)


@integrations.get("/<int:integration_id>/delete")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def delete(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Ask for confirmation before the integration is deleted."""
    integration = integration_of(project, integration_id)
    return render_template("integrations/delete.html", project=project, integration=integration)


@integrations.post("/<int:integration_id>/delete")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def remove(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Delete the integration; its alerts stay."""
    integration = integration_of(project, integration_id)
    domain.remove_integration(integration.id, session=db.session())
    record_change("deleted", project, integration)
    flash(f"{integration.name} was deleted. Its alerts are kept.")
    return redirect(url_for("integrations.index", project_path=project.path))


def _new_page(form: NewIntegrationForm, project: ProjectView) -> ResponseReturnValue:
    page = render_template(
        "integrations/new.html",
        project=project,
        integration=None,
        form=form,
        types=domain.types_of(project.id, session=db.session()),
    )
    return page, 422 if form.errors else 200
