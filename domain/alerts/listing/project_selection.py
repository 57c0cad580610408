"""Selects the projects for combined alert lists: the projects of a group or of a member."""

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from domain.access.features import AccessLevel
from domain.access.roles import MINIMUM_ROLES, Ability
from domain.projects.member_roles import is_custom_role_of_member
from domain.projects.views import Viewer
from domain.projects.visibility_sql import (
    has_role_in_project,
    is_membership_active,
    select_groups_with_role,
    select_subtree,
)
from models import Group, Member, MemberRole, Project
from models.case_folding import fold_text

#: Query for the IDs of projects.
ProjectSelection = Select[int]


def build_single_project_query(project_id: int) -> Select[int]:
    """Return a query for the ID of one project."""
    return select(Project.id).where(Project.id == project_id)


def build_group_projects_query(group_id: int) -> Select[int]:
    """Return a query for the IDs of all projects in a group that have alerts turned on."""
    top = select(Group.id).where(Group.id == group_id)
    return _build_monitored_projects_query().where(Project.group_id.in_(select_subtree(top)))


def build_member_projects_query(
    viewer: Viewer,
    *,
    session: Session,
    ability: Ability = Ability.READ_ALERTS,
    path: str | None = None,
) -> Select[int]:
    """Return a query for the IDs of projects in which the viewer has an ability as a member.

    For administrators, the query returns only projects of which they are members. If `path` is
    given, only the project with this path or the projects in the group with this path can match.
    """
    groups, projects = _find_custom_role_grants(viewer, ability, session=session)
    in_groups = select_subtree(select(Group.id).where(Group.id.in_(groups)))
    found = _build_monitored_projects_query().where(
        or_(
            has_role_in_project(viewer, MINIMUM_ROLES[ability]),
            Project.group_id.in_(in_groups),
            Project.id.in_(projects),
        )
    )
    if path is None:
        return found
    key = fold_text(path)
    is_below = Project.path_key.startswith(f"{key}/", autoescape=True)
    return found.where(or_(Project.path_key == key, is_below))


def build_member_groups_query(
    viewer: Viewer, *, session: Session, ability: Ability = Ability.READ_ALERTS
) -> Select[int]:
    """Return a query for the IDs of groups in which the viewer has an ability as a member.

    The result may include deleted groups.
    """
    groups, _ = _find_custom_role_grants(viewer, ability, session=session)
    custom = select_subtree(select(Group.id).where(Group.id.in_(groups)))
    with_role = select_groups_with_role(viewer, MINIMUM_ROLES[ability])
    return select(Group.id).where(or_(Group.id.in_(with_role), Group.id.in_(custom)))


def select_projects_by_path(projects: Select[int], path: str) -> Select[int]:
    """Limit a query to projects whose path equals or ends with the given path."""
    key = fold_text(path)
    is_end = Project.path_key.endswith(f"/{key}", autoescape=True)
    return projects.where(or_(Project.path_key == key, is_end))


def exclude_archived_projects(projects: Select[int]) -> Select[int]:
    """Exclude archived projects from a query for projects."""
    return projects.where(Project.archived_at.is_(None))


def list_project_ids(projects: Select[int], *, session: Session) -> tuple[int, ...]:
    """Return the IDs of the projects that a query selects."""
    return tuple(session.scalars(projects))


def list_project_paths(projects: Select[int], *, most: int, session: Session) -> tuple[str, ...]:
    """Return up to `most` full paths of the projects that a query selects, sorted."""
    named = select(Project.path).where(Project.id.in_(projects)).order_by(Project.path_key)
    return tuple(session.scalars(named.limit(most)))


def _find_custom_role_grants(
    viewer: Viewer, ability: Ability, *, session: Session
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the IDs of groups and of projects in which a custom role grants an ability."""
    rows = session.execute(
        select(Member.group_id, Member.project_id, MemberRole.abilities)
        .join(MemberRole, is_custom_role_of_member())
        .where(Member.user_id == viewer.user_id, is_membership_active(viewer.today))
    ).all()
    may = [row for row in rows if ability in row.abilities]
    return (
        tuple(row.group_id for row in may if row.group_id is not None),
        tuple(row.project_id for row in may if row.project_id is not None),
    )


def _build_monitored_projects_query() -> Select[int]:
    return select(Project.id).where(
        Project.deleted_at.is_(None),
        Project.monitor_access_level != AccessLevel.DISABLED.value,
    )
