"""SQL conditions for the visibility of groups and projects, and for the roles of a viewer."""

from datetime import date

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    func,
    or_,
    select,
    true,
    union_all,
)

from domain.access.roles import Role
from domain.projects.views import Viewer
from models import Group, Member, Project, ProjectShare

PRIVATE, INTERNAL, PUBLIC = "private", "internal", "public"
VISIBILITIES = (PRIVATE, INTERNAL, PUBLIC)


def is_membership_active(today: date | BindParameter[date]) -> ColumnElement[bool]:
    """Return an SQL condition that matches memberships that have not ended."""
    return or_(Member.expires_at.is_(None), Member.expires_at > today)


def is_group_or_descendant(inner: type[Group], outer: type[Group]) -> ColumnElement[bool]:
    """Return an SQL condition that is true if `inner` is `outer` or one of its subgroups."""
    beginning = func.substr(inner.path, 1, func.length(outer.path) + 1)
    return or_(inner.id == outer.id, beginning == outer.path + "/")


def _build_membership_conditions(viewer: Viewer, minimum_role: Role) -> list[ColumnElement[bool]]:
    return [
        Member.user_id == viewer.user_id,
        Member.role >= int(minimum_role),
        is_membership_active(viewer.today),
    ]


def select_groups_with_role(viewer: Viewer, minimum_role: Role = Role.GUEST) -> Select[int]:
    """Select the IDs of groups in which the viewer has a direct or inherited role.

    The result may include deleted groups, as in `select_subtree`.
    """
    direct = select(Member.group_id).where(
        Member.group_id.is_not(None), *_build_membership_conditions(viewer, minimum_role)
    )
    return select_subtree(direct)


def is_share_active(today: date | BindParameter[date]) -> ColumnElement[bool]:
    """Return an SQL condition that matches project shares that have not ended."""
    return or_(ProjectShare.expires_at.is_(None), ProjectShare.expires_at > today)


def select_projects_with_direct_role(
    viewer: Viewer, minimum_role: Role = Role.GUEST, *, groups: Select[int] | None = None
) -> CompoundSelect[int | None]:
    """Select the IDs of projects in which the viewer has a direct role or a role through a share.

    A share gives a role to the members of the group with which the project is shared. `groups`
    selects the groups of the viewer; the default is `select_groups_with_role`.
    """
    groups = select_groups_with_role(viewer, minimum_role) if groups is None else groups
    direct = select(Member.project_id).where(
        Member.project_id.is_not(None), *_build_membership_conditions(viewer, minimum_role)
    )
    shared = select(ProjectShare.project_id).where(
        ProjectShare.role >= int(minimum_role),
        is_share_active(viewer.today),
        ProjectShare.group_id.in_(groups),
    )
    return union_all(direct, shared)


def select_subtree(roots: Select[int | None] | Select[int]) -> Select[int]:
    """Select the IDs of groups and of all their subgroups, including deleted groups.

    The caller must exclude deleted groups and projects. If this query excluded deleted groups, a
    planner without statistics would assume that nearly all groups are deleted, and would compare
    every group with every other group.
    """
    found = roots.cte(recursive=True)
    (root,) = found.c
    whole = found.union(select(Group.id).join(found, Group.parent_id == root))
    return select(whole.c[root.key])


def has_role_in_project(viewer: Viewer, minimum_role: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return an SQL condition for projects in which the viewer has at least the given role."""
    groups = select_groups_with_role(viewer, minimum_role)
    direct = select_projects_with_direct_role(viewer, minimum_role, groups=groups)
    return or_(Project.group_id.in_(groups), Project.id.in_(direct))


def is_visible_without_role(viewer: Viewer) -> ColumnElement[bool]:
    """Return an SQL condition for projects that are visible to the viewer without membership."""
    if viewer.user_id is None:
        return Project.visibility == PUBLIC
    return Project.visibility.in_((INTERNAL, PUBLIC))


def is_project_visible(viewer: Viewer) -> ColumnElement[bool]:
    """Return an SQL condition for projects that the viewer can see.

    Deleted projects are excluded.
    """
    exists = Project.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    if viewer.user_id is None:
        return exists & is_visible_without_role(viewer)
    return exists & or_(is_visible_without_role(viewer), has_role_in_project(viewer))


def is_group_visible(viewer: Viewer) -> ColumnElement[bool]:
    """Return an SQL condition for groups in which the viewer has a role or can see a project."""
    exists = Group.deleted_at.is_(None)
    if viewer.is_admin:
        return exists
    seen = is_visible_without_role(viewer)
    if viewer.user_id is not None:
        seen = or_(seen, Project.id.in_(select_projects_with_direct_role(viewer)))
    live = select(Project.group_id).where(Project.deleted_at.is_(None), seen)
    holds_seen = Group.id.in_(live)
    if viewer.user_id is None:
        return exists & holds_seen
    return exists & or_(Group.id.in_(select_groups_with_role(viewer)), holds_seen)


def has_role_in_group(viewer: Viewer, minimum_role: Role = Role.GUEST) -> ColumnElement[bool]:
    """Return an SQL condition for groups in which the viewer has at least the given role."""
    if viewer.user_id is None:
        return ~true()
    return Group.id.in_(select_groups_with_role(viewer, minimum_role))
