"""Groups and projects as all faces see them, and what may be asked of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.access.actor import Work
from domain.access.features import Feature
from domain.access.roles import Role
from domain.core.types.base import (
    AbsentFlag,
    AbsentWord,
    Argument,
    Body,
    Found,
    GitLabQuery,
    GivenTimeOrDay,
    Id,
    PagedQuery,
    Resource,
    Search,
    Text,
    Time,
    WithoutEffect,
    columns_of,
    split,
)
from domain.projects import listing
from domain.projects.creation import LONGEST_DESCRIPTION
from domain.projects.listing import GroupDetails, GroupFilter, ProjectDetails, ProjectFilter
from domain.projects.views import GroupView, ProjectView, SharedGroup, viewer_of

#: Of a group or a project.
Description = Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)]
Name = Annotated[Text, Field(max_length=255)]
Visibility = Literal["private", "internal", "public"]
_LEVELS_BETWEEN = {5: Role.GUEST, 25: Role.DEVELOPER}
#: Who may use a part of a project, besides what role and visibility ask for.
Level = Literal["disabled", "private", "enabled"]


def least_role(*, owned: bool, given: Role | None, is_member: bool) -> Role | None:
    """Return the lowest role that the caller has to have in what a list has."""
    if owned:
        return Role.OWNER
    return given or (Role.GUEST if is_member else None)


def _nearest_role(value: Any) -> Any:
    # GitLab has levels between ours, such as 5 for minimal access.
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    return _LEVELS_BETWEEN.get(number, number) if isinstance(number, int) else value


#: The lowest level of a role; one that only GitLab has stands for the next role.
LeastLevel = Annotated[
    Role,
    BeforeValidator(_nearest_role),
    WithJsonSchema({"type": "integer", "enum": sorted([*map(int, Role), *_LEVELS_BETWEEN])}),
]


#: A year.
LONGEST_GRACE_HOURS = 8_760


class GroupQuery(PagedQuery, GitLabQuery):
    """Which of the groups that the caller sees a list has."""

    #: Of names and paths.
    search: Search = ""
    owned: bool = False
    min_access_level: LeastLevel | None = None
    top_level_only: bool = False
    #: `false` leaves groups in which the caller is a member.
    all_available: bool = True
    skip_groups: Annotated[tuple[Id, ...], BeforeValidator(split)] = ()
    #: That of the most visible project of a group.
    visibility: Visibility | None = None
    #: `similarity` is the order by name.
    order_by: Literal["name", "path", "id", "similarity"] = "name"
    sort: Literal["asc", "desc"] = "asc"
    #: Groups cannot be archived: `false` leaves none.
    active: bool | None = None
    archived: AbsentFlag = False
    marked_for_deletion_on: AbsentWord = ""
    repository_storage: WithoutEffect = ""
    statistics: WithoutEffect = ""
    with_custom_attributes: WithoutEffect = ""

    @property
    def finds_nothing(self) -> bool:
        """Whether it asks for what no group is."""
        return self.active is False or super().finds_nothing

    def wanted(self, *, parent_id: int | None = None, below_id: int | None = None) -> GroupFilter:
        """Return the filter, limited to subgroups, or to all groups below one."""
        return GroupFilter(
            parent_id=parent_id,
            below_id=below_id,
            is_top_level=self.top_level_only,
            least=least_role(
                owned=self.owned,
                given=self.min_access_level,
                is_member=not self.all_available,
            ),
            search=self.search,
            without=self.skip_groups,
            visibility=self.visibility,
        )


class NamespaceQuery(PagedQuery, GitLabQuery):
    """Which of the groups of the caller, and personal namespaces, a list has."""

    #: Of names and paths.
    search: Search = ""
    #: Paths count in full anyway.
    full_path_search: WithoutEffect = ""
    owned_only: bool = False
    top_level_only: bool = False
    order_by: Literal["name", "path", "id"] = "name"
    sort: Literal["asc", "desc"] = "asc"

    def wanted(self, *, is_admin: bool) -> GroupFilter:
        """Return the filter: groups in which the caller is a member, or all for administrators."""
        least = least_role(owned=self.owned_only, given=None, is_member=not is_admin)
        return GroupFilter(
            is_top_level=self.top_level_only, least=least, search=self.search, with_personal=True
        )


class NewGroup(Body):
    """A new group; with `parent_id` a subgroup."""

    name: Name = ""
    path: Name
    parent_id: Id | None = None
    description: Description = ""


class GroupChange(Body):
    """New values of a group."""

    name: Name | None = None
    #: The last part of the full path; URLs with the former one still lead here.
    path: Name | None = None
    description: Description | None = None
    #: Whether its members, and those of what is above and below it, have to have a second factor.
    require_two_factor_authentication: bool | None = None
    #: In hours, from that requirement or from the beginning of a membership.
    two_factor_grace_period: Annotated[int, Field(ge=0, le=LONGEST_GRACE_HOURS)] | None = None


class GroupTransfer(Body):
    """Destination of a group transfer."""

    #: The id of a group; without one, the group moves to the top level.
    group_id: Id | None = None


class TransferQuery(PagedQuery, GitLabQuery):
    """Which of the groups that take a transfer a list has."""

    #: Of names and paths.
    search: Search = ""
    order_by: Literal["name", "path", "id"] = "name"
    sort: Literal["asc", "desc"] = "asc"

    def wanted(self, *, without: tuple[int, ...] = ()) -> GroupFilter:
        """Return the filter: the caller can create projects and groups there."""
        return GroupFilter(least=Role.MAINTAINER, search=self.search, without=without)


class Group(Resource):
    """A group."""

    id: int
    name: str
    #: The last part of `full_path`.
    path: str
    full_path: str
    #: The names of the groups above it, and its own.
    full_name: str
    description: str
    #: That of its most visible project: who sees a project sees its group.
    visibility: Visibility
    parent_id: int | None
    web_url: str
    created_at: Time
    require_two_factor_authentication: bool
    #: In hours.
    two_factor_grace_period: int


class Accepted(Resource):
    """The response to a request that is processed in the background."""

    message: str = "202 Accepted"


class ProjectQuery(PagedQuery, GitLabQuery):
    """Which of the projects that the caller sees a list has."""

    #: Of names, and the last part of paths.
    search: Search = ""
    #: `true` leaves projects in which the caller is a member.
    membership: bool = False
    owned: bool = False
    min_access_level: LeastLevel | None = None
    visibility: Visibility | None = None
    archived: bool | None = None
    #: `true` leaves projects that are not archived, `false` those that are.
    active: bool | None = None
    #: Whether the names of the groups above a project are searched too.
    search_namespaces: bool = False
    #: Only the fields that tell projects apart.
    simple: bool = False
    id_after: Id | None = None
    id_before: Id | None = None
    last_activity_after: GivenTimeOrDay | None = None
    last_activity_before: GivenTimeOrDay | None = None
    #: As `last_activity_after`: any change is an activity.
    updated_after: GivenTimeOrDay | None = None
    updated_before: GivenTimeOrDay | None = None
    #: Orders by numbers that projects do not have here are the order by id.
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

    def wanted(
        self,
        *,
        group_id: int | None = None,
        with_subgroups: bool = False,
        owner_id: int | None = None,
    ) -> ProjectFilter:
        """Return the filter, limited to a group or to an owner."""
        return ProjectFilter(
            group_id=group_id,
            with_subgroups=with_subgroups,
            owner_id=owner_id,
            least=least_role(
                owned=self.owned, given=self.min_access_level, is_member=self.membership
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
    """Which projects of a group a list has."""

    include_subgroups: bool = False
    include_ancestor_groups: WithoutEffect = ""
    with_shared: WithoutEffect = ""


class _Settings(Body):
    """Who may use the parts of a project."""

    releases_access_level: Level | None = None
    #: Environments and deployments.
    environments_access_level: Level | None = None
    feature_flags_access_level: Level | None = None
    infrastructure_access_level: Level | None = None
    #: Alerts and integrations; `disabled` refuses alerts.
    monitor_access_level: Level | None = None
    ci_job_token_scope_enabled: bool | None = Field(
        default=None,
        # Only described as deprecated: pydantic would warn whenever it is read.
        json_schema_extra={"deprecated": True},
        description="Refused from release 17.0 on.",
    )

    @property
    def parts(self) -> dict[str, Any]:
        """Who may use which part, by the columns that store it; None leaves one as it is."""
        levels = {name: getattr(self, name) for name in map("{}_access_level".format, Feature)}
        return levels | {"limits_job_token_to_others": self.ci_job_token_scope_enabled}


class NewProject(_Settings):
    """A new project; it needs a name or a path."""

    name: Name = ""
    path: Name = ""
    #: The id of the group; without one, the project is in the caller's personal namespace.
    namespace_id: Id | None = None
    visibility: Visibility = "private"
    description: Description = ""


class ProjectChange(_Settings):
    """New values of a project."""

    name: Name | None = None
    #: The last part of the full path; URLs with the former one still lead here.
    path: Name | None = None
    visibility: Visibility | None = None
    description: Description | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, without the path; None leaves one as it is."""
        words = {"name": self.name, "description": self.description}
        return words | {"visibility": self.visibility} | self.parts


class ProjectTransfer(Body):
    """Destination of a project transfer."""

    #: The id or the full path of a group, or the caller's user name.
    namespace: Annotated[Id | Name, Argument("GROUP")]


class ProjectNamespace(Resource):
    """The group, or the personal namespace, that holds a project."""

    id: int
    name: str
    path: str
    kind: Literal["group", "user"]
    full_path: str
    parent_id: int | None
    web_url: str
    #: Groups have no picture.
    avatar_url: None = None


class ProjectLinks(Resource):
    """The URLs of a project and of what belongs to it."""

    self: str
    members: str
    environments: str
    alerts: str


class ProjectRole(Resource):
    """A role of the caller."""

    access_level: int


class ProjectPermissions(Resource):
    """The caller's own role in a project, and that in its group."""

    project_access: ProjectRole | None
    group_access: ProjectRole | None


def _is_absent(value: object) -> bool:
    return value is None


def _not_in_simple() -> Any:
    """Return a field that is left out where only the simple ones are asked for."""
    return Field(default=None, exclude_if=_is_absent)


def _until(release: str, meaning: str) -> Any:
    """Return a field that a release removes; the gate leaves it out from then on."""
    return Field(
        default=None,
        exclude_if=_is_absent,
        deprecated=True,
        description=f"{meaning}; removed in release {release}.",
    )


class Project(Resource):
    """A project; with `simple=true` a list has only the fields that tell projects apart."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: int
    name: str
    #: After the names of the groups above it.
    name_with_namespace: str
    #: The last part of `path_with_namespace`.
    path: str
    path_with_namespace: str
    description: str
    created_at: Time
    #: None for who may not read its files.
    default_branch: str | None
    http_url_to_repo: str
    #: The same URL: Git is reached by HTTP alone.
    ssh_url_to_repo: str
    web_url: str
    #: Projects have no picture.
    avatar_url: None = None
    #: The newest push, release, deployment, image or alert that the caller may know of.
    last_activity_at: Time
    namespace: ProjectNamespace
    visibility: Visibility | None = _not_in_simple()
    archived: bool | None = _not_in_simple()
    empty_repo: bool | None = _not_in_simple()
    releases_access_level: Level | None = _not_in_simple()
    environments_access_level: Level | None = _not_in_simple()
    feature_flags_access_level: Level | None = _not_in_simple()
    infrastructure_access_level: Level | None = _not_in_simple()
    monitor_access_level: Level | None = _not_in_simple()
    #: None for those who are no members.
    shared_with_groups: tuple[SharedGroup, ...] | None = _not_in_simple()
    operations_access_level: Level | None = _until("16.0", "That of monitor_access_level")
    ci_job_token_scope_enabled: bool | None = _until("17.0", "See the job token scope")
    permissions: ProjectPermissions | None = _not_in_simple()
    links: ProjectLinks | None = Field(
        default=None, exclude_if=_is_absent, serialization_alias="_links"
    )


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


def find_namespaces(work: Work, query: NamespaceQuery) -> Found[ProjectNamespace]:
    """Return a part of the groups of the actor, as namespaces of projects."""
    wanted = query.wanted(is_admin=work.actor.is_admin)
    found = listing.list_groups(wanted, query.part, viewer_of(work), session=work.session)
    return Found.of(found, lambda each: show_namespace(work, each.group))


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
        **columns_of(group, Group) | {"path": group.path.rpartition("/")[2]},
        full_path=group.path,
        full_name=" / ".join(found.names),
        visibility=cast("Visibility", found.visibility),
        web_url=f"{work.settings.base_url}/{group.path}",
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
            "shared_with_groups": found.shares,
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
        namespace=show_namespace(work, found.holder),
    )


def show_namespace(work: Work, group: GroupView) -> ProjectNamespace:
    """Return a group as a namespace of projects."""
    return ProjectNamespace(
        id=group.id,
        name=group.name,
        path=group.path.rpartition("/")[2],
        kind="group" if group.owner_id is None else "user",
        full_path=group.path,
        parent_id=group.parent_id,
        web_url=f"{work.settings.base_url}/{group.path}",
    )


def _role(role: Role | None) -> ProjectRole | None:
    return None if role is None else ProjectRole(access_level=int(role))
