"""Groups: make one, and manage its members."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects.access import get_group
from domain.projects.creation import create_group, make_owner
from domain.projects.members import (
    Namespace,
    add_member,
    change_role,
    changed,
    get_namespace,
    joined,
    left,
    list_members,
    remove_member,
)
from domain.projects.paths import parent
from domain.projects.views import GroupView
from forms.group import GroupForm
from forms.member import MemberForm, RoleForm
from web.extensions import db
from web.http.access import get_current_user, signed_in, viewer
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.http.routes import reserved_names
from web.services import now

groups = PageBlueprint("groups", __name__, url_prefix="/groups")


@groups.route("/new", methods=["GET", "POST"])
@signed_in
def new() -> ResponseReturnValue:
    """Make a group; who makes it owns it."""
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
    flash(f"The group {group.path} is made.")
    return redirect(url_for("projects.show_namespace", full_path=group.path))


@groups.route("/<names:group_path>/-/members", methods=["GET", "POST"])
@signed_in
def members(group_path: str) -> ResponseReturnValue:
    """Show the members; maintainers add some."""
    group = get_group(group_path, viewer(), session=db.session())
    form = MemberForm(giver=group.role or Role.GUEST)
    if not form.validate_on_submit():
        return _members_page(group, form)
    namespace = _maintained(group.path)
    login, role = form.user.data or "", form.chosen_role
    try:
        user = add_member(namespace, login, role, by=viewer(), session=db.session(), now=now())
    except (InvalidError, NotFoundError) as error:
        form.object_to(getattr(error, "field", "user"), str(error))
        return _members_page(group, form)
    record_event(joined(namespace, user, role))
    flash(f"{user.username} is now {role.label} of {group.path}.")
    return redirect(url_for("groups.members", group_path=group.path))


@groups.post("/<names:group_path>/-/members/<int:member_id>/role")
@signed_in
def change_member(group_path: str, member_id: int) -> ResponseReturnValue:
    """Give a member another role."""
    namespace = _maintained(group_path)
    role = RoleForm(giver=Role.OWNER).get_role()
    change = change_role(namespace, member_id, role, by=viewer(), session=db.session())
    record_event(changed(namespace, change))
    flash(f"{change.user.username} is now {role.label} of {namespace.path}.")
    return redirect(url_for("groups.members", group_path=namespace.path))


@groups.post(
    "/<names:group_path>/-/members/<int:member_id>/remove",
    endpoint="remove_member",
)
@signed_in
def drop_member(group_path: str, member_id: int) -> ResponseReturnValue:
    """Take a member out."""
    namespace = _maintained(group_path)
    user = remove_member(namespace, member_id, by=viewer(), session=db.session())
    record_event(left(namespace, user))
    flash("The member is removed.")
    return redirect(url_for("groups.members", group_path=namespace.path))


def _maintained(path: str) -> Namespace:
    """Return a group that the visitor maintains, or raise ForbiddenError."""
    group = get_group(path, viewer(), session=db.session())
    if not group.can_maintain:
        message = f"This needs the role Maintainer in {group.path}."
        raise ForbiddenError(message)
    return Namespace(group_id=group.id, path=group.path)


def _new_page(form: GroupForm) -> ResponseReturnValue:
    return render_template("groups/new.html", form=form), 422 if form.errors else 200


def _members_page(group: GroupView, form: MemberForm) -> ResponseReturnValue:
    everyone = list_members(
        get_namespace(group.path, session=db.session()),
        viewer_id=get_current_user().id,
        session=db.session(),
    )
    page = render_template("groups/members.html", group=group, members=everyone, form=form)
    return page, 422 if form.errors else 200
