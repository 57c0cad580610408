"""Member pages for groups and projects."""

from collections.abc import Sequence
from typing import Any, cast

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.access.roles import Role
from domain.core.database.pagination import PageRequest, PageResult, get_search_text
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.projects import member_actions as actions
from domain.projects.invitation_actions import (
    list_invitations,
    revoke_invitation,
    send_invitations,
)
from domain.projects.member_lists import (
    MemberFilter,
    MemberSuggestion,
    get_direct_member,
    list_member_suggestions,
    list_members,
)
from domain.projects.member_roles import find_usable_member_roles
from domain.projects.member_types import (
    Invitation,
    InvitationQuery,
    Member,
    MemberChange,
    MemberRole,
)
from domain.projects.namespace_lists import find_shared_groups
from domain.projects.shares import NewShare, share_project, unshare_project
from domain.projects.views import (
    MemberView,
    ProjectOrGroup,
    ProjectView,
    SharedGroup,
    get_viewer,
)
from forms.members import InvitationForm, MemberForm, RoleForm, ShareForm
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import build_numbered_page_links, get_list_query, get_page_request
from web.pages.templating import pluralize
from web.services import get_current_time, get_settings, get_sign_up_policy

_MAX_INVITATIONS = 100
#: Query parameters of the member list.
_LIST_PARAMETERS = ("search", "page")


class MemberPages:
    """The views shared by the member pages of groups and projects."""

    def __init__(self, holder: ProjectOrGroup) -> None:
        """Store the user's view of the group or project."""
        self.holder = holder
        self.namespace = holder.namespace
        #: Name of the blueprint with the endpoints `members`, `change_member` and `remove_member`.
        self.blueprint = f"{self.namespace.resource_type}s"
        #: URL variables of the endpoints.
        self.where: dict[str, Any] = {f"{self.namespace.resource_type}_path": self.namespace.path}

    def show(self) -> ResponseReturnValue:
        """Show the members of the group or project."""
        return self._render_page(self._build_form())

    def add(self) -> ResponseReturnValue:
        """Add a member to the group or project."""
        form = self._build_form()
        try:
            added = form.run_if_valid(
                lambda: actions.add_members(get_unit_of_work(), self.holder, form.build_member())
            )
        except NotFoundError as error:
            form.add_error("user", str(error))
            added = None
        if added is None:
            return self._render_page(form)
        name = added.username if isinstance(added, Member) else form.user.data
        flash(f"{name} now has the {_get_role_name(form)} role in {self.namespace.path}.")
        return self.redirect_to_list()

    def invite(self) -> ResponseReturnValue:
        """Invite people by email. Addresses that are rejected stay in the form."""
        form = self._build_invitation_form()
        done = form.run_if_valid(
            lambda: send_invitations(get_unit_of_work(), self.holder, form.build_invitations())
        )
        if done is None:
            return self._render_page(self._build_form(formdata=None), invitation_form=form)
        sent = len(form.build_invitations().email) - len(done.message)
        if sent:
            flash(f"{pluralize(sent, 'person', 'people')} invited to {self.namespace.path}.")
        if done.message:
            form.show_rejections(done.message)
            return self._render_page(self._build_form(formdata=None), invitation_form=form)
        return self.redirect_to_list(_anchor="invitations")

    def revoke(self, email: str) -> ResponseReturnValue:
        """Revoke the invitation of an email address."""
        try:
            revoke_invitation(get_unit_of_work(), self.holder, email)
        except NotFoundError:
            flash(f"No invitation to {email} is pending.", "warning")
        else:
            flash(f"The invitation to {email} was revoked. Its link no longer works.")
        return self.redirect_to_list(_anchor="invitations")

    def redirect_to_list(self, **more: str) -> ResponseReturnValue:
        """Redirect to the list with its current page and filters, optionally with an anchor."""
        part = {name: request.args[name] for name in _LIST_PARAMETERS if request.args.get(name)}
        return redirect(url_for(f"{self.blueprint}.members", **{**part, **self.where, **more}))

    def share(self) -> ResponseReturnValue:
        """Share the project with a group."""
        form = self._build_share_form()
        try:
            shared = form.run_if_valid(
                lambda: share_project(get_unit_of_work(), self._project, _build_share(form))
            )
        except (NotFoundError, ForbiddenError) as error:
            form.add_error("group", str(error))
            shared = None
        if shared is None:
            return self._render_page(self._build_form(formdata=None), share_form=form)
        flash(f"{self.namespace.path} is shared with {form.group.data}.")
        return self.redirect_to_list(_anchor="groups")

    def unshare(self, group_id: int) -> ResponseReturnValue:
        """Stop sharing the project with a group."""
        unshare_project(get_unit_of_work(), self._project, group_id)
        flash("The project is no longer shared with the group.")
        return self.redirect_to_list(_anchor="groups")

    def change(self, member_id: int) -> ResponseReturnValue:
        """Change the role of a member to a standard or custom role."""
        form = RoleForm(giver=Role.OWNER, custom_roles=self._find_custom_roles())
        role, custom = form.get_validated_role(), form.chosen_custom_role
        wanted = MemberChange(access_level=role, member_role_id=custom.id if custom else None)
        user_id = self._get_member(member_id).user_id
        try:
            changed = actions.change_member(get_unit_of_work(), self.holder, user_id, wanted)
        except InvalidError as error:
            return self._render_rejection(error)
        flash(
            f"{changed.username} now has the {_get_role_name(form)} role in {self.namespace.path}."
        )
        return self.redirect_to_list(_anchor=f"member-{member_id}")

    def remove(self, member_id: int) -> ResponseReturnValue:
        """Remove a member, or leave the group or project."""
        member = self._get_member(member_id)
        try:
            actions.remove_member(get_unit_of_work(), self.holder, member.user_id)
        except InvalidError as error:
            return self._render_rejection(error)
        if member.is_you:
            flash(f"You left {self.namespace.path}.")
            return redirect(url_for("home.groups_and_projects"))
        flash(f"{member.username} was removed from {self.namespace.path}.")
        return self.redirect_to_list()

    def _get_member(self, member_id: int) -> MemberView:
        return get_direct_member(
            self.namespace,
            member_id,
            viewer_id=get_current_user().id,
            session=db.session(),
            today=get_current_time().date(),
        )

    def _find_custom_roles(self) -> tuple[MemberRole, ...]:
        return find_usable_member_roles(self.namespace, session=db.session())

    def _build_form(self, **values: Any) -> MemberForm:
        custom = self._find_custom_roles() if self.holder.can_maintain else ()
        return MemberForm(giver=self.holder.role or Role.GUEST, custom_roles=custom, **values)

    def _build_invitation_form(self, **values: Any) -> InvitationForm:
        return InvitationForm(giver=self.holder.role or Role.GUEST, **values)

    def _build_share_form(self, **values: Any) -> ShareForm:
        return ShareForm(giver=self.holder.role or Role.GUEST, **values)

    def _render_rejection(self, error: InvalidError) -> ResponseReturnValue:
        """Show the reason for a rejected change above the list."""
        return self._render_page(self._build_form(formdata=None), problem=str(error))

    def _render_page(
        self,
        form: MemberForm,
        *,
        problem: str = "",
        share_form: ShareForm | None = None,
        invitation_form: InvitationForm | None = None,
    ) -> ResponseReturnValue:
        """Show the lists and the forms, with the errors from a rejected change."""
        page = render_template(
            "members/index.html",
            **self._build_list_context(),
            form=form,
            share_form=share_form or self._build_share_form(formdata=None),
            invitation_form=invitation_form or self._build_invitation_form(formdata=None),
            sends_mail=bool(get_settings().mail_url),
            sign_up_policy=get_sign_up_policy(),
            problem=problem,
        )
        is_rejected = form.errors or problem or share_form or invitation_form
        return page, 422 if is_rejected else 200

    def _build_list_context(self) -> dict[str, Any]:
        """Return the template variables for the lists on the page."""
        search = get_search_text(get_list_query(*_LIST_PARAMETERS), "search")
        part, invitations = get_page_request(order_by="role"), self._list_invitations()
        found = self._fetch_members(search, part)
        return {
            "holder": self.holder,
            "namespace": self.namespace,
            "blueprint": self.blueprint,
            "where": self.where,
            "part": {
                name: request.args[name] for name in _LIST_PARAMETERS if request.args.get(name)
            },
            "members": found.items,
            "total": found.total,
            "search": search,
            # After a rejected change, the list is shown at the URL of the change.
            "pages_of_members": build_numbered_page_links(
                found, part, url_for(f"{self.blueprint}.members", **self.where)
            ),
            "invitations": invitations.items,
            "invitation_total": invitations.total,
            "candidates": self._list_member_suggestions(),
            "shares": self._list_shares(),
        }

    @property
    def _project(self) -> ProjectView:
        """The project, on pages that exist only for projects."""
        return cast("ProjectView", self.holder)

    def _list_shares(self) -> Sequence[SharedGroup]:
        """Return the groups that the project is shared with."""
        if self.namespace.project_id is None:
            return ()
        ids = [self.namespace.project_id]
        return find_shared_groups(ids, get_current_time().date(), session=db.session()).get(
            ids[0], ()
        )

    def _fetch_members(self, search: str, page_request: PageRequest) -> PageResult[MemberView]:
        return list_members(
            self.namespace,
            MemberFilter(search=search),
            page_request,
            viewer_id=get_current_user().id,
            session=db.session(),
            today=get_current_time().date(),
        )

    def _list_member_suggestions(self) -> Sequence[MemberSuggestion]:
        """Return the suggestions for a new member if the user may add members."""
        if not self.holder.can_maintain:
            return ()
        viewer = get_viewer(get_unit_of_work())
        return list_member_suggestions(self.namespace, viewer, session=db.session())

    def _list_invitations(self) -> ListPage[Invitation]:
        """Return the first pending invitations if the user may change them."""
        if not self.holder.can_maintain:
            return ListPage(items=(), total=0)
        first = InvitationQuery(per_page=_MAX_INVITATIONS)
        return list_invitations(get_unit_of_work(), self.holder, first)


def _get_role_name(form: RoleForm) -> str:
    """Return the name of the chosen role or custom role."""
    custom = form.chosen_custom_role
    return custom.name if custom else form.chosen_role.label


@permission_required("members.index", to_post="members.create")
def members(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show the members, and let maintainers add members."""
    pages = MemberPages(*holder.values())
    return pages.add() if request.method == "POST" else pages.show()


@permission_required("invitations.create")
def invite_members(**holder: ProjectOrGroup) -> ResponseReturnValue:
    """Invite people by email."""
    return MemberPages(*holder.values()).invite()


@permission_required("invitations.revoke")
def revoke(email: str, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Revoke an invitation."""
    return MemberPages(*holder.values()).revoke(email)


@permission_required("members.change")
def change_member(member_id: int, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Change the role of a member."""
    return MemberPages(*holder.values()).change(member_id)


@permission_required("members.delete")
def remove_member(member_id: int, **holder: ProjectOrGroup) -> ResponseReturnValue:
    """Remove a member, or leave the group or project."""
    return MemberPages(*holder.values()).remove(member_id)


def _build_share(form: ShareForm) -> NewShare:
    return form.build_entered_body(NewShare, group_id=form.group.data, group_access=form.most.data)


@permission_required("projects.share")
def share(project: ProjectView) -> ResponseReturnValue:
    """Share a project with a group."""
    return MemberPages(project).share()


@permission_required("projects.unshare")
def unshare(group_id: int, project: ProjectView) -> ResponseReturnValue:
    """Stop sharing a project with a group."""
    return MemberPages(project).unshare(group_id)


def add_member_pages(blueprint: PageBlueprint, url: str) -> None:
    """Add the member pages to a blueprint.

    `url` is the URL of the list.
    """
    blueprint.route(url, methods=["GET", "POST"])(members)
    blueprint.post(f"{url}/invitations")(invite_members)
    blueprint.post(f"{url}/invitations/<string:email>/revoke", endpoint="revoke_invitation")(revoke)
    blueprint.post(f"{url}/<int:member_id>/role")(change_member)
    blueprint.post(f"{url}/<int:member_id>/remove")(remove_member)
