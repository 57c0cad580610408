"""/groups/<group>/-/{settings,path,transfer,delete}: names of a group, its place, its end."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.projects.namespace_pages import PlacePages
from domain.access.roles import Role
from domain.projects.access import get_group_for
from domain.projects.changes import edited
from domain.projects.editing import edit_group
from domain.projects.views import GroupView
from forms.namespaces import GroupSettingsForm
from web.access.marks import signed_in, viewer
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint

group_places = PageBlueprint("group_places", __name__, url_prefix="/groups/<names:group_path>/-")


@group_places.route("/settings", methods=["GET", "POST"])
@signed_in
def general(group_path: str) -> ResponseReturnValue:
    """Change the name and the description."""
    group = _owned(group_path)
    form = GroupSettingsForm.of(group)
    if not form.validate_on_submit():
        page = render_template(
            "groups/general.html", group=group, namespace=group.namespace, form=form
        )
        return page, 422 if form.errors else 200
    changes = edit_group(group.id, form.edit, session=db.session())
    if changes:
        record_event(edited(group.namespace, changes))
    flash("Settings saved." if changes else "Nothing was changed.")
    return redirect(url_for("group_places.general", group_path=group.path))


@group_places.route("/path", methods=["GET", "POST"])
@signed_in
def rename(group_path: str) -> ResponseReturnValue:
    """Change the path."""
    return PlacePages(_owned(group_path)).rename()


@group_places.post("/path/<int:former_id>/release")
@signed_in
def release(group_path: str, former_id: int) -> ResponseReturnValue:
    """Release a former path."""
    return PlacePages(_owned(group_path)).release(former_id)


@group_places.route("/transfer", methods=["GET", "POST"])
@signed_in
def transfer(group_path: str) -> ResponseReturnValue:
    """Move the group into another one, or to the top level."""
    return PlacePages(_owned(group_path)).transfer()


@group_places.route("/delete", methods=["GET", "POST"])
@signed_in
def delete(group_path: str) -> ResponseReturnValue:
    """Delete the group, with all that is below it."""
    return PlacePages(_owned(group_path)).delete()


def _owned(path: str) -> GroupView:
    """Return a group that the user owns, or raise ForbiddenError."""
    return get_group_for(path, viewer(), at_least=Role.OWNER, session=db.session())
