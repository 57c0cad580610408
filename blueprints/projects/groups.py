"""Pages for groups: creation and member management."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from blueprints.projects.member_pages import add_member_pages
from domain.core.errors import ForbiddenError, NotFoundError
from domain.projects import group_actions as actions
from domain.projects.access import get_group
from domain.projects.my_projects import list_my_projects
from domain.projects.types import NewGroup
from forms.projects import GroupForm
from web.access.decorators import get_request_viewer, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page

groups = PageBlueprint("groups", __name__, url_prefix="/groups")


@groups.route("/new", methods=["GET", "POST"])
@sign_in_required
def new() -> ResponseReturnValue:
    """Create a group that the user owns."""
    form = GroupForm()
    try:
        made = form.run_if_valid(
            lambda: actions.create_group(get_unit_of_work(), _build_new_group(form))
        )
    except (NotFoundError, ForbiddenError) as error:
        form.add_error("path", str(error))
        made = None
    if made is None:
        return _render_new_page(form)
    path = made.full_path
    if (
        made.parent_id is None
        and not list_my_projects(get_request_viewer(), maximum=1, session=db.session()).projects
    ):
        flash(f"Group {path} created. Next, create its first project.")
        return redirect(url_for("projects.new", group=path))
    flash(f"Group {path} created.")
    return redirect(url_for("projects.show_namespace", full_path=path))


def _build_new_group(form: GroupForm) -> NewGroup:
    """Build the new group from the form.

    The parent group is found by the entered path. Raise NotFoundError if it does not exist.
    """
    above, _, segment = (form.path.data or "").rpartition("/")
    parent_id = get_group(above, get_request_viewer(), session=db.session()).id if above else None
    return NewGroup(path=segment, parent_id=parent_id)


def _render_new_page(form: GroupForm) -> ResponseReturnValue:
    return render_form_page("groups/new.html", form)


add_member_pages(groups, "/<names:group_path>/-/members")
