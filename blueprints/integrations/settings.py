"""The settings of an integration: name, API URL, active state, and mapping."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.deliveries import get_delivery_text
from domain.alerts.integrations import actions, mapping_actions, samples
from domain.alerts.integrations import integrations as domain
from domain.alerts.integrations.mapping_actions import get_mappable_integration
from domain.alerts.integrations.mapping_preview import (
    MappingPreview,
    MessageParser,
    preview_deliveries,
)
from domain.alerts.integrations.mapping_questions import (
    apply_answers,
    propose_mapping_again,
    remove_answers,
)
from domain.alerts.integrations.mapping_types import MappingQuestion, RelatedDelivery, SamplePreview
from domain.alerts.integrations.received_labels import find_received_labels
from domain.alerts.integrations.related_deliveries import find_related_deliveries
from domain.alerts.integrations.samples import MappingDraft
from domain.alerts.integrations.sender_warnings import find_warnings
from domain.alerts.integrations.types import IntegrationChange, IntegrationView
from domain.alerts.parsing.mapping_rules import Operator
from domain.core.database.pagination import get_row_id
from domain.core.errors import InvalidError
from domain.projects.views import ProjectView
from forms.integrations import (
    IntegrationForm,
    MappingForm,
    SeverityWordsForm,
    build_severity_words_form,
)
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.services import get_current_time, get_parser_settings

integration_settings = PageBlueprint(
    "integration_settings",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@dataclass(frozen=True, kw_only=True)
class _MappingEditor:
    """The mapping form, the submitted draft with the user's answers, and previews of the draft."""

    form: MappingForm
    draft: MappingDraft | None = None
    #: Alert that the sample would create, or None if there is no valid draft.
    sample_preview: SamplePreview | None = None
    #: Preview of the draft applied to the latest deliveries, if one was requested.
    mapping_preview: MappingPreview | None = None
    #: Questions about the mapping, with the given answers.
    questions: Sequence[MappingQuestion] = ()


@integration_settings.route("/configure", methods=["GET", "POST"])
@permission_required("alert_integrations.change")
def configure(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show all settings, and change the name, the API URL and the active state."""
    integration = domain.get_integration(get_unit_of_work(), project, integration_id)
    form = _build_settings_form(integration, is_posted=True)
    form.add_proposed_label(request.form.get("use", ""))
    if form.run_if_valid(
        lambda: actions.change_integration(
            get_unit_of_work(), project, integration_id, form.build_entered_body(IntegrationChange)
        )
    ):
        flash("Integration saved.")
        return _redirect_to_settings(project, integration_id)
    return _render_settings_page(project, integration, form, _load_editor(integration))


@integration_settings.post("/mapping")
@permission_required("alert_mappings.change")
def change_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Parse a sample, preview a mapping, or save a mapping that the user has reviewed."""
    integration = get_mappable_integration(get_unit_of_work(), project, integration_id)
    form = MappingForm()
    for role in ("repeat", "recovery"):
        if (delivery_id := get_row_id(request.form, f"use_{role}")) is not None:
            form[role].data = _get_delivery_text(integration, delivery_id)
    draft, action = _parse_posted_draft(form, integration), request.form.get("do")
    if draft and action not in {"save", "try"} and (draft.is_proposed or action == "propose"):
        draft = _propose_draft(draft, integration)
    editor = _build_editor(form, integration, draft)
    draft = editor.draft
    if draft is None or draft.is_new_sample or action != "save":
        if draft and action == "try":
            preview = preview_deliveries(
                integration, draft.mapping, session=db.session(), reading=get_parser_settings()
            )
            editor = replace(editor, mapping_preview=preview)
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
    integration = get_mappable_integration(get_unit_of_work(), project, integration_id)
    form = MappingForm()
    editor = _build_editor(form, integration, _parse_posted_draft(form, integration))
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
    """Return the posted draft without the user's answers, or None if a form field is invalid.

    The errors are added to the form.
    """
    draft = form.run_if_valid(
        lambda: samples.parse_draft(
            form.messages,
            form.entered_mapping,
            integration,
            mapped_for=form.mapped_for.data or "",
            proposed=form.proposed.data or "",
            nesting_limit=get_parser_settings().nesting_limit,
        )
    )
    if draft is None or draft.is_new_sample:
        return draft
    mapping = remove_answers(draft.messages, form.applied_answers, draft.mapping)
    return replace(draft, mapping=mapping)


def _load_editor(integration: IntegrationView) -> _MappingEditor:
    """Return the editor for the saved mapping, or for the deliveries selected in the query."""
    texts = {
        name: _get_delivery_text(integration, delivery_id)
        for name in ("sample", "repeat", "recovery")
        if (delivery_id := get_row_id(request.args, name)) is not None
    }
    # The saved messages are not about a sample that was just selected.
    saved = {} if "sample" in texts else vars(samples.get_saved_messages(integration))
    form = MappingForm(formdata=None, **{**saved, **texts})
    limit = get_parser_settings().nesting_limit
    draft = form.run(lambda: samples.load_draft(form.messages, integration, nesting_limit=limit))
    if draft and "sample" in texts:
        draft = replace(_propose_draft(draft, integration), is_new_sample=True)
    return _build_editor(form, integration, draft)


def _get_delivery_text(integration: IntegrationView, delivery_id: int) -> str:
    return get_delivery_text(integration.id, delivery_id, session=db.session())


def _propose_draft(draft: MappingDraft, integration: IntegrationView) -> MappingDraft:
    words = integration.mapping.rules.severity_words
    again = None if draft.is_new_sample else propose_mapping_again(draft.messages, draft.mapping)
    proposed = samples.build_proposed_draft(draft.sample, draft.messages, words, again)
    return replace(proposed, is_new_sample=draft.is_new_sample)


def _build_editor(
    form: MappingForm, integration: IntegrationView, draft: MappingDraft | None
) -> _MappingEditor:
    """Return the editor with the user's answers and a preview of the draft.

    If the draft is invalid, the errors are added to the form.
    """
    if draft is None:
        return _MappingEditor(form=form)
    # Answers are about the messages on the previous page.
    given = {} if draft.is_new_sample else form.answers
    answered, questions = apply_answers(draft.messages, given, draft.mapping)
    draft = replace(draft, mapping=answered.mapping)
    parser = MessageParser(
        format=integration.format,
        mapping=draft.mapping,
        now=get_current_time(),
        reading=get_parser_settings(),
    )
    preview = form.run(lambda: parser.preview(draft.messages))
    return _MappingEditor(form=form, draft=draft, sample_preview=preview, questions=questions)


def _redirect_to_settings(
    project: ProjectView, integration_id: int, anchor: str | None = None
) -> ResponseReturnValue:
    url = url_for(
        "integration_settings.configure",
        project_path=project.path,
        integration_id=integration_id,
        _anchor=anchor,
    )
    return redirect(url)


def _render_settings_page(
    project: ProjectView,
    integration: IntegrationView,
    form: IntegrationForm,
    editor: _MappingEditor,
) -> ResponseReturnValue:
    unit = get_unit_of_work()
    related: Sequence[RelatedDelivery] = ()
    if integration.type.has_mapping and not editor.form.errors:
        payload = editor.draft.sample.payload if editor.draft else None
        related = find_related_deliveries(unit, project, integration.id, payload)
    page = render_template(
        "integrations/configure.html",
        project=project,
        integration=integration,
        form=form,
        editor=editor,
        related=related,
        words=build_severity_words_form(integration.mapping.rules.severity_words),
        operators=tuple(Operator),
        may_map=domain.can_customize_integrations(unit),
        received=find_received_labels(unit, integration),
        warnings=find_warnings(unit, integration),
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
        table = SeverityWordsForm().severities_by_word
        mapping_actions.save_severity_words(get_unit_of_work(), project, integration_id, table)
        flash("Severity words saved. They apply to new deliveries.")
    return _redirect_to_settings(project, integration_id, anchor="severity-words")
