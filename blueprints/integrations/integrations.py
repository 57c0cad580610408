"""The list of a project's alert integrations, and pages that add and delete integrations.

The settings, keys, test alerts and deliveries of integrations have separate blueprints.
"""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations import actions
from domain.alerts.integrations import integrations as domain
from domain.alerts.integrations.delivery_counts import count_deliveries_by_hour
from domain.alerts.integrations.mapping_actions import create_recognized_integration
from domain.alerts.integrations.message_recognition import Recognition, recognize_messages
from domain.alerts.integrations.types import IntegrationWithKey, NewIntegration
from domain.projects.views import ProjectView
from forms.integrations import NewIntegrationForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.services import get_current_time, get_parser_settings

integrations = PageBlueprint(
    "integrations", __name__, url_prefix="/<names:project_path>/-/settings/integrations"
)


@integrations.get("")
@permission_required("alert_integrations.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the integrations with their names, types and statuses.

    Developers can send test alerts from this list.
    """
    found = domain.list_integrations(get_unit_of_work(), project)
    hours = count_deliveries_by_hour(project.id, session=db.session(), now=get_current_time())
    return render_template(
        "integrations/index.html", project=project, integrations=found, hours=hours
    )


@integrations.route("/new", methods=["GET", "POST"])
@permission_required("alert_integrations.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Add an integration and show its credentials.

    If the form contains sample messages, the recognized type and mapping are shown for review
    first, unless the recognition is certain.
    """
    form = NewIntegrationForm(type=request.args.get("type", FORMATS[0].name), active=True)
    found = form.run_if_valid(lambda: _recognize_messages(form)) if form.sample.data else None
    if found is not None and form.recognized.data != found.digest:
        form.apply_proposal(found.proposal)
        is_shown = found.is_sure
    else:
        is_shown = not form.errors
    if not is_shown or (found and form.do.data == "recognize"):
        return _render_new_page(form, project, found)
    created = form.run_if_valid(
        lambda: create_recognized_integration(
            get_unit_of_work(), project, form.build_entered_body(NewIntegration), found
        )
    )
    if created is None:
        return _render_new_page(form, project, found)
    flash("Integration added.")
    return redirect(_build_setup_page_url(created, project))


def _recognize_messages(form: NewIntegrationForm) -> Recognition:
    return recognize_messages(
        form.messages, form.answers, now=get_current_time(), reading=get_parser_settings()
    )


def _build_setup_page_url(created: IntegrationWithKey, project: ProjectView) -> str:
    endpoint = "integration_keys.credentials" if created.url else "integration_settings.configure"
    # Without an anchor, browsers would keep the anchor of the form.
    return url_for(endpoint, project_path=project.path, integration_id=created.id, _anchor="main")


@integrations.get("/<int:integration_id>/delete")
@permission_required("alert_integrations.delete")
def delete(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show the confirmation page for deleting an integration."""
    integration = domain.get_integration(get_unit_of_work(), project, integration_id)
    return render_template("integrations/delete.html", project=project, integration=integration)


@integrations.post("/<int:integration_id>/delete")
@permission_required("alert_integrations.delete")
def remove(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Delete the integration and keep its alerts."""
    gone = actions.delete_integration(get_unit_of_work(), project, integration_id)
    flash(f"{gone.name} was deleted. Its alerts are kept.")
    return redirect(url_for("integrations.index", project_path=project.path))


def _render_new_page(
    form: NewIntegrationForm, project: ProjectView, recognition: Recognition | None
) -> ResponseReturnValue:
    return render_form_page(
        "integrations/new.html",
        form,
        project=project,
        integration=None,
        recognition=recognition,
        may_map=domain.can_customize_integrations(get_unit_of_work()),
        types=domain.list_integration_types_in_use(project.id, session=db.session()),
    )
