"""Visibility of groups and projects, and the roles and permissions of viewers."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Date,
    Integer,
    Select,
    bindparam,
    case,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from domain.access.features import AccessLevel, Feature
from domain.access.roles import Ability, Role, parse_abilities
from domain.core.errors import NotFoundError
from domain.core.types.base import get_column_values
from domain.projects.member_roles import is_custom_role_of_member
from domain.projects.paths import MovedError, find_by_former_path, list_ancestor_paths
from domain.projects.views import GroupView, JobTokenScope, Namespace, ProjectView, Viewer
from domain.projects.visibility_sql import (
    INTERNAL,
    PRIVATE,
    PUBLIC,
    VISIBILITIES,
    is_group_or_descendant,
    is_membership_active,
    is_share_active,
    is_visible_without_role,
    select_projects_with_direct_role,
)
from models import Alert, Group, Member, MemberRole, Project, ProjectShare
from models.case_folding import fold_text

__all__ = ["INTERNAL", "PRIVATE", "PUBLIC", "VISIBILITIES"]
#: Maximum number of alerts that are counted. If there are more, the count is COUNT_LIMIT + 1.
COUNT_LIMIT = 1_000


class _DirectRole(NamedTuple):
    role: Role
    #: Abilities that a custom role adds to the role.
    abilities: frozenset[Ability]


class DirectRoles(NamedTuple):
    """The direct roles of a user, by group path and by project ID."""

    by_group: dict[str, _DirectRole]
    by_project: dict[int, _DirectRole]


def select_shared_roles(
    project_ids: Sequence[int] | BindParameter[int],
    *columns: Any,
    today: date | BindParameter[date],
) -> Select[*tuple[Any, ...]]:
    """Select the roles that users have in projects through shares with groups.

    The given columns are selected after the role. Custom roles in the groups are ignored.
    """
    shared = aliased(Group)
    lower = case((Member.role < ProjectShare.role, Member.role), else_=ProjectShare.role)
    return (
        select(lower.label("role"), *columns)
        .select_from(ProjectShare)
        .join(shared, shared.id == ProjectShare.group_id)
        .join(Group, is_group_or_descendant(shared, Group))
        .join(Member, Member.group_id == Group.id)
        .where(
            ProjectShare.project_id.in_(project_ids),
            is_share_active(today),
            shared.deleted_at.is_(None),
            is_membership_active(today),
        )
    )


# Nearly every request runs the query for roles. The query is built only once, since building it
# takes as long as running it.
_TODAY = bindparam("today", type_=Date)
_PROJECT_IDS: BindParameter[int] = bindparam("project_ids", type_=Integer, expanding=True)
_HAS_PATH_KEY = Group.path_key.in_(bindparam("path_keys", expanding=True))
_DIRECT_ROLES: Select[*tuple[Any, ...]] = (
    select(Member.role, Group.path, Member.project_id, MemberRole.abilities, Member.user_id)
    .outerjoin(Group, Group.id == Member.group_id)
    .outerjoin(MemberRole, is_custom_role_of_member())
    .where(
        is_membership_active(_TODAY),
        or_(
            Member.group_id.in_(select(Group.id).where(_HAS_PATH_KEY)),
            Member.project_id.in_(_PROJECT_IDS),
        ),
    )
)
_SHARED_ROLES = select_shared_roles(
    *(_PROJECT_IDS, null(), ProjectShare.project_id, null(), Member.user_id), today=_TODAY
)
_IS_REQUESTED_USER = Member.user_id.in_(bindparam("user_ids", expanding=True))
#: Query for the roles of users in the groups with the given path keys, and in the projects with the
#: given IDs.
_ROLES_QUERY = union_all(
    *(each.where(_IS_REQUESTED_USER) for each in (_DIRECT_ROLES, _SHARED_ROLES))
)


def read_roles(
    user_ids: Collection[int], namespaces: Iterable[Namespace], *, today: date, session: Session
) -> Mapping[int, DirectRoles]:
    """Return the direct roles of users, by user ID.

    Only roles in the given namespaces and in their ancestor groups are read, since a user may be a
    member of thousands of groups.
    """
    named = tuple(namespaces)
    keys = {
        fold_text(path) for each in named for path in (*list_ancestor_paths(each.path), each.path)
    }
    values = {
        "user_ids": [*user_ids],
        "today": today,
        "path_keys": [*keys],
        "project_ids": [each.project_id for each in named if each.project_id is not None],
    }
    roles = {user_id: DirectRoles({}, {}) for user_id in user_ids}
    for *role, user_id in session.execute(_ROLES_QUERY, values):
        _add_role(roles[user_id], *role)
    return roles


def _add_role(
    roles: DirectRoles,
    role: int,
    group_path: str,
    project_id: int | None,
    names: Sequence[str] | None,
) -> None:
    found = _DirectRole(Role(role), parse_abilities(names or ()))
    if project_id is None:
        roles.by_group[group_path] = found
    else:
        before = roles.by_project.get(project_id, found)
        highest, abilities = max(before.role, found.role), before.abilities | found.abilities
        roles.by_project[project_id] = _DirectRole(highest, abilities)


def _find_highest_role(roles: Iterable[_DirectRole | None]) -> Role | None:
    return max((each.role for each in roles if each is not None), default=None)


def _merge_abilities(roles: Iterable[_DirectRole | None]) -> frozenset[Ability]:
    return frozenset[Ability]().union(*(each.abilities for each in roles if each is not None))


class ViewerPermissions:
    """The permissions of one viewer in the groups and projects whose roles were read."""

    def __init__(self, viewer: Viewer, roles: DirectRoles) -> None:
        """Store the viewer and the viewer's roles, including roles in ancestor groups."""
        self.viewer = viewer
        self._by_group, self._by_project = roles

    def get_group_role(self, path: str) -> Role | None:
        """Return the viewer's highest role in a group, direct or inherited."""
        if self.viewer.is_admin:
            return Role.OWNER
        return self.get_group_role_as_member(path)

    def get_group_role_as_member(self, path: str) -> Role | None:
        """Return the viewer's highest role in a group, ignoring administrator rights."""
        return _find_highest_role(self._iterate_group_roles(path))

    def get_group_abilities(self, path: str) -> frozenset[Ability]:
        """Return the abilities that direct and inherited custom roles add in a group."""
        return _merge_abilities(self._iterate_group_roles(path))

    def get_direct_project_role(self, project_id: int) -> Role | None:
        """Return the viewer's direct role in a project."""
        return _find_highest_role((self._by_project.get(project_id),))

    def get_project_role(self, project: Project) -> Role | None:
        """Return the viewer's highest role in a project, direct or inherited from a group."""
        if self.viewer.is_admin:
            return Role.OWNER
        return _find_highest_role(self._iterate_project_roles(project))

    def get_project_abilities(self, project: Project) -> frozenset[Ability]:
        """Return the abilities that direct and inherited custom roles add in a project."""
        return _merge_abilities(self._iterate_project_roles(project))

    def _iterate_group_roles(self, path: str) -> Iterator[_DirectRole | None]:
        return (self._by_group.get(each) for each in (*list_ancestor_paths(path), path))

    def _iterate_project_roles(self, project: Project) -> Iterator[_DirectRole | None]:
        yield from self._iterate_group_roles(project.path)
        yield self._by_project.get(project.id)

    def can_see_project(self, project: Project) -> bool:
        """Return whether the viewer can see a project.

        Members can see the project at any visibility. Other viewers can see public projects and, if
        they are signed in, internal projects. Deleted projects are never visible.
        """
        if project.deleted_at is not None:
            return False
        if project.visibility == PUBLIC or self.get_project_role(project) is not None:
            return True
        return project.visibility == INTERNAL and self.viewer.user_id is not None

    def build_project_view(self, project: Project, *, open_alerts: int = 0) -> ProjectView:
        """Return a project with the viewer's role and abilities.

        The number of open alerts is included only if the viewer may see the project's alerts.
        """
        seen = ProjectView(
            **get_column_values(project, ProjectView),
            role=self.get_project_role(project),
            is_archived=project.archived_at is not None,
            access_levels={
                each: AccessLevel(getattr(project, f"{each}_access_level")) for each in Feature
            },
            abilities=self.get_project_abilities(project),
            job_token_scope=JobTokenScope(
                outbound_enabled=project.limits_job_token_to_others,
                inbound_enabled=project.limits_job_tokens_of_others,
            ),
        )
        # The number of alerts is shown only to viewers who may see the alerts.
        return replace(seen, open_alerts=open_alerts) if seen.can_see_alerts else seen

    def build_group_view(self, group: Group) -> GroupView:
        """Return a group with the viewer's role and abilities.

        The subgroups and projects of the group are not included.
        """
        role = self.get_group_role(group.path)
        return GroupView(
            **get_column_values(group, GroupView),
            # A personal namespace depends on its owner's account, so no role can change it.
            role=role and Role.GUEST if group.owner_id else role,
            abilities=self.get_group_abilities(group.path),
        )


def read_permissions(
    viewer: Viewer, namespaces: Iterable[Namespace], *, session: Session
) -> ViewerPermissions:
    """Read the permissions of a viewer in the given namespaces."""
    if not viewer.user_id:
        return ViewerPermissions(viewer, DirectRoles({}, {}))
    read = read_roles([viewer.user_id], namespaces, today=viewer.today, session=session)
    return ViewerPermissions(viewer, read[viewer.user_id])


_PATH_KEY: BindParameter[str] = bindparam("path_key")
_PROJECT_QUERY = select(Project).where(Project.path_key == _PATH_KEY, Project.deleted_at.is_(None))
_GROUP_QUERY = select(Group).where(Group.path_key == _PATH_KEY, Group.deleted_at.is_(None))


def get_project(path: str, viewer: Viewer, *, session: Session) -> ProjectView:
    """Return the project at the given full path.

    Raise NotFoundError if there is no such project, or if the viewer is not allowed to see the
    project. Raise MovedError for a former path of a project that the viewer may see.
    """
    present = session.scalar(_PROJECT_QUERY, {"path_key": fold_text(path)})
    project = present or find_by_former_path(Project, path, session=session)
    if project is not None:
        permissions = read_permissions(viewer, [build_namespace(project)], session=session)
        if permissions.can_see_project(project):
            if present is None:
                raise MovedError(path, build_namespace(project))
            return permissions.build_project_view(project)
    raise NotFoundError("Project not found, or you do not have access.")


def resolve_project(path: str, viewer: Viewer, *, session: Session) -> ProjectView:
    """Return the project at the given full path, which may be a former path."""
    try:
        return get_project(path, viewer, session=session)
    except MovedError as moved:
        return get_project(moved.namespace.path, viewer, session=session)


def resolve_group(path: str, viewer: Viewer, *, session: Session) -> GroupView:
    """Return the group at the given full path, which may be a former path."""
    try:
        return get_group(path, viewer, session=session)
    except MovedError as moved:
        return get_group(moved.namespace.path, viewer, session=session)


def build_namespace(row: Group | Project) -> Namespace:
    """Return the ID and the full path of a group or project as a `Namespace`."""
    if isinstance(row, Group):
        return Namespace(group_id=row.id, path=row.path)
    return Namespace(project_id=row.id, path=row.path)


def get_group(path: str, viewer: Viewer, *, session: Session) -> GroupView:
    """Return the group at the given full path, without its subgroups and projects.

    Raise NotFoundError if there is no such group, or if the viewer can see neither the group nor
    any of its projects. Raise MovedError for a former path of a group that the viewer may see.
    """
    present = session.scalar(_GROUP_QUERY, {"path_key": fold_text(path)})
    group = present or find_by_former_path(Group, path, session=session)
    if group is not None:
        view = read_permissions(viewer, [build_namespace(group)], session=session).build_group_view(
            group
        )
        if view.role is not None or _has_visible_project(group.id, viewer, session=session):
            if present is None:
                raise MovedError(path, build_namespace(group))
            return view
    raise NotFoundError("Group not found, or you do not have access.")


def _has_visible_project(group_id: int, viewer: Viewer, *, session: Session) -> bool:
    """Return whether a viewer without a role in a group can see at least one of its projects."""
    inside = select(Project.id).where(Project.group_id == group_id, Project.deleted_at.is_(None))
    ways = [inside.where(is_visible_without_role(viewer))]
    if viewer.user_id is not None:
        ways.append(inside.where(Project.id.in_(select_projects_with_direct_role(viewer))))
    return any(session.scalar(each.limit(1)) is not None for each in ways)


def find_role_in_namespace(
    path: str, project_id: int | None, viewer: Viewer, *, session: Session
) -> Role | None:
    """Return the viewer's current role in a group, or in the project with the given ID."""
    namespace = Namespace(project_id=project_id, path=path)
    permissions = read_permissions(viewer, [namespace], session=session)
    if project_id is None:
        return permissions.get_group_role(path)
    return permissions.get_project_role(session.get_one(Project, project_id))


def count_open_alerts(project_ids: Sequence[int], *, session: Session) -> dict[int, int]:
    """Return the number of open alerts by project ID, capped at COUNT_LIMIT + 1."""
    first = (
        select(literal(1))
        .where(Alert.project_id == Project.id, Alert.status.in_(("triggered", "acknowledged")))
        .correlate(Project)
        .limit(COUNT_LIMIT + 1)
        .subquery()
    )
    count = select(func.count()).select_from(first).correlate(Project).scalar_subquery()
    rows = session.execute(select(Project.id, count).where(Project.id.in_(project_ids)))
    return dict(rows.all())
