"""Pages of the members of a group or a project."""

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import Role
from domain.database.list_queries import words
from domain.database.paging import Listed, ListPart
from domain.errors import ForbiddenError, InvalidError, NotFoundError
from domain.projects import members as domain
from domain.projects.changes import changed, given, joined, left
from domain.projects.invitations import InvitationView, list_invitations
from domain.projects.member_lists import MemberFilter, get_direct_member, list_members
from domain.projects.member_roles import list_member_roles
from domain.projects.member_types import MemberRole
from domain.projects.members import leave
from domain.projects.views import GroupView, MemberView, ProjectView
from forms.member import MemberForm, RoleForm
from web.access.marks import get_current_user, viewer
from web.extensions import db
from web.http.audit_events import record_event
from web.pages.links import numbered_links
from web.pages.list_query import asked_part, list_query
from web.services import now

_MOST_INVITATIONS = 100
#: The parameters of the list.
_OF_LIST = ("search", "page")


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
        if request.method == "POST":
            self._check_may_manage()
        form = self._form()
        if not form.validate_on_submit():
            return self._page(form)
        namespace, login, role = self.namespace, form.user.data or "", form.chosen_role
        session = db.session()
        try:
            user = domain.add_member(
                namespace, login, role, by=viewer(), session=session, now=now()
            )
        except (InvalidError, NotFoundError) as error:
            form.object_to(getattr(error, "field", "user"), str(error))
            return self._page(form)
        record_event(joined(namespace, user, role))
        if form.chosen_custom_role is not None:
            number = domain.find_member(namespace, user.username, session=session)
            self._give(number, form.chosen_custom_role)
        flash(f"{user.username} is now {_named(form)} of {namespace.path}.")
        return self._back()

    def change(self, member_id: int) -> ResponseReturnValue:
        """Give a member another role, or a custom one."""
        self._check_may_manage()
        namespace, session = self.namespace, db.session()
        form = RoleForm(giver=Role.OWNER, custom_roles=list_member_roles(session=session))
        role, custom = form.get_role(), form.chosen_custom_role
        before = self._member(member_id)
        try:
            change = domain.change_role(namespace, member_id, role, by=viewer(), session=session)
            if change.after is not change.before:
                record_event(changed(namespace, change))
            if custom is not None or (before.own_custom_role and change.after is change.before):
                self._give(member_id, custom)
        except InvalidError as error:
            return self._refused(error)
        flash(f"{change.user.username} is now {_named(form)} of {namespace.path}.")
        return self._back(_anchor=f"member-{member_id}")

    def remove(self, member_id: int) -> ResponseReturnValue:
        """Remove a member, or let the user leave."""
        namespace, session = self.namespace, db.session()
        is_own = self._member(member_id).is_you
        try:
            user = (
                leave(namespace, by=viewer(), session=session)
                if is_own
                else domain.remove_member(namespace, member_id, by=viewer(), session=session)
            )
        except InvalidError as error:
            return self._refused(error)
        record_event(left(namespace, user))
        if is_own:
            flash(f"You left {namespace.path}.")
            return redirect(url_for("home.groups_and_projects"))
        flash(f"{user.username} was removed from {namespace.path}.")
        return self._back()

    def _check_may_manage(self) -> None:
        if not self.holder.can_maintain:
            message = f"You need the Maintainer role in {self.namespace.path}."
            raise ForbiddenError(message)

    def _give(self, member_id: int, custom: MemberRole | None) -> None:
        session = db.session()
        user = domain.give_member_role(
            self.namespace, member_id, custom, by=viewer(), session=session
        )
        record_event(given(self.namespace, user, custom))

    def _member(self, member_id: int) -> MemberView:
        return get_direct_member(
            self.namespace,
            member_id,
            viewer_id=get_current_user().id,
            session=db.session(),
            today=now().date(),
        )

    def _form(self, **values: Any) -> MemberForm:
        custom = list_member_roles(session=db.session()) if self.holder.can_maintain else ()
        return MemberForm(giver=self.holder.role or Role.GUEST, custom_roles=custom, **values)

    def _refused(self, error: InvalidError) -> ResponseReturnValue:
        """Show why a change in the list is refused, above the list."""
        db.session.rollback()  # a part of it may be done
        return self._page(self._form(formdata=None), problem=str(error))

    def _page(self, form: MemberForm, *, problem: str = "") -> ResponseReturnValue:
        search = words(list_query(*_OF_LIST), "search")
        part, invitations = asked_part(order_by="role"), self._invitations()
        found = self._found(search, part)
        page = render_template(
            "members/index.html",
            holder=self.holder,
            namespace=self.namespace,
            blueprint=self.blueprint,
            where=self.where,
            part={name: request.args[name] for name in _OF_LIST if request.args.get(name)},
            members=found.items,
            total=found.total,
            search=search,
            pages_of_members=numbered_links(found, part),
            invitations=invitations.items,
            invitation_total=invitations.total,
            form=form,
            problem=problem,
        )
        return page, 422 if form.errors or problem else 200

    def _found(self, search: str, part: ListPart) -> Listed[MemberView]:
        return list_members(
            self.namespace,
            MemberFilter(search=search),
            part,
            viewer_id=get_current_user().id,
            session=db.session(),
            today=now().date(),
        )

    def _invitations(self) -> Listed[InvitationView]:
        """Return the first pending invitations, for those who may change them."""
        if not self.holder.can_maintain:
            return Listed(items=())
        first = ListPart(size=_MOST_INVITATIONS)
        return list_invitations(self.namespace, first, session=db.session(), now=now())

    def _back(self, **more: str) -> ResponseReturnValue:
        """Return to the same part of the list, and to a row of it."""
        part = {name: request.args[name] for name in _OF_LIST if request.args.get(name)}
        return redirect(url_for(f"{self.blueprint}.members", **{**part, **self.where, **more}))


def _named(form: RoleForm) -> str:
    """Return the name of the chosen role, or of the custom one."""
    custom = form.chosen_custom_role
    return custom.name if custom else form.chosen_role.label
