"""The list of a project's alert integrations, and the pages that add and delete one.

The settings, keys, test alerts and deliveries of an integration have a blueprint each.
"""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.formats.registry import FORMATS, type_named
from domain.alerts.integrations import integrations as domain
from domain.alerts.integrations import recognition as domain_recognition
from domain.alerts.integrations.samples import save_mapping, save_severity_words
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from forms.integration import NewIntegrationForm, SampleForm
from web.access.marks import project_member
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context, integration_of
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now, reading, services

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
    form = NewIntegrationForm(type=request.args.get("type", FORMATS[0].name), active=True)
    if not form.validate_on_submit():
        return _new_page(form, project)
    try:
        created = _create(form, project)
        _apply_proposal(form, created, project)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _new_page(form, project)
    record_change("created", project, created)
    flash("Integration added.")
    return redirect(_first_page(created, project))


@integrations.post("/new/recognize")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS).but(writes=False)
def recognize(project: ProjectView) -> ResponseReturnValue:
    """Say which tool sent a payload, and propose type, mapping and severities for it."""
    pasted = SampleForm()
    form = NewIntegrationForm(formdata=None, active=True)
    if not pasted.validate_on_submit():
        return _new_page(form, project, pasted)
    try:
        found = domain_recognition.recognize(pasted.sample.data or "", now=now(), reading=reading())
    except InvalidError as error:
        pasted.object_to(error.field, str(error))
        return _new_page(form, project, pasted)
    proposed = found.proposal.format
    form.type.data, form.name.data = proposed.name, found.proposal.tool or ""
    form.sample.data = found.sample.text
    form.api_url.data = proposed.api_url.usual if proposed.api_url else None
    return _new_page(form, project, pasted, found)


def _apply_proposal(
    form: NewIntegrationForm, created: domain.IntegrationView, project: ProjectView
) -> None:
    """Save the mapping that is proposed for the sample, if it is one for this type."""
    if not form.sample.data or not created.type.has_mapping:
        return
    found = domain_recognition.recognize(form.sample.data, now=now(), reading=reading())
    mapping, session = found.proposal.mapping, db.session()
    if mapping.reads_fields and integration_context(project).allows_several:
        save_mapping(created.id, found.sample, mapping, session=session)
    elif mapping.rules.severity_words:
        save_severity_words(created.id, mapping.rules.severity_words, session=session)


def _create(form: NewIntegrationForm, project: ProjectView) -> domain.IntegrationView:
    created, _ = domain.create_integration(
        integration_context(project),
        type_named(form.type.data),
        form.details,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    return created


def _first_page(created: domain.IntegrationView, project: ProjectView) -> str:
    endpoint = (
        "integration_keys.credentials" if created.receives else "integration_settings.configure"
    )
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


def _new_page(
    form: NewIntegrationForm,
    project: ProjectView,
    pasted: SampleForm | None = None,
    recognition: domain_recognition.Recognition | None = None,
) -> ResponseReturnValue:
    pasted = pasted or SampleForm(formdata=None)
    page = render_template(
        "integrations/new.html",
        project=project,
        integration=None,
        form=form,
        pasted=pasted,
        recognition=recognition,
        may_map=integration_context(project).allows_several,
        types=domain.types_of(project.id, session=db.session()),
    )
    return page, 422 if form.errors or pasted.errors else 200
