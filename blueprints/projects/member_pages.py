"""Pages of the members of a group or a project."""

from typing import Any

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.roles import Role
from domain.errors import InvalidError, NotFoundError
from domain.projects.changes import changed, joined, left
from domain.projects.invitations import InvitationView, list_invitations
from domain.projects.members import add_member, change_role, list_members, remove_member
from domain.projects.views import GroupView, ProjectView
from forms.member import MemberForm, RoleForm
from web.access.marks import get_current_user, viewer
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now


class MemberPages:
    """The steps that the pages of groups and of projects share."""

    def __init__(self, holder: GroupView | ProjectView) -> None:
        """Store the group or project as the user sees it."""
        self.holder = holder
        self.namespace = holder.namespace
        #: Has the endpoints `members`, `change_member` and `remove_member`.
        self.blueprint = f"{self.namespace.resource_type}s"
        #: The variables of their URLs.
        self.where: dict[str, Any] = {f"{self.namespace.resource_type}_path": self.namespace.path}

    def members(self) -> ResponseReturnValue:
        """Show the members, and add one."""
        form = MemberForm(giver=self.holder.role or Role.GUEST)
        if not form.validate_on_submit():
            return self._page(form)
        namespace, login, role = self.namespace, form.user.data or "", form.chosen_role
        try:
            user = add_member(namespace, login, role, by=viewer(), session=db.session(), now=now())
        except (InvalidError, NotFoundError) as error:
            form.object_to(getattr(error, "field", "user"), str(error))
            return self._page(form)
        record_event(joined(namespace, user, role))
        flash(f"{user.username} is now {role.label} of {namespace.path}.")
        return self._back()

    def change(self, member_id: int) -> ResponseReturnValue:
        """Give a member another role."""
        namespace, role = self.namespace, RoleForm(giver=Role.OWNER).get_role()
        change = change_role(namespace, member_id, role, by=viewer(), session=db.session())
        record_event(changed(namespace, change))
        flash(f"{change.user.username} is now {role.label} of {namespace.path}.")
        return self._back()

    def remove(self, member_id: int) -> ResponseReturnValue:
        """Remove a member."""
        namespace = self.namespace
        user = remove_member(namespace, member_id, by=viewer(), session=db.session())
        record_event(left(namespace, user))
        flash("Member removed.")
        return self._back()

    def _page(self, form: MemberForm) -> ResponseReturnValue:
        page = render_template(
            "members/index.html",
            holder=self.holder,
            namespace=self.namespace,
            blueprint=self.blueprint,
            where=self.where,
            members=list_members(
                self.namespace,
                viewer_id=get_current_user().id,
                session=db.session(),
                today=now().date(),
            ),
            invitations=self._invitations(),
            form=form,
        )
        return page, 422 if form.errors else 200

    def _invitations(self) -> tuple[InvitationView, ...]:
        """Return the pending invitations, for those who may change them."""
        if not self.holder.can_maintain:
            return ()
        return list_invitations(self.namespace, session=db.session(), now=now())

    def _back(self) -> ResponseReturnValue:
        return redirect(url_for(f"{self.blueprint}.members", **self.where))
