"""What pages show of groups and projects: a part of them, however many there are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.database.paging import Listed, ListPart
from domain.errors import DomainError
from domain.projects.access import Permissions, count_open_alerts, get_group_for, namespace_of
from domain.projects.grants import (
    has_role_in_project,
    is_open_to,
    projects_with_direct_role,
    sees_project,
)
from domain.projects.listing import (
    GroupFilter,
    ProjectFilter,
    list_groups,
    list_projects,
)
from domain.projects.views import GroupView, ProjectView, Viewer
from models import Alert, Group, Project

#: Of one group in a list of groups, which leads to the page of the group.
_MOST_OF_A_GROUP = 10
_MOST_SUBGROUPS = 100


@dataclass(frozen=True, kw_only=True)
class MyProjects:
    """The projects of which a user is a member, those with open alerts first."""

    projects: tuple[ProjectView, ...]
    has_more: bool = False


def my_projects(viewer: Viewer, *, most: int, session: Session) -> MyProjects:
    """Return at most so many projects in which the viewer has a role.

    Administrators have only those of which they are members themselves.
    """
    if viewer.user_id is None:
        return MyProjects(projects=())
    has_open = exists().where(
        Alert.project_id == Project.id, Alert.status.in_(("triggered", "acknowledged"))
    )
    rows = session.scalars(
        select(Project)
        .where(Project.deleted_at.is_(None), has_role_in_project(viewer))
        .order_by(has_open.desc(), Project.path_key)
        .limit(most + 1)
    ).all()
    views = _views(rows[:most], viewer, session=session)
    ordered = sorted(views, key=lambda project: (-project.open_alerts, project.path))
    return MyProjects(projects=tuple(ordered), has_more=len(rows) > most)


def sees_any_project(viewer: Viewer, *, session: Session) -> bool:
    """Return whether there is a project that the viewer sees."""
    return session.scalar(select(Project.id).where(sees_project(viewer)).limit(1)) is not None


def search_projects(
    wanted: ProjectFilter, part: ListPart, viewer: Viewer, *, session: Session
) -> Listed[ProjectView]:
    """Return a part of the projects that a viewer sees, with the numbers of their open alerts."""
    found = list_projects(wanted, part, viewer, session=session)
    views = [each.project for each in found.items]
    items = _with_open_alerts(views, session=session)
    return Listed(items=items, total=found.total, next_cursor=found.next_cursor)


def page_of_groups(
    wanted: GroupFilter, part: ListPart, viewer: Viewer, *, session: Session
) -> Listed[GroupView]:
    """Return a part of the groups that a viewer sees, each with its first projects."""
    found = list_groups(wanted, part, viewer, session=session)
    groups = [_with_first_projects(each.group, viewer, session=session) for each in found.items]
    shown = [project for group in groups for project in group.projects]
    counted = {each.id: each for each in _with_open_alerts(shown, session=session)}
    items = (
        replace(group, projects=tuple(counted[each.id] for each in group.projects))
        for group in groups
    )
    return Listed(items=tuple(items), total=found.total, next_cursor=found.next_cursor)


def with_subgroups(group: GroupView, *, session: Session) -> GroupView:
    """Return a group with its first subgroups, which only members are told."""
    if group.role is None:
        return group
    paths = session.scalars(
        select(Group.path)
        .where(Group.parent_id == group.id, Group.deleted_at.is_(None))
        .order_by(Group.path)
        .limit(_MOST_SUBGROUPS + 1)
    ).all()
    return replace(
        group,
        subgroups=tuple(paths[:_MOST_SUBGROUPS]),
        has_more_subgroups=len(paths) > _MOST_SUBGROUPS,
    )


def maintains_a_group(viewer: Viewer, *, session: Session) -> bool:
    """Return whether there is a group in which the viewer may create projects."""
    return bool(groups_to_create_in(viewer, chosen=None, most=1, session=session))


def groups_to_create_in(
    viewer: Viewer, *, chosen: str | None, most: int, session: Session
) -> tuple[str, ...]:
    """Return the paths of groups in which the viewer may create projects: so many, by path.

    The chosen one is among them, if it is one of those.
    """
    least = None if viewer.is_admin else Role.MAINTAINER
    part = ListPart(size=most, order_by="path")
    found = list_groups(GroupFilter(least=least), part, viewer, session=session)
    paths = [each.group.path for each in found.items]
    if chosen and chosen not in paths and _may_create_in(chosen, viewer, session=session):
        paths.append(chosen)
    return tuple(paths)


def _may_create_in(path: str, viewer: Viewer, *, session: Session) -> bool:
    try:
        return get_group_for(path, viewer, at_least=Role.MAINTAINER, session=session).path == path
    except DomainError:
        return False


def _with_first_projects(group: GroupView, viewer: Viewer, *, session: Session) -> GroupView:
    first = select(Project).where(Project.group_id == group.id, Project.deleted_at.is_(None))
    if group.role is None:
        direct = Project.id.in_(projects_with_direct_role(viewer))
        first = first.where(or_(is_open_to(viewer), direct))
    ordered = first.order_by(Project.path_key, Project.id).limit(_MOST_OF_A_GROUP + 1)
    rows = session.scalars(ordered).all()
    shown = rows[:_MOST_OF_A_GROUP]
    permissions = Permissions(viewer, map(namespace_of, shown), session=session)
    return replace(
        group,
        projects=tuple(map(permissions.project, shown)),
        has_more_projects=len(rows) > _MOST_OF_A_GROUP,
    )


def _views(rows: Sequence[Project], viewer: Viewer, *, session: Session) -> tuple[ProjectView, ...]:
    permissions = Permissions(viewer, map(namespace_of, rows), session=session)
    return _with_open_alerts(map(permissions.project, rows), session=session)


def _with_open_alerts(views: Iterable[ProjectView], *, session: Session) -> tuple[ProjectView, ...]:
    """Add the numbers of open alerts, for those who may see them."""
    shown = tuple(views)
    counts = count_open_alerts([each.id for each in shown if each.shows_alerts], session=session)
    return tuple(replace(each, open_alerts=counts.get(each.id, 0)) for each in shown)


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The number of groups and projects of the instance."""

    groups: int
    projects: int


def count_namespaces(*, session: Session) -> Totals:
    """Count groups and projects."""
    groups = select(func.count(Group.id)).where(Group.deleted_at.is_(None)).scalar_subquery()
    projects = select(func.count(Project.id)).where(Project.deleted_at.is_(None)).scalar_subquery()
    row = session.execute(select(groups.label("groups"), projects.label("projects"))).one()
    return Totals(groups=row.groups, projects=row.projects)
