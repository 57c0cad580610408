"""Groups: creation, and management of their members."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.projects.member_pages import MemberPages
from domain.access.roles import Role
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects.access import get_group_for
from domain.projects.changes import created
from domain.projects.creation import create_group, make_owner
from domain.projects.overview import my_projects
from domain.projects.paths import parent
from domain.projects.views import GroupView
from forms.group import GroupForm
from web.access.marks import get_current_user, signed_in, viewer
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.http.routes import reserved_names
from web.services import now

groups = PageBlueprint("groups", __name__, url_prefix="/groups")


@groups.route("/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Create a group, which the user then owns."""
    form = GroupForm(reserved=reserved_names())
    if not form.validate_on_submit():
        return _new_page(form)
    path = form.path.data or ""
    try:
        above = parent(path)
        if above:
            _maintained(above)
        group = create_group(path, reserved=form.reserved, session=db.session(), now=now())
    except (InvalidError, NotFoundError, ForbiddenError) as error:
        form.object_to("path", str(error))
        return _new_page(form)
    make_owner(group, get_current_user().id, session=db.session(), now=now())
    record_event(created(group))
    if not above and not my_projects(viewer(), most=1, session=db.session()).projects:
        flash(f"Group {group.path} created. Create its first project next.")
        return redirect(url_for("projects.new", group=group.path))
    flash(f"Group {group.path} created.")
    return redirect(url_for("projects.show_namespace", full_path=group.path))


@groups.route("/<names:group_path>/-/members", methods=["GET", "POST"])
@signed_in
def members(group_path: str) -> ResponseReturnValue:
    """Show the members to members; maintainers can add some."""
    return MemberPages(_seen_from_inside(group_path)).members()


@groups.post("/<names:group_path>/-/members/<int:member_id>/role")
@signed_in
def change_member(group_path: str, member_id: int) -> ResponseReturnValue:
    """Change the role of a member."""
    return MemberPages(_seen_from_inside(group_path)).change(member_id)


@groups.post(
    "/<names:group_path>/-/members/<int:member_id>/remove",
    endpoint="remove_member",
)
@signed_in
def drop_member(group_path: str, member_id: int) -> ResponseReturnValue:
    """Remove a member, or leave."""
    return MemberPages(_seen_from_inside(group_path)).remove(member_id)


def _seen_from_inside(path: str) -> GroupView:
    """Return a group of which the user is a member, or raise ForbiddenError."""
    return get_group_for(path, viewer(), at_least=Role.GUEST, session=db.session())


def _maintained(path: str) -> GroupView:
    """Return a group that the user maintains, or raise ForbiddenError."""
    return get_group_for(path, viewer(), at_least=Role.MAINTAINER, session=db.session())


def _new_page(form: GroupForm) -> ResponseReturnValue:
    return render_template("groups/new.html", form=form), 422 if form.errors else 200
