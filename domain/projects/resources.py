"""Groups and projects as actions return them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from domain.access.actor import Work
from domain.access.roles import Role
from domain.projects import listing
from domain.projects.listing import GroupDetails, GroupFilter, ProjectDetails
from domain.projects.types import (
    Group,
    GroupQuery,
    Project,
    ProjectLinks,
    ProjectNamespace,
    ProjectPermissions,
    ProjectQuery,
    ProjectRole,
    TransferQuery,
    Visibility,
)
from domain.projects.views import GroupView, ProjectView, viewer_of
from domain.types.base import Found


@dataclass(frozen=True, kw_only=True)
class Repository:
    """What is known of a project's repository without asking Git."""

    #: None if the caller may not read it.
    default_branch: str | None
    is_empty: bool


@dataclass(frozen=True)
class Repositories:
    """Where the repositories are: a policy."""

    find: Callable[[ProjectView], Repository]


def find_groups(work: Work, query: GroupQuery | TransferQuery, wanted: GroupFilter) -> Found[Group]:
    """Return a part of the groups that the actor sees and that match."""
    found = listing.list_groups(wanted, query.part, viewer_of(work), session=work.session)
    return Found.of(found, lambda each: _group(work, each))


def show_group(work: Work, group: GroupView) -> Group:
    """Return a group."""
    return _group(work, listing.details_of_group(group, session=work.session))


def find_projects(work: Work, query: ProjectQuery, **limits: Any) -> Found[Project]:
    """Return a part of the projects that the actor sees and that match.

    They can be limited to a `group_id`, `with_subgroups` or not, and to an `owner_id`.
    """
    found = listing.list_projects(
        query.wanted(**limits), query.part, viewer_of(work), session=work.session
    )
    shown = _simple_project if query.simple else _project
    look = work.policy(Repositories).find
    return Found.of(found, lambda each: shown(work, each, look(each.project)))


def show_project(work: Work, project: ProjectView) -> Project:
    """Return a project."""
    found = listing.details_of_project(project, viewer_of(work), session=work.session)
    return _project(work, found, work.policy(Repositories).find(project))


def _group(work: Work, found: GroupDetails) -> Group:
    group = found.group
    return Group(
        id=group.id,
        name=group.name,
        path=group.path.rpartition("/")[2],
        full_path=group.path,
        full_name=" / ".join(found.names),
        description=group.description,
        visibility=cast("Visibility", found.visibility),
        parent_id=group.parent_id,
        web_url=f"{work.settings.base_url}/{group.path}",
        created_at=group.created_at,
    )


def _project(work: Work, found: ProjectDetails, repository: Repository) -> Project:
    """Return a project with the fields of all releases."""
    project = found.project
    levels: dict[str, Any] = {
        f"{feature}_access_level": str(level) for feature, level in project.access_levels.items()
    }
    url = f"{work.settings.base_url}/api/v4/projects/{project.id}"
    return _simple_project(work, found, repository).model_copy(
        update={
            **levels,
            "visibility": project.visibility,
            "archived": project.is_archived,
            "empty_repo": repository.is_empty,
            "operations_access_level": levels["monitor_access_level"],
            "ci_job_token_scope_enabled": project.job_token_scope.outbound_enabled,
            "permissions": ProjectPermissions(
                project_access=_role(found.direct_role), group_access=_role(found.inherited_role)
            ),
            "links": ProjectLinks(
                self=url,
                members=f"{url}/members",
                environments=f"{url}/environments",
                alerts=f"{url}/alert_management_alerts",
            ),
        }
    )


def _simple_project(work: Work, found: ProjectDetails, repository: Repository) -> Project:
    """Return a project with the fields that tell projects apart."""
    project, url = found.project, f"{work.settings.base_url}/{found.project.path}"
    return Project(
        id=project.id,
        name=project.name,
        name_with_namespace=" / ".join((*found.group_names, project.name)),
        path=project.path.rpartition("/")[2],
        path_with_namespace=project.path,
        description=project.description,
        created_at=project.created_at,
        default_branch=repository.default_branch,
        http_url_to_repo=f"{url}.git",
        ssh_url_to_repo=f"{url}.git",
        last_activity_at=found.last_activity_at,
        web_url=url,
        namespace=ProjectNamespace(
            id=project.group_id,
            name=found.group_name,
            path=project.group_path.rpartition("/")[2],
            full_path=project.group_path,
            parent_id=found.parent_id,
            web_url=url.rpartition("/")[0],
        ),
    )


def _role(role: Role | None) -> ProjectRole | None:
    return None if role is None else ProjectRole(access_level=int(role))
