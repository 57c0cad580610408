"""Saved filters of lists of alerts."""

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from blueprints.alerts.bulk_changes import list_arguments
from blueprints.alerts.list_pages import AlertList, AllAlertsList, ProjectAlertList
from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.listing.saved_filters import NewFilter, delete_filter, save_filter
from domain.errors import ForbiddenError, InvalidError
from domain.projects.views import ProjectView
from web.access.marks import get_current_user, project_member, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.services import now

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
    project, is_shared = listing.project, "shared" in request.form
    if is_shared and not (project and project.can_develop):
        message = "You need the Developer role to share a filter with the project."
        raise ForbiddenError(message)
    new = NewFilter(
        name=request.form.get("name", ""),
        arguments=arguments,
        project_id=project.id if project else None,
        is_shared=is_shared,
    )
    try:
        name = save_filter(new, get_current_user().id, session=db.session(), now=now())
    except InvalidError as error:
        flash(str(error), "error")
    else:
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
    project = listing.project
    name = delete_filter(
        filter_id,
        get_current_user().id,
        project_id=project.id if project else None,
        deletes_of_others=bool(project and project.can_maintain),
        session=db.session(),
    )
    flash(f"Filter “{name}” deleted.")
    return redirect(listing.url(**listing.query.arguments))
