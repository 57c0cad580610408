"""/api/v4/{projects,groups}/:id/{members,invitations} and member_roles: who may do what where."""

from domain.projects import invitation_actions, member_actions
from domain.projects import member_roles as role_actions
from web.access.api_limits import Family
from web.api.operations import Resources

members = Resources(
    "members",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/members",
)
members.bind("GET", "", member_actions.list_direct_members, limit=Family.MEMBERS)
members.bind("GET", "/all", member_actions.list_all_members, limit=Family.MEMBERS)
members.bind("GET", "/<int:user_id>", member_actions.show_direct_member, limit=Family.MEMBERS)
members.bind("GET", "/all/<int:user_id>", member_actions.show_member, limit=Family.MEMBERS)
members.bind("POST", "", member_actions.add_members)
members.bind("PUT", "/<int:user_id>", member_actions.change_member)
members.bind("DELETE", "/<int:user_id>", member_actions.remove_member)

invitations = Resources(
    "invitations",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/invitations",
)
invitations.bind("GET", "", invitation_actions.list_invitations, limit=Family.MEMBERS)
invitations.bind("POST", "", invitation_actions.invite)
invitations.bind("PUT", "/<string:email>", invitation_actions.change_invitation)
invitations.bind("DELETE", "/<string:email>", invitation_actions.revoke_invitation)

member_roles = Resources("member_roles", __name__, url_prefix="/member_roles")
member_roles.bind_usual(role_actions, "/<int:role_id>")

group_member_roles = Resources(
    "group_member_roles", __name__, url_prefix="/groups/<string:reference>/member_roles"
)
group_member_roles.bind_usual(role_actions, "/<int:role_id>")
