"""/api/v4/member_roles and, until release 17.0, /api/v4/groups/:id/member_roles: custom roles."""

from domain.projects import member_role_actions as actions
from web.api.operations import Resources

member_roles = Resources("member_roles", __name__, url_prefix="/member_roles")
member_roles.bind("GET", "", actions.list_member_roles)
member_roles.bind("POST", "", actions.create_member_role)
member_roles.bind("DELETE", "/<int:role_id>", actions.delete_member_role)

group_member_roles = Resources(
    "group_member_roles", __name__, url_prefix="/groups/<string:reference>/member_roles"
)
group_member_roles.bind("GET", "", actions.list_group_member_roles)
group_member_roles.bind("POST", "", actions.create_group_member_role)
group_member_roles.bind("DELETE", "/<int:role_id>", actions.delete_group_member_role)
