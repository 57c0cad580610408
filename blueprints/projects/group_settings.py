"""/groups/<group>/-/{settings,path,transfer,delete}: names of a group, where it is, its end."""

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.projects.namespace_pages import add_namespace_pages
from domain.projects import group_actions as actions
from domain.projects.types import GroupChange
from domain.projects.views import GroupView
from forms.projects import GroupSettingsForm
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work

group_settings = PageBlueprint(
    "group_settings", __name__, url_prefix="/groups/<names:group_path>/-"
)


@group_settings.route("/settings", methods=["GET", "POST"])
@permitted("groups.change")
def general(group: GroupView) -> ResponseReturnValue:
    """Change the name and the description."""
    form = GroupSettingsForm.of(group)
    changed = None
    if request.method == "POST":
        changed = form.carry_out(
            lambda: actions.change_group(work(), group, form.read(GroupChange))
        )
    if changed is None:
        page = render_template(
            "groups/general.html", group=group, namespace=group.namespace, form=form
        )
        return page, 422 if form.errors else 200
    is_same = (changed.name, changed.description) == (group.name, group.description)
    flash("Nothing was changed." if is_same else "Settings saved.")
    return redirect(url_for("group_settings.general", group_path=group.path))


add_namespace_pages(group_settings, "groups")
