"""Projects and groups of the signed-in user, for home pages and form fields."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import (
    exists,
    or_,
    select,
)
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.core.database.pagination import PageRequest, PageResult
from domain.core.errors import DomainError
from domain.projects.access import (
    build_namespace,
    count_open_alerts,
    get_group,
    read_permissions,
)
from domain.projects.namespace_lists import GroupFilter, ProjectFilter, list_groups, list_projects
from domain.projects.views import GroupView, ProjectView, Viewer
from domain.projects.visibility_sql import (
    has_role_in_project,
    is_project_visible,
    is_visible_without_role,
    select_projects_with_direct_role,
)
from models import (
    Alert,
    Project,
)

#: Maximum number of projects that are shown for each group in a list.
_MAX_PROJECTS_PER_GROUP = 10


@dataclass(frozen=True, kw_only=True)
class ViewerProjects:
    """The projects of a user, starting with the projects that have open alerts."""

    projects: tuple[ProjectView, ...]
    has_more: bool = False


def list_my_projects(viewer: Viewer, *, maximum: int, session: Session) -> ViewerProjects:
    """Return up to `maximum` projects in which the viewer has a role.

    For administrators, only the projects of which they are members are returned.
    """
    if viewer.user_id is None:
        return ViewerProjects(projects=())
    has_open = exists().where(
        Alert.project_id == Project.id, Alert.status.in_(("triggered", "acknowledged"))
    )
    rows = session.scalars(
        select(Project)
        .where(Project.deleted_at.is_(None), has_role_in_project(viewer))
        .order_by(has_open.desc(), Project.path_key)
        .limit(maximum + 1)
    ).all()
    views = _build_project_views(rows[:maximum], viewer, session=session)
    ordered = sorted(views, key=lambda project: (-project.open_alerts, project.path))
    return ViewerProjects(projects=tuple(ordered), has_more=len(rows) > maximum)


def can_see_any_project(viewer: Viewer, *, session: Session) -> bool:
    """Return whether the viewer can see at least one project."""
    return session.scalar(select(Project.id).where(is_project_visible(viewer)).limit(1)) is not None


def search_projects(
    project_filter: ProjectFilter, page_request: PageRequest, viewer: Viewer, *, session: Session
) -> PageResult[ProjectView]:
    """Return a page of the matching projects that a viewer can see, with open alert counts."""
    found = list_projects(project_filter, page_request, viewer, session=session)
    views = [each.project for each in found.items]
    items = _add_open_alert_counts(views, session=session)
    return PageResult(items=items, total=found.total, next_cursor=found.next_cursor)


def list_groups_with_projects(
    group_filter: GroupFilter, page_request: PageRequest, viewer: Viewer, *, session: Session
) -> PageResult[GroupView]:
    """Return a page of the matching groups that a viewer can see, each with its first projects."""
    found = list_groups(group_filter, page_request, viewer, session=session)
    groups = [_add_first_projects(each.group, viewer, session=session) for each in found.items]
    shown = [project for group in groups for project in group.projects]
    counted = {each.id: each for each in _add_open_alert_counts(shown, session=session)}
    items = (
        replace(group, projects=tuple(counted[each.id] for each in group.projects))
        for group in groups
    )
    return PageResult(items=tuple(items), total=found.total, next_cursor=found.next_cursor)


def list_groups_for_new_projects(
    viewer: Viewer, *, chosen: str | None, maximum: int, session: Session
) -> tuple[str, ...]:
    """Return the sorted paths of up to `maximum` groups in which the viewer may create projects.

    The chosen group is added if the viewer may create projects in it.
    """
    least = None if viewer.is_admin else Role.MAINTAINER
    part = PageRequest(size=maximum, order_by="path")
    found = list_groups(GroupFilter(least=least), part, viewer, session=session)
    paths = [each.group.path for each in found.items]
    if (
        chosen
        and chosen not in paths
        and _can_create_project_in_group(chosen, viewer, session=session)
    ):
        paths.append(chosen)
    return tuple(paths)


def _can_create_project_in_group(path: str, viewer: Viewer, *, session: Session) -> bool:
    try:
        found = get_group(path, viewer, session=session)
    except DomainError:
        return False
    return found.can_maintain and found.path == path


def _add_first_projects(group: GroupView, viewer: Viewer, *, session: Session) -> GroupView:
    first = select(Project).where(Project.group_id == group.id, Project.deleted_at.is_(None))
    if group.role is None:
        direct = Project.id.in_(select_projects_with_direct_role(viewer))
        first = first.where(or_(is_visible_without_role(viewer), direct))
    ordered = first.order_by(Project.path_key, Project.id).limit(_MAX_PROJECTS_PER_GROUP + 1)
    rows = session.scalars(ordered).all()
    shown = rows[:_MAX_PROJECTS_PER_GROUP]
    permissions = read_permissions(viewer, map(build_namespace, shown), session=session)
    return replace(
        group,
        projects=tuple(map(permissions.build_project_view, shown)),
        has_more_projects=len(rows) > _MAX_PROJECTS_PER_GROUP,
    )


def _build_project_views(
    rows: Sequence[Project], viewer: Viewer, *, session: Session
) -> tuple[ProjectView, ...]:
    permissions = read_permissions(viewer, map(build_namespace, rows), session=session)
    return _add_open_alert_counts(map(permissions.build_project_view, rows), session=session)


def _add_open_alert_counts(
    views: Iterable[ProjectView], *, session: Session
) -> tuple[ProjectView, ...]:
    """Add the number of open alerts to each project whose alerts the viewer may see."""
    shown = tuple(views)
    counts = count_open_alerts([each.id for each in shown if each.can_see_alerts], session=session)
    return tuple(replace(each, open_alerts=counts.get(each.id, 0)) for each in shown)
