"""API types for groups and projects, and their query parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.access.actor import UnitOfWork
from domain.access.features import Feature
from domain.access.roles import Role
from domain.core.types.base import (
    AbsentFlag,
    AbsentWord,
    Argument,
    Body,
    GitLabQuery,
    Id,
    RequestTimeOrDay,
    Resource,
    Search,
    Text,
    Time,
    WithoutEffect,
    get_column_values,
    split_words,
)
from domain.core.types.pagination import ListPage, PagedQuery
from domain.projects import namespace_lists
from domain.projects.namespace_changes import MAX_DESCRIPTION_LENGTH
from domain.projects.namespace_lists import GroupDetails, GroupFilter, ProjectDetails, ProjectFilter
from domain.projects.views import GroupView, ProjectView, SharedGroup, get_viewer

#: Description of a group or a project.
Description = Annotated[Text, Field(max_length=MAX_DESCRIPTION_LENGTH)]
Name = Annotated[Text, Field(max_length=255)]
Visibility = Literal["private", "internal", "public"]
_GITLAB_ONLY_LEVELS = {5: Role.GUEST, 25: Role.DEVELOPER}
#: Access level of a project feature, which applies in addition to the role and visibility.
Level = Literal["disabled", "private", "enabled"]


def choose_minimum_role(*, owned: bool, role: Role | None, is_member: bool) -> Role | None:
    """Return the minimum role that the caller must have in the listed groups or projects."""
    if owned:
        return Role.OWNER
    return role or (Role.GUEST if is_member else None)


def _map_access_level(value: Any) -> Any:
    # GitLab has additional levels, such as 5 for minimal access.
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    return _GITLAB_ONLY_LEVELS.get(number, number) if isinstance(number, int) else value


#: Minimum role, given by its access level. An access level that exists only in GitLab stands for
#: the next higher role.
MinimumRole = Annotated[
    Role,
    BeforeValidator(_map_access_level),
    WithJsonSchema({"type": "integer", "enum": sorted([*map(int, Role), *_GITLAB_ONLY_LEVELS])}),
]


#: Maximum grace period in hours: one year.
MAX_GRACE_HOURS = 8_760


class GroupQuery(PagedQuery, GitLabQuery):
    """Query parameters that filter and sort a list of groups."""

    #: Text to search for in names and paths.
    search: Search = ""
    owned: bool = False
    min_access_level: MinimumRole | None = None
    top_level_only: bool = False
    #: False to list only groups of which the caller is a member. True to list all groups that the
    #: caller can see.
    all_available: bool = True
    skip_groups: Annotated[tuple[Id, ...], BeforeValidator(split_words)] = ()
    #: Visibility of the most visible project in a group.
    visibility: Visibility | None = None
    #: Sort order. `similarity` sorts by name.
    order_by: Literal["name", "path", "id", "similarity"] = "name"
    sort: Literal["asc", "desc"] = "asc"
    #: Filter for active groups. Groups cannot be archived, so `false` returns an empty list.
    active: bool | None = None
    archived: AbsentFlag = False
    marked_for_deletion_on: AbsentWord = ""
    repository_storage: WithoutEffect = ""
    statistics: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""

    @property
    def matches_nothing(self) -> bool:
        """True if the query filters by a state that no group has."""
        return self.active is False or super().matches_nothing

    def build_filter(
        self, *, parent_id: int | None = None, below_id: int | None = None
    ) -> GroupFilter:
        """Return the group filter, limited to the direct subgroups or all subgroups of a group."""
        return GroupFilter(
            parent_id=parent_id,
            below_id=below_id,
            is_top_level=self.top_level_only,
            least=choose_minimum_role(
                owned=self.owned,
                role=self.min_access_level,
                is_member=not self.all_available,
            ),
            search=self.search,
            without=self.skip_groups,
            visibility=self.visibility,
        )


class NamespaceQuery(PagedQuery, GitLabQuery):
    """Filters for a list of the caller's groups and personal namespaces."""

    #: Text to search for in names and paths.
    search: Search = ""
    #: Ignored, since full paths are always searched.
    full_path_search: WithoutEffect = ""
    owned_only: bool = False
    top_level_only: bool = False
    order_by: Literal["name", "path", "id"] = "name"
    sort: Literal["asc", "desc"] = "asc"

    def build_filter(self, *, is_admin: bool) -> GroupFilter:
        """Return the group filter: the caller's groups or, for administrators, all groups."""
        least = choose_minimum_role(owned=self.owned_only, role=None, is_member=not is_admin)
        return GroupFilter(
            is_top_level=self.top_level_only, least=least, search=self.search, with_personal=True
        )


class NewGroup(Body):
    """A new group, or a subgroup if `parent_id` is given."""

    name: Name = ""
    path: Name
    parent_id: Id | None = None
    description: Description = ""


class GroupChange(Body):
    """The new name, path, description or two-factor requirement of a group."""

    name: Name | None = None
    #: Last segment of the full path. URLs with the former path still work.
    path: Name | None = None
    description: Description | None = None
    #: True if members need a second factor. This also applies to members of ancestor groups,
    #: subgroups and projects.
    require_two_factor_authentication: bool | None = None
    #: Grace period in hours. It starts with the requirement or, for a later member, with the
    #: membership.
    two_factor_grace_period: Annotated[int, Field(ge=0, le=MAX_GRACE_HOURS)] | None = None


class GroupTransfer(Body):
    """The new parent group of a transferred group."""

    #: ID of the new parent group. Without an ID, the group is transferred to the top level.
    group_id: Id | None = None


class TransferQuery(PagedQuery, GitLabQuery):
    """Filters for a list of possible destinations for a transfer."""

    #: Text to search for in names and paths.
    search: Search = ""
    order_by: Literal["name", "path", "id"] = "name"
    sort: Literal["asc", "desc"] = "asc"

    def build_filter(self, *, without: tuple[int, ...] = ()) -> GroupFilter:
        """Return the filter for groups in which the caller can create projects and groups."""
        return GroupFilter(least=Role.MAINTAINER, search=self.search, without=without)


class Group(Resource):
    """A group, which can contain projects and subgroups."""

    id: int
    name: str
    #: Last segment of `full_path`.
    path: str
    full_path: str
    #: Names of the ancestor groups and of the group.
    full_name: str
    description: str
    #: Visibility of the most visible project in the group.
    visibility: Visibility
    parent_id: int | None
    web_url: str
    created_at: Time
    require_two_factor_authentication: bool
    #: Grace period in hours.
    two_factor_grace_period: int


class Accepted(Resource):
    """The response to a request that is processed in the background."""

    message: str = "202 Accepted"


class ProjectQuery(PagedQuery, GitLabQuery):
    """Query parameters that filter and sort a list of projects."""

    #: Text to search for in names and in the last segments of paths.
    search: Search = ""
    #: True to list only projects of which the caller is a member.
    membership: bool = False
    owned: bool = False
    min_access_level: MinimumRole | None = None
    visibility: Visibility | None = None
    archived: bool | None = None
    #: True to omit archived projects, false to list only archived projects.
    active: bool | None = None
    #: True to also search the paths of the groups that contain the projects.
    search_namespaces: bool = False
    #: True to return only the basic fields of each project.
    simple: bool = False
    id_after: Id | None = None
    id_before: Id | None = None
    last_activity_after: RequestTimeOrDay | None = None
    last_activity_before: RequestTimeOrDay | None = None
    #: Same as `last_activity_after`, since any change is an activity.
    updated_after: RequestTimeOrDay | None = None
    updated_before: RequestTimeOrDay | None = None
    #: Sort order. Values that Gatebell's projects do not have, such as `star_count`, sort by ID.
    order_by: Literal[
        "id",
        "name",
        "path",
        "created_at",
        "last_activity_at",
        "updated_at",
        "similarity",
        "star_count",
        "repository_size",
        "storage_size",
        "packages_size",
        "wiki_size",
    ] = "created_at"
    imported: AbsentFlag = False
    starred: AbsentFlag = False
    marked_for_deletion_on: AbsentWord = ""
    topic: AbsentWord = ""
    topic_id: AbsentWord = ""
    with_programming_language: AbsentWord = ""
    repository_checksum_failed: AbsentFlag = False
    wiki_checksum_failed: AbsentFlag = False
    include_hidden: WithoutEffect = ""
    include_pending_delete: WithoutEffect = ""
    license: WithoutEffect = ""
    repository_storage: WithoutEffect = ""
    statistics: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""
    with_issues_enabled: WithoutEffect = ""
    with_merge_requests_enabled: WithoutEffect = ""
    with_security_reports: WithoutEffect = ""

    def build_filter(
        self,
        *,
        group_id: int | None = None,
        with_subgroups: bool = False,
        owner_id: int | None = None,
    ) -> ProjectFilter:
        """Return the project filter, limited to a group or to an owner."""
        return ProjectFilter(
            group_id=group_id,
            with_subgroups=with_subgroups,
            owner_id=owner_id,
            least=choose_minimum_role(
                owned=self.owned, role=self.min_access_level, is_member=self.membership
            ),
            search=self.search,
            searches_groups=self.search_namespaces,
            visibility=self.visibility,
            is_archived=self.archived,
            is_active=self.active,
            id_after=self.id_after,
            id_before=self.id_before,
            active_after=self.last_activity_after or self.updated_after,
            active_before=self.last_activity_before or self.updated_before,
        )


class GroupProjectQuery(ProjectQuery):
    """Query parameters that filter and sort a list of a group's projects."""

    include_subgroups: bool = False
    include_ancestor_groups: WithoutEffect = ""
    with_shared: WithoutEffect = ""


class _ProjectSettings(Body):
    """Access levels of a project's features."""

    releases_access_level: Level | None = None
    #: Access to environments and deployments.
    environments_access_level: Level | None = None
    feature_flags_access_level: Level | None = None
    infrastructure_access_level: Level | None = None
    #: Access to alerts and integrations. `disabled` rejects alerts.
    monitor_access_level: Level | None = None
    ci_job_token_scope_enabled: bool | None = Field(
        default=None,
        # `deprecated` is set only in the schema. Otherwise, Pydantic would log a warning each time
        # the field is read.
        json_schema_extra={"deprecated": True},
        description="Same as `outbound_enabled` of the job token scope. Removed in release 17.0.",
    )

    @property
    def access_settings(self) -> dict[str, Any]:
        """The access settings by column. None leaves a column unchanged."""
        levels = {name: getattr(self, name) for name in map("{}_access_level".format, Feature)}
        return levels | {"limits_job_token_to_others": self.ci_job_token_scope_enabled}


class NewProject(_ProjectSettings):
    """Request body that creates a project. A name or a path is required."""

    name: Name = ""
    path: Name = ""
    #: ID of the group. Without an ID, the project is created in the caller's personal namespace.
    namespace_id: Id | None = None
    visibility: Visibility = "private"
    description: Description = ""


class ProjectChange(_ProjectSettings):
    """The new name, path, description, visibility or access levels of a project."""

    name: Name | None = None
    #: Last segment of the full path. URLs with the former path still work.
    path: Name | None = None
    visibility: Visibility | None = None
    description: Description | None = None

    @property
    def changed_settings(self) -> dict[str, Any]:
        """The settings by column, without the path. None leaves a column unchanged."""
        words = {"name": self.name, "description": self.description}
        return words | {"visibility": self.visibility} | self.access_settings


class ProjectTransfer(Body):
    """The new group of a transferred project, or the caller's personal namespace."""

    #: Id or full path of a group, or the caller's username.
    namespace: Annotated[Id | Name, Argument("GROUP")]


class ProjectNamespace(Resource):
    """The group or personal namespace that contains a project."""

    id: int
    name: str
    path: str
    kind: Literal["group", "user"]
    full_path: str
    parent_id: int | None
    web_url: str
    #: Always null, since groups have no avatar.
    avatar_url: None = None


class ProjectLinks(Resource):
    """The URLs of a project and its resources."""

    self: str
    members: str
    environments: str
    alerts: str


class ProjectRole(Resource):
    """A role of the caller, given by its access level."""

    access_level: int


class ProjectPermissions(Resource):
    """The caller's direct role in a project, and the role inherited from its group."""

    project_access: ProjectRole | None
    group_access: ProjectRole | None


def _is_absent(value: object) -> bool:
    return value is None


def _build_detail_field() -> Any:
    """Return a field that is omitted if only the basic fields are requested."""
    return Field(default=None, exclude_if=_is_absent)


def _build_removed_field(release: str, meaning: str) -> Any:
    """Return a deprecated field that responses no longer contain as of `release`."""
    return Field(
        default=None,
        exclude_if=_is_absent,
        deprecated=True,
        description=f"{meaning}. Removed in release {release}.",
    )


class Project(Resource):
    """A project in a group or personal namespace. Lists with `simple=true` contain fewer fields."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: int
    name: str
    #: Names of the groups that contain the project, and of the project.
    name_with_namespace: str
    #: Last segment of `path_with_namespace`.
    path: str
    path_with_namespace: str
    description: str
    created_at: Time
    #: Default branch. null if the caller may not read the files.
    default_branch: str | None
    http_url_to_repo: str
    #: Same as `http_url_to_repo`, since Git is available only over HTTP.
    ssh_url_to_repo: str
    web_url: str
    #: Always null, since projects have no avatar.
    avatar_url: None = None
    #: Time of the latest push, release, deployment, image or alert that the caller may see.
    last_activity_at: Time
    namespace: ProjectNamespace
    visibility: Visibility | None = _build_detail_field()
    archived: bool | None = _build_detail_field()
    empty_repo: bool | None = _build_detail_field()
    releases_access_level: Level | None = _build_detail_field()
    environments_access_level: Level | None = _build_detail_field()
    feature_flags_access_level: Level | None = _build_detail_field()
    infrastructure_access_level: Level | None = _build_detail_field()
    monitor_access_level: Level | None = _build_detail_field()
    #: Groups with which the project is shared. null if the caller is not a member.
    shared_with_groups: tuple[SharedGroup, ...] | None = _build_detail_field()
    operations_access_level: Level | None = _build_removed_field(
        "16.0", "Same as `monitor_access_level`"
    )
    ci_job_token_scope_enabled: bool | None = _build_removed_field(
        "17.0", "Same as `outbound_enabled` of the job token scope"
    )
    permissions: ProjectPermissions | None = _build_detail_field()
    links: ProjectLinks | None = Field(
        default=None, exclude_if=_is_absent, serialization_alias="_links"
    )


@dataclass(frozen=True, kw_only=True)
class RepositoryState:
    """Repository details that are known without running Git."""

    #: Default branch. None if the caller may not read it.
    default_branch: str | None
    is_empty: bool


@dataclass(frozen=True)
class RepositoryLookup:
    """The function that actions use to look up the repository of a project."""

    find: Callable[[ProjectView], RepositoryState]


def find_groups(
    work: UnitOfWork, query: GroupQuery | TransferQuery, group_filter: GroupFilter
) -> ListPage[Group]:
    """Return a page of the matching groups that the actor can see."""
    found = namespace_lists.list_groups(
        group_filter, query.requested_range, get_viewer(work), session=work.session
    )
    return ListPage.from_page_result(found, lambda each: _build_group(work, each))


def build_group_resource(work: UnitOfWork, group: GroupView) -> Group:
    """Return a group as an API resource."""
    return _build_group(work, namespace_lists.get_group_details(group, session=work.session))


def find_namespaces(work: UnitOfWork, query: NamespaceQuery) -> ListPage[ProjectNamespace]:
    """Return a page of the groups and personal namespaces that the actor can list."""
    wanted, viewer = query.build_filter(is_admin=work.actor.is_admin), get_viewer(work)
    found = namespace_lists.list_groups(wanted, query.requested_range, viewer, session=work.session)
    return ListPage.from_page_result(found, lambda each: build_namespace_resource(work, each.group))


def find_projects(work: UnitOfWork, query: ProjectQuery, **limits: Any) -> ListPage[Project]:
    """Return a page of the matching projects that the actor can see.

    `limits` can contain `group_id`, `with_subgroups` and `owner_id`.
    """
    found = namespace_lists.list_projects(
        query.build_filter(**limits), query.requested_range, get_viewer(work), session=work.session
    )
    shown = _build_simple_project if query.simple else _build_project
    look = work.policy(RepositoryLookup).find
    return ListPage.from_page_result(found, lambda each: shown(work, each, look(each.project)))


def build_project_resource(work: UnitOfWork, project: ProjectView) -> Project:
    """Return a project as an API resource."""
    found = namespace_lists.get_project_details(project, get_viewer(work), session=work.session)
    return _build_project(work, found, work.policy(RepositoryLookup).find(project))


def _build_group(work: UnitOfWork, group_details: GroupDetails) -> Group:
    group = group_details.group
    return Group(
        **get_column_values(group, Group) | {"path": group.path.rpartition("/")[2]},
        full_path=group.path,
        full_name=" / ".join(group_details.names),
        visibility=cast("Visibility", group_details.visibility),
        web_url=f"{work.settings.base_url}/{group.path}",
    )


def _build_project(
    work: UnitOfWork, details: ProjectDetails, repository: RepositoryState
) -> Project:
    """Return a project with all fields, including fields that a later release removes."""
    project = details.project
    levels: dict[str, Any] = {
        f"{feature}_access_level": str(level) for feature, level in project.access_levels.items()
    }
    url = f"{work.settings.base_url}/api/v4/projects/{project.id}"
    return _build_simple_project(work, details, repository).model_copy(
        update={
            **levels,
            "visibility": project.visibility,
            "archived": project.is_archived,
            "empty_repo": repository.is_empty,
            "shared_with_groups": details.shares,
            "operations_access_level": levels["monitor_access_level"],
            "ci_job_token_scope_enabled": project.job_token_scope.outbound_enabled,
            "permissions": ProjectPermissions(
                project_access=_build_role(details.direct_role),
                group_access=_build_role(details.inherited_role),
            ),
            "links": ProjectLinks(
                self=url,
                members=f"{url}/members",
                environments=f"{url}/environments",
                alerts=f"{url}/alert_management_alerts",
            ),
        }
    )


def _build_simple_project(
    work: UnitOfWork, details: ProjectDetails, repository: RepositoryState
) -> Project:
    """Return a project with its basic fields."""
    project, url = details.project, f"{work.settings.base_url}/{details.project.path}"
    return Project(
        id=project.id,
        name=project.name,
        name_with_namespace=" / ".join((*details.group_names, project.name)),
        path=project.path.rpartition("/")[2],
        path_with_namespace=project.path,
        description=project.description,
        created_at=project.created_at,
        default_branch=repository.default_branch,
        http_url_to_repo=f"{url}.git",
        ssh_url_to_repo=f"{url}.git",
        last_activity_at=details.last_activity_at,
        web_url=url,
        namespace=build_namespace_resource(work, details.holder),
    )


def build_namespace_resource(work: UnitOfWork, group: GroupView) -> ProjectNamespace:
    """Return a group or personal namespace as an API resource of type `ProjectNamespace`."""
    return ProjectNamespace(
        id=group.id,
        name=group.name,
        path=group.path.rpartition("/")[2],
        kind="group" if group.owner_id is None else "user",
        full_path=group.path,
        parent_id=group.parent_id,
        web_url=f"{work.settings.base_url}/{group.path}",
    )


def _build_role(role: Role | None) -> ProjectRole | None:
    return None if role is None else ProjectRole(access_level=int(role))
