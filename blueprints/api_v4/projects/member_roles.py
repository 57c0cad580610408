"""/api/v4/member_roles: custom roles of the instance, for administrators."""

from flask import Blueprint

from domain.audit.events import EventKind
from domain.projects import member_roles as domain
from domain.projects.changes import member_role_event
from domain.types.base import Found, OffsetQuery
from web.api.operations import operation
from web.api.schemas.projects.member_roles import MemberRole, MemberRoleBody
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

member_roles = Blueprint("member_roles", __name__, url_prefix="/member_roles")


@member_roles.get("")
@operation("member_roles.index", query=OffsetQuery, returns=MemberRole)
def index(query: OffsetQuery) -> Found[MemberRole]:
    """List the member roles of the instance."""
    return listed_roles(query)


@member_roles.post("")
@operation("member_roles.create", body=MemberRoleBody, returns=MemberRole, status=201)
def create(body: MemberRoleBody) -> MemberRole:
    """Create a member role."""
    return created_role(body)


@member_roles.delete("/<int:role_id>")
@operation("member_roles.delete")
def delete(role_id: int) -> None:
    """Delete a member role that no member has."""
    remove_role(role_id)


def listed_roles(query: OffsetQuery) -> Found[MemberRole]:
    """Return a page of the member roles."""
    found = domain.list_member_roles(session=db.session())
    shown = found[query.offset : query.offset + query.size]
    return Found(items=[MemberRole.of(each) for each in shown], total=len(found))


def created_role(body: MemberRoleBody) -> MemberRole:
    """Create a member role, and record it."""
    made = domain.create_member_role(body.details, session=db.session(), now=now())
    record_event(member_role_event(EventKind.MEMBER_ROLE_CREATED, made))
    return MemberRole.of(made)


def remove_role(role_id: int) -> None:
    """Delete a member role, and record it."""
    removed = domain.delete_member_role(role_id, session=db.session())
    record_event(member_role_event(EventKind.MEMBER_ROLE_REMOVED, removed))
