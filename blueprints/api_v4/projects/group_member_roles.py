"""/api/v4/groups/:id/member_roles: the member roles of the instance, until release 17.0."""

from flask import Blueprint

from blueprints.api_v4.projects.member_roles import created_role, listed_roles, remove_role
from domain.types.base import Found, OffsetQuery
from web.api.operations import operation
from web.api.schemas.projects.member_roles import MemberRole, MemberRoleBody

group_member_roles = Blueprint(
    "group_member_roles", __name__, url_prefix="/groups/<string:reference>/member_roles"
)


@group_member_roles.get("")
@operation("group_member_roles.index", query=OffsetQuery, returns=MemberRole)
def index(query: OffsetQuery) -> Found[MemberRole]:
    """List the member roles of the instance; gone from release 17.0 on."""
    return listed_roles(query)


@group_member_roles.post("")
@operation("group_member_roles.create", body=MemberRoleBody, returns=MemberRole, status=201)
def create(body: MemberRoleBody) -> MemberRole:
    """Create a member role; gone from release 17.0 on."""
    return created_role(body)


@group_member_roles.delete("/<int:role_id>")
@operation("group_member_roles.delete")
def delete(role_id: int) -> None:
    """Delete a member role that no member has; gone from release 17.0 on."""
    remove_role(role_id)
