"""Lists groups and projects that a viewer can see, page by page, in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    case,
    exists,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import Session

from domain.access.roles import MINIMUM_ROLES, Ability, Role
from domain.core.database.bulk_statements import latest
from domain.core.database.pagination import PageRequest, PageResult, fetch_list_page
from domain.core.errors import NotFoundError
from domain.projects.access import (
    INTERNAL,
    PRIVATE,
    PUBLIC,
    ViewerPermissions,
    build_namespace,
    read_permissions,
)
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import GroupView, ProjectView, SharedGroup, Viewer
from domain.projects.visibility_sql import (
    has_role_in_group,
    has_role_in_project,
    is_group_visible,
    is_project_visible,
    is_share_active,
    select_subtree,
)
from models import (
    Alert,
    Deployment,
    Group,
    Project,
    ProjectRelease,
    ProjectShare,
    RegistryRepository,
)
from models.case_folding import build_search_text, fold_text

_PROJECT_NAME = build_search_text(Project.name, Project.name_key)
_GROUP_NAME = build_search_text(Group.name, Group.name_key)
#: Values of `order_by` that order projects by their last activity.
_ACTIVITY_ORDERS = frozenset({"last_activity_at", "updated_at"})
_GROUP_ORDERS = {
    "id": Group.id,
    "name": _GROUP_NAME,
    "path": Group.path_key,
    "similarity": _GROUP_NAME,
}
_MAX_SUBGROUPS = 100


def build_last_activity_time(viewer: Viewer) -> ColumnElement[datetime]:
    """Return the SQL expression for the time of the latest activity visible to the viewer.

    Activities are the project's creation, pushes, releases, deployments, images and alerts. For
    example, the time of the latest alert counts only for viewers who may see alerts.
    """
    reads_code = _has_ability(Ability.READ_CODE, viewer)
    return latest(
        Project.created_at,
        _select_newest_time(
            select(func.max(ProjectRelease.created_at)).where(_belongs_to_project(ProjectRelease))
        ),
        _build_time_if_known(
            or_(Project.visibility != PRIVATE, reads_code),
            _default_to_creation_time(Project.pushed_at),
        ),
        _build_time_if_known(
            reads_code,
            _select_newest_time(
                select(func.max(RegistryRepository.pushed_at)).where(
                    _belongs_to_project(RegistryRepository)
                )
            ),
        ),
        _build_time_if_known(
            _has_ability(Ability.READ_ENVIRONMENTS, viewer),
            _select_newest_time(
                select(func.max(Deployment.updated_at)).where(_belongs_to_project(Deployment))
            ),
        ),
        _build_time_if_known(
            _has_ability(Ability.READ_ALERTS, viewer),
            _select_newest_time(
                select(Alert.created_at)
                .where(_belongs_to_project(Alert))
                .order_by(Alert.iid.desc())
                .limit(1)
            ),
        ),
    )


def store_push_time(project_id: int, *, session: Session, now: datetime) -> None:
    """Store the time of a push to the repository of a project."""
    session.execute(update(Project).where(Project.id == project_id).values(pushed_at=now))


def _belongs_to_project(
    table: type[Alert | Deployment | ProjectRelease | RegistryRepository],
) -> ColumnElement[bool]:
    return table.project_id == Project.id


def _select_newest_time(times: Select[datetime]) -> ColumnElement[datetime]:
    return _default_to_creation_time(times.correlate(Project).scalar_subquery())


def _default_to_creation_time(time: SQLColumnExpression[Any]) -> ColumnElement[datetime]:
    return func.coalesce(time, Project.created_at)


def _build_time_if_known(
    is_known: ColumnElement[bool], time: ColumnElement[datetime]
) -> ColumnElement[datetime]:
    return case((is_known, time), else_=Project.created_at)


def _has_ability(ability: Ability, viewer: Viewer) -> ColumnElement[bool]:
    return true() if viewer.is_admin else has_role_in_project(viewer, MINIMUM_ROLES[ability])


_PROJECT_ORDERS = {
    "id": Project.id,
    "name": _PROJECT_NAME,
    "path": Project.path_key,
    "created_at": Project.created_at,
    # GitLab can order by these values, but Gatebell projects do not have them.
    **dict.fromkeys(
        (
            *("similarity", "star_count", "repository_size", "storage_size"),
            *("packages_size", "wiki_size"),
        ),
        Project.id,
    ),
}


@dataclass(frozen=True, kw_only=True)
class ProjectFilter:
    """The filters for a list of projects. By default, they match all projects."""

    #: ID of the group that contains the projects. `with_subgroups` includes its subgroups.
    group_id: int | None = None
    with_subgroups: bool = False
    #: Minimum role that the viewer must have as a member.
    least: Role | None = None
    #: ID of a user with the Owner role in the projects, direct or inherited.
    owner_id: int | None = None
    search: str = ""
    #: True if the search includes the paths of the groups that contain the projects.
    searches_groups: bool = False
    visibility: str | None = None
    is_archived: bool | None = None
    is_active: bool | None = None
    id_after: int | None = None
    id_before: int | None = None
    active_after: datetime | None = None
    active_before: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class GroupFilter:
    """The filters for a list of groups. By default, personal namespaces are excluded."""

    #: ID of the parent group.
    parent_id: int | None = None
    #: ID of an ancestor group at any level.
    below_id: int | None = None
    is_top_level: bool = False
    #: Minimum role that the viewer must have as a member.
    least: Role | None = None
    search: str = ""
    without: tuple[int, ...] = ()
    visibility: str | None = None
    #: True if the list includes personal namespaces.
    with_personal: bool = False


@dataclass(frozen=True, kw_only=True)
class GroupDetails:
    """A group, with the names of its ancestor groups and the highest visibility of its projects."""

    group: GroupView
    #: Names of the ancestor groups and of the group, outermost first.
    names: tuple[str, ...]
    #: Visibility of the most visible project, since everyone who can see a project can see its
    #: group.
    visibility: str


@dataclass(frozen=True, kw_only=True)
class ProjectDetails:
    """A project with its group and the viewer's roles."""

    project: ProjectView
    #: Group that contains the project.
    holder: GroupView
    #: Names of the ancestor groups, outermost first.
    group_names: tuple[str, ...]
    #: Direct role and inherited role of the viewer. Both can be None for administrators.
    direct_role: Role | None
    inherited_role: Role | None
    #: Time of the last activity that the viewer may see.
    last_activity_at: datetime
    #: Groups with which the project is shared. None if the viewer has no role in the project.
    shares: tuple[SharedGroup, ...] | None


def list_projects(
    project_filter: ProjectFilter, page_request: PageRequest, viewer: Viewer, *, session: Session
) -> PageResult[ProjectDetails]:
    """Return a page of the matching projects that a viewer can see."""
    statement = select(Project).where(*_build_project_conditions(project_filter, viewer))
    if project_filter.search:
        statement = _search_projects(statement, project_filter)
    orders = _PROJECT_ORDERS
    if page_request.order_by in _ACTIVITY_ORDERS:
        orders = orders | {page_request.order_by: build_last_activity_time(viewer)}
    found = fetch_list_page(statement, orders, page_request, session=session)
    rows = [row[0] for row in found.items]
    permissions = read_permissions(viewer, map(build_namespace, rows), session=session)
    views = [permissions.build_project_view(row) for row in rows]
    items = _build_project_details(views, permissions, session=session)
    return PageResult(items=items, total=found.total, next_cursor=found.next_cursor)


def get_project_details(
    project: ProjectView, viewer: Viewer, *, session: Session
) -> ProjectDetails:
    """Return a project with its group and the viewer's roles.

    Raise NotFoundError if the project was deleted in the meantime.
    """
    permissions = read_permissions(viewer, [project.namespace], session=session)
    found = _build_project_details([project], permissions, session=session)
    if not found:
        raise NotFoundError("Project not found, or you do not have access.")
    return found[0]


def list_groups(
    group_filter: GroupFilter, page_request: PageRequest, viewer: Viewer, *, session: Session
) -> PageResult[GroupDetails]:
    """Return a page of the matching groups that a viewer can see."""
    statement = select(Group).where(*_build_group_conditions(group_filter, viewer))
    found = fetch_list_page(statement, _GROUP_ORDERS, page_request, session=session)
    rows = [row[0] for row in found.items]
    permissions = read_permissions(viewer, map(build_namespace, rows), session=session)
    views = [permissions.build_group_view(row) for row in rows]
    items = _build_group_details(views, session=session)
    return PageResult(items=items, total=found.total, next_cursor=found.next_cursor)


def get_group_details(group: GroupView, *, session: Session) -> GroupDetails:
    """Return a group with its visibility and the names of its ancestor groups."""
    (found,) = _build_group_details([group], session=session)
    return found


def _build_project_conditions(
    project_filter: ProjectFilter, viewer: Viewer
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool] | None] = [
        _is_in_group(project_filter),
        # A viewer with a role can see the project, so its visibility does not need to be checked.
        is_project_visible(viewer)
        if project_filter.least is None
        else Project.deleted_at.is_(None) & has_role_in_project(viewer, project_filter.least),
        None
        if project_filter.owner_id is None
        else _build_ownership_condition(project_filter.owner_id, viewer),
        None
        if project_filter.visibility is None
        else Project.visibility == project_filter.visibility,
        _build_archived_condition(project_filter.is_archived),
        _build_archived_condition(
            None if project_filter.is_active is None else not project_filter.is_active
        ),
        None if project_filter.id_after is None else Project.id > project_filter.id_after,
        None if project_filter.id_before is None else Project.id < project_filter.id_before,
        None
        if project_filter.active_after is None
        else build_last_activity_time(viewer) >= project_filter.active_after,
        None
        if project_filter.active_before is None
        else build_last_activity_time(viewer) <= project_filter.active_before,
    ]
    return [each for each in conditions if each is not None]


def _build_ownership_condition(owner_id: int, viewer: Viewer) -> ColumnElement[bool]:
    """Return an SQL condition that matches the projects that a user owns.

    The condition matches only projects in which the viewer has a role, since other projects do not
    show their owners.
    """
    owner = replace(viewer, user_id=owner_id, is_admin=False)
    owned = has_role_in_project(owner, Role.OWNER)
    return owned if viewer.is_admin else owned & has_role_in_project(viewer)


def _is_in_group(project_filter: ProjectFilter) -> ColumnElement[bool] | None:
    if project_filter.group_id is None:
        return None
    if not project_filter.with_subgroups:
        return Project.group_id == project_filter.group_id
    return Project.group_id.in_(select_subtree(_select_group_id(project_filter.group_id)))


def _select_group_id(group_id: int) -> Select[int]:
    return select(Group.id).where(Group.id == group_id)


def _build_archived_condition(wanted: bool | None) -> ColumnElement[bool] | None:  # noqa: FBT001 - three values
    if wanted is None:
        return None
    return Project.archived_at.is_not(None) if wanted else Project.archived_at.is_(None)


def _search_projects(statement: Select[Project], project_filter: ProjectFilter) -> Select[Project]:
    """Search in the names of projects and in the last segments of their paths.

    If `searches_groups` is true, search in the entire paths.
    """
    word = fold_text(project_filter.search)
    if project_filter.searches_groups:
        return statement.where(
            or_(
                _PROJECT_NAME.contains(word, autoescape=True),
                Project.path_key.contains(word, autoescape=True),
            )
        )
    own_part = func.substr(Project.path_key, func.length(Group.path) + 2)
    return statement.join(Group, Group.id == Project.group_id).where(
        or_(
            _PROJECT_NAME.contains(word, autoescape=True),
            own_part.contains(word, autoescape=True),
        )
    )


def _build_group_conditions(group_filter: GroupFilter, viewer: Viewer) -> list[ColumnElement[bool]]:
    word = fold_text(group_filter.search)
    conditions: list[ColumnElement[bool] | None] = [
        None if group_filter.parent_id is None else Group.parent_id == group_filter.parent_id,
        None if group_filter.below_id is None else _is_descendant_group(group_filter.below_id),
        Group.parent_id.is_(None) if group_filter.is_top_level else None,
        None if group_filter.with_personal else Group.owner_id.is_(None),
        is_group_visible(viewer)
        if group_filter.least is None
        else Group.deleted_at.is_(None) & has_role_in_group(viewer, group_filter.least),
        Group.id.not_in(group_filter.without) if group_filter.without else None,
        or_(
            _GROUP_NAME.contains(word, autoescape=True),
            Group.path_key.contains(word, autoescape=True),
        )
        if word
        else None,
        None
        if group_filter.visibility is None
        else _select_highest_visibility() == group_filter.visibility,
    ]
    return [each for each in conditions if each is not None]


def _is_descendant_group(group_id: int) -> ColumnElement[bool]:
    return Group.id.in_(select_subtree(_select_group_id(group_id))) & (Group.id != group_id)


def _build_project_details(
    views: Sequence[ProjectView], permissions: ViewerPermissions, *, session: Session
) -> tuple[ProjectDetails, ...]:
    """Return the projects with their groups, roles, shares and latest activity times.

    Projects that were deleted in the meantime are omitted.
    """
    groups = _find_ancestor_groups([view.path for view in views], session=session)
    active_at = dict(
        session.execute(
            select(Project.id, build_last_activity_time(permissions.viewer)).where(
                Project.id.in_([view.id for view in views])
            )
        ).all()
    )
    mine = [view.id for view in views if view.role is not None]
    shares = find_shared_groups(mine, permissions.viewer.today, session=session)
    return tuple(
        ProjectDetails(
            project=view,
            shares=None if view.role is None else tuple(shares.get(view.id, ())),
            holder=permissions.build_group_view(groups[fold_text(view.group_path)]),
            group_names=_list_group_names(view.path, groups),
            direct_role=permissions.get_direct_project_role(view.id),
            inherited_role=permissions.get_group_role_as_member(view.group_path),
            last_activity_at=active_at[view.id],
        )
        for view in views
        if fold_text(view.group_path) in groups and view.id in active_at
    )


def find_shared_groups(
    project_ids: Sequence[int], today: date, *, session: Session
) -> dict[int, list[SharedGroup]]:
    """Return the groups with which projects are shared, by project ID."""
    found: dict[int, list[SharedGroup]] = {}
    rows = session.execute(
        select(ProjectShare, Group)
        .join(Group, Group.id == ProjectShare.group_id)
        .where(
            ProjectShare.project_id.in_(project_ids),
            is_share_active(today),
            Group.deleted_at.is_(None),
        )
        .order_by(Group.path_key)
    )
    for share, group in rows:
        shown = SharedGroup(
            group_id=group.id,
            group_name=group.name,
            group_full_path=group.path,
            group_access_level=share.role,
            expires_at=share.expires_at,
        )
        found.setdefault(share.project_id, []).append(shown)
    return found


def _build_group_details(
    views: Sequence[GroupView], *, session: Session
) -> tuple[GroupDetails, ...]:
    groups = _find_ancestor_groups([view.path for view in views], session=session)
    open_to = _find_highest_visibilities([view.id for view in views], session=session)
    return tuple(
        GroupDetails(
            group=view,
            names=(*_list_group_names(view.path, groups), view.name),
            visibility=open_to.get(view.id, PRIVATE),
        )
        for view in views
    )


def _list_group_names(path: str, groups: Mapping[str, Group]) -> tuple[str, ...]:
    return tuple(groups[fold_text(each)].name for each in list_ancestor_paths(path))


def _find_ancestor_groups(paths: Iterable[str], *, session: Session) -> dict[str, Group]:
    keys = {fold_text(each) for path in paths for each in list_ancestor_paths(path)}
    found = session.scalars(select(Group).where(Group.path_key.in_(keys)))
    return {group.path_key or fold_text(group.path): group for group in found}


def _find_highest_visibilities(group_ids: Sequence[int], *, session: Session) -> dict[int, str]:
    """Return the highest visibility among the projects of each group."""
    rows = session.execute(
        select(Group.id, _select_highest_visibility()).where(Group.id.in_(group_ids))
    )
    return dict(rows.all())


def _select_highest_visibility() -> ColumnElement[str]:
    """Select the highest visibility of a group's projects, or `private` for an empty group."""
    holds_public, holds_internal = (
        exists().where(
            Project.group_id == Group.id,
            Project.visibility == visibility,
            Project.deleted_at.is_(None),
        )
        for visibility in (PUBLIC, INTERNAL)
    )
    return case((holds_public, PUBLIC), (holds_internal, INTERNAL), else_=PRIVATE)


def add_subgroups(group: GroupView, *, session: Session) -> GroupView:
    """Add the first subgroups to a group view.

    Only members can see subgroups.
    """
    if group.role is None:
        return group
    paths = session.scalars(
        select(Group.path)
        .where(Group.parent_id == group.id, Group.deleted_at.is_(None))
        .order_by(Group.path)
        .limit(_MAX_SUBGROUPS + 1)
    ).all()
    return replace(
        group,
        subgroups=tuple(paths[:_MAX_SUBGROUPS]),
        has_more_subgroups=len(paths) > _MAX_SUBGROUPS,
    )


@dataclass(frozen=True, kw_only=True)
class NamespaceTotals:
    """The total numbers of groups and projects in the instance."""

    groups: int
    projects: int


def count_namespaces(*, session: Session) -> NamespaceTotals:
    """Return the total numbers of groups and projects, excluding personal namespaces."""
    groups = (
        select(func.count(Group.id))
        .where(Group.deleted_at.is_(None), Group.owner_id.is_(None))
        .scalar_subquery()
    )
    projects = select(func.count(Project.id)).where(Project.deleted_at.is_(None)).scalar_subquery()
    row = session.execute(select(groups.label("groups"), projects.label("projects"))).one()
    return NamespaceTotals(groups=row.groups, projects=row.projects)
