"""The settings of an integration: name, API URL, activation, and mapping."""

from dataclasses import dataclass

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.deliveries import get_delivery
from domain.alerts.integrations import actions, mapping_actions, samples
from domain.alerts.integrations import integrations as domain
from domain.alerts.integrations.mapping_actions import get_mappable_integration
from domain.alerts.integrations.mapping_preview import (
    MappingPreview,
    SamplePreview,
    preview_deliveries,
    preview_sample,
)
from domain.alerts.integrations.received_labels import find_received_labels
from domain.alerts.integrations.samples import MappingDraft
from domain.alerts.integrations.types import IntegrationChange, IntegrationView
from domain.alerts.reading.mapping_rules import Operator
from domain.core.database.paging import get_row_id
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from forms.integrations import (
    IntegrationForm,
    MappingForm,
    SeverityWordForm,
    SeverityWordsForm,
    build_severity_words_form,
)
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.services import get_current_time, get_parser_settings

integration_settings = PageBlueprint(
    "integration_settings",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@dataclass(frozen=True, kw_only=True)
class _MappingEditor:
    """The mapping form, the submitted draft, and previews of the draft."""

    form: MappingForm
    integration: IntegrationView
    draft: MappingDraft | None = None
    #: Preview of the draft applied to the latest deliveries, if one was requested.
    mapping_preview: MappingPreview | None = None

    @property
    def sample_preview(self) -> SamplePreview | None:
        """Alert that the sample would create, or None if there is no draft."""
        if self.draft is None:
            return None
        return preview_sample(
            self.draft,
            self.integration.format,
            now=get_current_time(),
            reading=get_parser_settings(),
        )


@integration_settings.route("/configure", methods=["GET", "POST"])
@permission_required("alert_integrations.change")
def configure(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show all settings, and change the name, the API URL and the activation."""
    integration = domain.get_integration(get_unit_of_work(), project, integration_id)
    form = _build_settings_form(integration, is_posted=True)
    form.use(request.form.get("use", ""))
    if form.run_if_valid(
        lambda: actions.change_integration(
            get_unit_of_work(), project, integration_id, form.build_entered_body(IntegrationChange)
        )
    ):
        flash("Integration saved.")
        return _redirect_to_settings(project, integration_id)
    return _render_settings_page(project, integration, form, _build_editor(integration))


@integration_settings.post("/mapping")
@permission_required("alert_mappings.change")
def change_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Parse a sample, or preview or save a mapping. A new sample has to be mapped first."""
    integration, form = (
        get_mappable_integration(get_unit_of_work(), project, integration_id),
        MappingForm(),
    )
    draft, action = _parse_posted_draft(form, integration), request.form.get("do")
    if draft is None or draft.is_new_sample or action != "save":
        preview = _build_mapping_preview(integration, draft) if draft and action == "try" else None
        editor = _MappingEditor(
            form=form, integration=integration, draft=draft, mapping_preview=preview
        )
        return _render_settings_page(
            project, integration, _build_settings_form(integration, is_posted=False), editor
        )
    mapping_actions.save_mapping_draft(get_unit_of_work(), project, integration_id, draft)
    flash("Mapping saved. It applies to new deliveries.")
    return _redirect_to_settings(project, integration_id)


@integration_settings.post("/mapping/preview")
@permission_required("alert_mappings.preview").with_changes(writes=False)
def preview_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Return the page section with the alert that the sample would create."""
    integration, form = (
        get_mappable_integration(get_unit_of_work(), project, integration_id),
        MappingForm(),
    )
    editor = _MappingEditor(
        form=form, integration=integration, draft=_parse_posted_draft(form, integration)
    )
    page = render_template("integrations/_sample_preview.html", editor=editor)
    return page, 422 if form.errors else 200


@integration_settings.post("/mapping/remove")
@permission_required("alert_mappings.delete")
def remove_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Delete the sample and the mapping."""
    mapping_actions.delete_mapping(get_unit_of_work(), project, integration_id)
    flash("Mapping removed. New deliveries are read with the default field names.")
    return _redirect_to_settings(project, integration_id)


def _build_settings_form(integration: IntegrationView, *, is_posted: bool) -> IntegrationForm:
    declared = integration.type.api_url
    usual = declared.default if declared else None
    values = {**vars(integration), "api_url": integration.api_url or usual}
    form = IntegrationForm(**values) if is_posted else IntegrationForm(formdata=None, **values)
    form.api_url.flags.required = bool(declared and declared.error_message)
    form.name.flags.required = domain.requires_integration_name(integration, session=db.session())
    form.joined_with.choices = domain.list_joinable_integrations(integration, session=db.session())
    return form


def _parse_posted_draft(form: MappingForm, integration: IntegrationView) -> MappingDraft | None:
    """Return the posted draft, or add the errors to the form and return None."""
    if not form.validate_on_submit():
        return None
    try:
        return samples.parse_draft(
            form.sample.data or "",
            form.chosen,
            integration,
            mapped_for=form.mapped_for.data or "",
            nesting_limit=get_parser_settings().nesting_limit,
        )
    except InvalidError as error:
        form.add_error(error.field, str(error))
        return None


def _build_editor(integration: IntegrationView) -> _MappingEditor:
    """Return the editor for the saved mapping, or with a delivery's body as a new sample."""
    delivery_id = get_row_id(request.args, "sample")
    if delivery_id is None:
        form = MappingForm(formdata=None, sample=integration.sample)
        return _MappingEditor(
            form=form, integration=integration, draft=_load_draft(integration, form)
        )
    text = get_delivery(integration.id, delivery_id, session=db.session()).body or ""
    form = MappingForm(formdata=None, sample=text)
    return _MappingEditor(
        form=form, integration=integration, draft=_load_draft(integration, form, text)
    )


def _load_draft(
    integration: IntegrationView, form: MappingForm, text: str | None = None
) -> MappingDraft | None:
    """Return the draft for a new sample, or the saved draft if there is no new sample.

    If the sample is invalid, add the errors to the form and return None.
    """
    limit = get_parser_settings().nesting_limit
    try:
        if text is None:
            return samples.load_saved_draft(integration, nesting_limit=limit)
        sample = samples.parse_sample(text, nesting_limit=limit)
        return samples.build_proposed_draft(sample, integration.mapping.rules.severity_words)
    except InvalidError as error:
        form.add_error(error.field, str(error))
        return None


def _build_mapping_preview(integration: IntegrationView, draft: MappingDraft) -> MappingPreview:
    mappings = (integration.mapping, draft.mapping)
    return preview_deliveries(
        integration.id, mappings, session=db.session(), reading=get_parser_settings()
    )


def _redirect_to_settings(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    url = url_for(
        "integration_settings.configure", project_path=path, integration_id=integration_id
    )
    return redirect(url)


def _render_settings_page(
    project: ProjectView,
    integration: IntegrationView,
    form: IntegrationForm,
    editor: _MappingEditor,
) -> ResponseReturnValue:
    page = render_template(
        "integrations/configure.html",
        project=project,
        integration=integration,
        form=form,
        editor=editor,
        words=build_severity_words_form(integration.mapping.rules.severity_words),
        operators=tuple(Operator),
        may_map=domain.can_customize_integrations(get_unit_of_work()),
        received=find_received_labels(get_unit_of_work(), integration),
    )
    return page, 422 if form.errors or editor.form.errors else 200


severity_words = PageBlueprint(
    "severity_words",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/severity_words",
)


@severity_words.post("")
@permission_required("alert_mappings.change")
def save(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the table of severity words."""
    with show_errors_on_next_page(InvalidError, ValueError):
        table = SeverityWordsForm().table
        mapping_actions.save_severity_words(get_unit_of_work(), project, integration_id, table)
        flash("Severity words saved. They apply to new deliveries.")
    return _redirect_to_severity_words(project, integration_id)


@severity_words.post("/add")
@permission_required("alert_mappings.change")
def add(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Add a severity word, or change the severity of an existing word."""
    form = SeverityWordForm()
    word, severity = form.word.data or "", form.severity.data
    try:
        mapping_actions.add_severity_word(
            get_unit_of_work(), project, integration_id, word, severity
        )
    except InvalidError as error:
        flash(str(error), "error")
        return _redirect_to_severity_words(project, integration_id)
    flash(f"“{word}” now means {severity}. To apply this to stored deliveries, send them again.")
    url = url_for("deliveries.index", project_path=project.path, integration_id=integration_id)
    return redirect(url)


def _redirect_to_severity_words(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    url = url_for(
        "integration_settings.configure",
        project_path=project.path,
        integration_id=integration_id,
        _anchor="severity-words",
    )
    return redirect(url)
