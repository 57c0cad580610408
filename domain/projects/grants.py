"""Conditions of SQL for what a viewer sees, and where the viewer has a role."""

from datetime import date

from sqlalchemy import BindParameter, ColumnElement, Select, or_, select, true

from domain.access.roles import Role
from domain.projects.views import Viewer
from models import Group, Member, Project

PRIVATE, INTERNAL, PUBLIC = "private", "internal", "public"
VISIBILITIES = (PRIVATE, INTERNAL, PUBLIC)


def is_in_force(today: date | BindParameter[date]) -> ColumnElement[bool]:
    """Return the condition for memberships that have not ended."""
    return or_(Member.expires_at.is_(None), Member.expires_at > today)


def _memberships(viewer: Viewer, least: Role) -> list[ColumnElement[bool]]:
    return [
        Member.user_id == viewer.user_id,
        Member.role >= int(least),
        is_in_force(viewer.today),
    ]


def groups_with_role(viewer: Viewer, least: Role = Role.GUEST) -> Select[int]:
    """Return the ids of groups in which the viewer has a role, of their own or from above.

    As of `subtree`, deleted ones may be among them.
    """
    direct = select(Member.group_id).where(
        Member.group_id.is_not(None), *_memberships(viewer, least)
    )
    return subtree(direct)


def projects_with_direct_role(viewer: Viewer, least: Role = Role.GUEST) -> Select[int | None]:
    """Return the ids of projects of which the viewer is a direct member."""
    return select(Member.project_id).where(
        Member.project_id.is_not(None), *_memberships(viewer, least)
    )


def subtree(roots: Select[int | None] | Select[int]) -> Select[int]:
    """Return the ids of groups and of all groups below them, deleted ones as well.

    The caller leaves deleted groups and projects out: a planner that has not counted the table
    takes nearly all groups for deleted, and then compares every group with every other.
    """
    found = roots.cte(recursive=True)
    (root,) = found.c
    whole = found.union(select(Group.id).join(found, Group.parent_id == root))
    return select(whole.c[root.key])


def has_role_in_project(viewer: Viewer, least: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return the condition for projects in which the viewer is a member with this role."""
    direct = projects_with_direct_role(viewer, least)
    return or_(Project.group_id.in_(groups_with_role(viewer, least)), Project.id.in_(direct))


def is_open_to(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition for projects that the viewer sees without being a member."""
    if viewer.user_id is None:
        return Project.visibility == PUBLIC
    return Project.visibility.in_((INTERNAL, PUBLIC))


def sees_project(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition for projects that the viewer sees; deleted ones nobody sees."""
    exists = Project.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    if viewer.user_id is None:
        return exists & is_open_to(viewer)
    return exists & or_(is_open_to(viewer), has_role_in_project(viewer))


def sees_group(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition for groups in which the viewer has a role, or sees a project."""
    exists = Group.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    seen = is_open_to(viewer)
    if viewer.user_id is not None:
        seen = or_(seen, Project.id.in_(projects_with_direct_role(viewer)))
    live = select(Project.group_id).where(Project.deleted_at.is_(None), seen)
    holds_seen = Group.id.in_(live)
    if viewer.user_id is None:
        return exists & holds_seen
    return exists & or_(Group.id.in_(groups_with_role(viewer)), holds_seen)


def has_role_in_group(viewer: Viewer, least: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return the condition for groups in which the viewer is a member with this role."""
    if viewer.user_id is None:
        return ~true()
    return Group.id.in_(groups_with_role(viewer, least))
