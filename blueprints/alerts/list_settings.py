"""Saved filters of lists of alerts."""

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from blueprints.alerts.bulk_changes import list_arguments
from blueprints.alerts.list_pages import AlertList, AllAlertsList, ProjectAlertList
from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.listing.saved_filters import delete_filter, save_filter
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from web.access.marks import project_member, signed_in
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.refusals import refusals_shown

alert_list_settings = PageBlueprint("alert_list_settings", __name__)
_OF_PROJECT = "/<names:project_path>/-/alerts"
_OF_ALL = "/-/alerts"
_in_project = project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS, in_archived=True)


@alert_list_settings.post(f"{_OF_PROJECT}/filters")
@_in_project
def save(project: ProjectView) -> ResponseReturnValue:
    """Save the filter of the list under a name."""
    return _save(ProjectAlertList(project, list_arguments()))


@alert_list_settings.post(f"{_OF_ALL}/filters")
@signed_in
def save_of_all() -> ResponseReturnValue:
    """Save the filter of the list of all projects under a name."""
    return _save(AllAlertsList(list_arguments()))


def _save(listing: AlertList) -> ResponseReturnValue:
    arguments = {name: str(value) for name, value in listing.query.arguments.items()}
    name, is_shared = request.form.get("name", ""), "shared" in request.form
    with refusals_shown(InvalidError):
        name = save_filter(work(), listing.project, name, arguments, is_shared=is_shared)
        flash(f"Filter “{name}” saved.")
    return redirect(listing.url(**listing.query.arguments))


@alert_list_settings.post(f"{_OF_PROJECT}/filters/<int:filter_id>/delete")
@_in_project
def delete(project: ProjectView, filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter."""
    return _delete(ProjectAlertList(project, list_arguments()), filter_id)


@alert_list_settings.post(f"{_OF_ALL}/filters/<int:filter_id>/delete")
@signed_in
def delete_of_all(filter_id: int) -> ResponseReturnValue:
    """Delete a saved filter of the list of all projects."""
    return _delete(AllAlertsList(list_arguments()), filter_id)


def _delete(listing: AlertList, filter_id: int) -> ResponseReturnValue:
    name = delete_filter(work(), listing.project, filter_id)
    flash(f"Filter “{name}” deleted.")
    return redirect(listing.url(**listing.query.arguments))
