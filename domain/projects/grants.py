"""Conditions of SQL for what a viewer sees, and where the viewer has a role."""

from datetime import date

from sqlalchemy import ColumnElement, Select, or_, select, true

from domain.accounts.roles import Role
from domain.projects.views import Viewer
from models import Group, Member, Project

PRIVATE, INTERNAL, PUBLIC = "private", "internal", "public"
VISIBILITIES = (PRIVATE, INTERNAL, PUBLIC)


def is_in_force(today: date) -> ColumnElement[bool]:
    """Return the condition for memberships that have not ended."""
    return or_(Member.expires_at.is_(None), Member.expires_at > today)


def _memberships(viewer: Viewer, least: Role) -> Select[int | None]:
    return select(Member.group_id).where(
        Member.user_id == viewer.user_id,
        Member.role >= int(least),
        is_in_force(viewer.today),
    )


def groups_with_role(viewer: Viewer, least: Role = Role.GUEST) -> Select[int]:
    """Return the ids of groups in which the viewer has a role, of their own or from above."""
    direct = _memberships(viewer, least).where(Member.group_id.is_not(None))
    return subtree(direct)


def subtree(roots: Select[int | None] | Select[int]) -> Select[int]:
    """Return the ids of groups and of all groups below them."""
    found = (
        select(Group.id).where(Group.id.in_(roots), Group.deleted_at.is_(None)).cte(recursive=True)
    )
    below = select(Group.id).join(found, Group.parent_id == found.c.id)
    whole = found.union(below.where(Group.deleted_at.is_(None)))
    return select(whole.c.id)


def has_role_in_project(viewer: Viewer, least: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return the condition for projects in which the viewer is a member with this role."""
    direct = select(Member.project_id).where(
        Member.user_id == viewer.user_id,
        Member.project_id.is_not(None),
        Member.role >= int(least),
        is_in_force(viewer.today),
    )
    return or_(Project.group_id.in_(groups_with_role(viewer, least)), Project.id.in_(direct))


def sees_project(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition for projects that the viewer sees; deleted ones nobody sees."""
    exists = Project.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    if viewer.user_id is None:
        return exists & (Project.visibility == PUBLIC)
    is_open = Project.visibility.in_((INTERNAL, PUBLIC))
    return exists & or_(is_open, has_role_in_project(viewer))


def sees_group(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition for groups in which the viewer has a role, or sees a project."""
    exists = Group.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    holds_seen = Group.id.in_(select(Project.group_id).where(sees_project(viewer)))
    if viewer.user_id is None:
        return exists & holds_seen
    return exists & or_(Group.id.in_(groups_with_role(viewer)), holds_seen)


def has_role_in_group(viewer: Viewer, least: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return the condition for groups in which the viewer is a member with this role."""
    if viewer.user_id is None:
        return ~true()
    return Group.id.in_(groups_with_role(viewer, least))
