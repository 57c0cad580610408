"""The credentials of an integration: where to send alerts, the keys, and what to paste where."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.alerts.integrations import keys as domain
from domain.alerts.integrations.integrations import IntegrationRow
from domain.alerts.integrations.snippets import snippets
from domain.errors import ConflictError
from domain.overlap import Overlap
from domain.projects.views import ProjectView
from forms.integration import EndKeyForm, ResetKeyForm
from web.alerts.integration_audit import note_change
from web.extensions import db
from web.http.access import project_member
from web.pages.namespaces import integration_of, shown
from web.services import now, services

integration_keys = Blueprint(
    "integration_keys",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>",
)


@integration_keys.get("/credentials")
@project_member(at_least=Role.MAINTAINER)
def credentials(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Show address and keys, and what to paste where."""
    row = integration_of(project, integration_id)
    return _page(project, row, ResetKeyForm(seen=_keys(row).mark))


@integration_keys.post("/reset_key")
@project_member(at_least=Role.MAINTAINER)
def reset_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the key; the old one stays good for as long as was chosen."""
    row, form = integration_of(project, integration_id), ResetKeyForm()
    if not form.validate_on_submit():
        return _page(project, row, form)
    try:
        _reset(row, form)
    except ConflictError as error:
        form.object_to("", str(error))
        return _page(project, row, form)
    note_change(f"key replaced; the old one: {form.chosen.words}", project, row)
    flash(_SAID.get(form.chosen, "The key is replaced. The old one works for a while yet."))
    return _back(project, integration_id)


_SAID = {Overlap.NOW: "The key is replaced. Senders with the old one are refused from now on."}


def _reset(row: IntegrationRow, form: ResetKeyForm) -> None:
    domain.reset_key(
        row,
        seen=form.seen.data or "",
        overlap=form.chosen,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )


@integration_keys.post("/end_previous_key")
@project_member(at_least=Role.MAINTAINER)
def end_previous_key(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """End the older one of two keys before its time."""
    row, form = integration_of(project, integration_id), EndKeyForm()
    if form.validate_on_submit():
        domain.end_previous_key(row, seen=form.seen.data or "", session=db.session())
        note_change("previous key ended", project, row)
        flash("The previous key is refused from now on.")
    return _back(project, integration_id)


def _keys(row: IntegrationRow) -> domain.Keys:
    return domain.keys_of(row, keyring=services().keyring, now=now())


def _back(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    path = project.path
    address = url_for(
        "integration_keys.credentials", project_path=path, integration_id=integration_id
    )
    return redirect(address)


def _page(project: ProjectView, row: IntegrationRow, form: ResetKeyForm) -> ResponseReturnValue:
    seen, keys = shown(row, project), _keys(row)
    page = render_template(
        "integrations/credentials.html",
        project=project,
        integration=seen,
        keys=keys,
        reset=form,
        snippets=snippets(seen.type, seen.url, keys.clear, now=now()),
    )
    return page, 422 if form.errors else 200, {"Cache-Control": "no-store"}
