"""Pages that preview and save the fix for a warning about an integration's deliveries."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.integrations import mapping_actions
from domain.alerts.integrations.integrations import get_receiving_integration
from domain.alerts.integrations.mapping_types import AlertMappingBody
from domain.alerts.integrations.sender_warnings import WarningKind, find_warnings
from domain.alerts.parsing.mapping import FieldMapping
from domain.core.errors import ConflictError, InvalidError
from domain.core.types.validation import validate_body
from domain.projects.views import ProjectView
from forms.integrations import WarningFixForm
from web.access.decorators import permission_required
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work

integration_warnings = PageBlueprint(
    "integration_warnings",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/warnings",
)


@integration_warnings.get("/<kind>")
@permission_required("alert_mappings.preview")
def show(project: ProjectView, integration_id: int, kind: str) -> ResponseReturnValue:
    """Show the fix for a warning, and its effect on the stored deliveries."""
    integration = get_receiving_integration(get_unit_of_work(), project, integration_id)
    found = find_warnings(get_unit_of_work(), integration)
    warning = next((w for w in found if w.kind == kind and (w.fix or w.severity_words)), None)
    if warning is None:
        flash("The latest deliveries do not cause this warning.")
        return _redirect_to_log(project, integration_id)
    fix = warning.fix
    mapping = FieldMapping(fix.mapping, fix.rules.rules) if fix else integration.mapping
    return render_template(
        "integrations/fix.html",
        project=project,
        integration=integration,
        warning=warning,
        mapping=mapping,
        form=WarningFixForm(formdata=None, fix=fix.model_dump_json() if fix else ""),
    )


@integration_warnings.post("/<kind>")
@permission_required("alert_mappings.change")
def save(project: ProjectView, integration_id: int, kind: str) -> ResponseReturnValue:
    """Save the fix for a warning: a mapping, or a table of severity words."""
    form, unit = WarningFixForm(), get_unit_of_work()
    try:
        if kind == WarningKind.UNKNOWN_SEVERITY:
            mapping_actions.add_severity_words(
                unit, project, integration_id, form.chosen_severities
            )
            flash("Severity words saved. To apply them to stored deliveries, send them again.")
        else:
            body = validate_body(AlertMappingBody, form.parse_fixed_mapping())
            mapping_actions.change_mapping(unit, project, integration_id, body)
            flash("Mapping saved. It applies to new deliveries.")
    except (ConflictError, InvalidError) as error:
        flash(str(error), "error")
        url = url_for(
            "integration_warnings.show",
            project_path=project.path,
            integration_id=integration_id,
            kind=kind,
        )
        return redirect(url)
    return _redirect_to_log(project, integration_id)


def _redirect_to_log(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    return redirect(url_for("deliveries.index", project_path=path, integration_id=integration_id))
