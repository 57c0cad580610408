"""The settings of an integration: its name, whether it is on, and how its payloads are read."""

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts.deliveries.log import get_delivery
from domain.alerts.integration_type import IntegrationType
from domain.alerts.integrations import integrations as domain
from domain.alerts.integrations import samples
from domain.alerts.integrations.integrations import IntegrationRow
from domain.alerts.integrations.mapping_preview import (
    Preview,
    Rehearsal,
    preview_of,
    rehearse_mapping,
)
from domain.alerts.integrations.samples import MappingDraft, mapping_of
from domain.database.list_queries import row_id
from domain.errors import InvalidError, NotFoundError
from domain.projects.views import ProjectView
from forms.integration import IntegrationForm
from forms.mapping import MappingForm
from web.alerts.integration_audit import note_change
from web.extensions import db
from web.http.access import project_member
from web.pages.namespaces import integration_of, integration_place, shown
from web.services import now, reading

integration_settings = Blueprint(
    "integration_settings",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@dataclass(frozen=True, kw_only=True)
class _Editor:
    """The mapping as the page shows it."""

    form: MappingForm
    draft: MappingDraft | None = None
    #: What the draft would have made of the last deliveries.
    rehearsal: Rehearsal | None = None

    @property
    def preview(self) -> Preview | None:
        """The alert that the sample would become."""
        return preview_of(self.draft, now=now(), reading=reading()) if self.draft else None


@integration_settings.route("/configure", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def configure(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Change name and address, and turn it on or off; map its payloads."""
    row = integration_of(project, integration_id)
    form = _form_of(row, is_posted=True)
    if not form.validate_on_submit():
        return _page(project, row, form, _editor_of(row))
    try:
        domain.change_integration(row, form.details, session=db.session())
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page(project, row, form, _editor_of(row))
    note_change("changed", project, row)
    flash("The integration is saved.")
    return _back(project, integration_id)


@integration_settings.post("/mapping")
@project_member(at_least=Role.MAINTAINER)
def change_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Read a sample, try a mapping, or save it; a new sample has to be mapped first."""
    row, form = _mappable(project, integration_id), MappingForm()
    draft, wish = _posted_draft(form), request.form.get("do")
    if draft is None or draft.is_new_sample or wish != "save":
        rehearsal = _rehearsal(row, draft) if draft and wish == "try" else None
        editor = _Editor(form=form, draft=draft, rehearsal=rehearsal)
        return _page(project, row, _form_of(row, is_posted=False), editor)
    samples.save_mapping(row, draft.sample, draft.mapping)
    note_change("mapping saved", project, row)
    flash("The mapping is saved. What comes from now on is read by it.")
    return _back(project, integration_id)


@integration_settings.post("/mapping/preview")
@project_member(at_least=Role.MAINTAINER)
def preview_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Return the part of the page that shows what the sample would become."""
    _mappable(project, integration_id)
    form = MappingForm()
    editor = _Editor(form=form, draft=_posted_draft(form))
    page = render_template("integrations/_preview.html", editor=editor)
    return page, 422 if form.errors else 200


@integration_settings.post("/mapping/remove")
@project_member(at_least=Role.MAINTAINER)
def remove_mapping(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Forget sample and mapping."""
    row = integration_of(project, integration_id)
    samples.remove_mapping(row)
    note_change("mapping removed", project, row)
    flash("The mapping is removed: fields are fed by the keys of their own names.")
    return _back(project, integration_id)


def _mappable(project: ProjectView, integration_id: int) -> IntegrationRow:
    row = integration_of(project, integration_id)
    if row.type != IntegrationType.HTTP or not integration_place(project).allows_several:
        raise NotFoundError("This integration reads payloads by no mapping.")
    return row


def _form_of(row: IntegrationRow, *, is_posted: bool) -> IntegrationForm:
    api_url = row.api_url or domain.PLACEHOLDER_API_URL
    values = {"name": row.name, "active": row.active, "api_url": api_url}
    form = IntegrationForm(**values) if is_posted else IntegrationForm(formdata=None, **values)
    form.api_url.flags.required = row.type != IntegrationType.HTTP
    form.name.flags.required = domain.needs_name(row, session=db.session())
    return form


def _posted_draft(form: MappingForm) -> MappingDraft | None:
    """Return what was sent; what is wrong with it the form says."""
    if not form.validate_on_submit():
        return None
    try:
        return samples.read_draft(
            form.sample.data or "",
            form.chosen,
            mapped_for=form.mapped_for.data or "",
            nesting_limit=reading().nesting_limit,
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return None


def _editor_of(row: IntegrationRow) -> _Editor:
    """Return the editor with what is saved, or with a delivery as a new sample."""
    delivery_id = row_id(request.args, "sample")
    if delivery_id is None:
        form = MappingForm(formdata=None, sample=row.sample)
        return _Editor(form=form, draft=_draft_or_objection(row, form))
    text = get_delivery(row.id, delivery_id, session=db.session()).body or ""
    form = MappingForm(formdata=None, sample=text)
    return _Editor(form=form, draft=_draft_or_objection(row, form, text))


def _draft_or_objection(
    row: IntegrationRow, form: MappingForm, text: str | None = None
) -> MappingDraft | None:
    limit = reading().nesting_limit
    try:
        if text is None:
            return samples.saved_draft(row, nesting_limit=limit)
        return samples.read_draft(text, {}, mapped_for="", nesting_limit=limit)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return None


def _rehearsal(row: IntegrationRow, draft: MappingDraft) -> Rehearsal:
    mappings = (mapping_of(row), draft.mapping)
    return rehearse_mapping(row.id, mappings, session=db.session(), reading=reading())


def _back(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    address = url_for(
        "integration_settings.configure", project_path=path, integration_id=integration_id
    )
    return redirect(address)


def _page(
    project: ProjectView, row: IntegrationRow, form: IntegrationForm, editor: _Editor
) -> ResponseReturnValue:
    place = integration_place(project)
    page = render_template(
        "integrations/configure.html",
        project=project,
        integration=shown(row, project),
        form=form,
        editor=editor,
        may_map=place.allows_several,
    )
    return page, 422 if form.errors or editor.form.errors else 200
