"""Projects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import ConfigDict, Field

from domain.access.features import AccessLevel, Feature
from domain.access.roles import Role
from domain.projects.editing import ProjectEdit
from domain.projects.listing import ProjectDetails, ProjectFilter
from domain.projects.views import ProjectView
from domain.types.base import (
    AbsentFlag,
    AbsentWord,
    Body,
    GitLabQuery,
    GivenTime,
    Id,
    PagedQuery,
    Resource,
    Search,
    Time,
    WithoutEffect,
)
from web.api.schemas.projects.groups import (
    Description,
    LeastLevel,
    Name,
    Visibility,
    least_role,
)

#: Who may use a part of a project, besides what role and visibility ask for.
Level = Literal["disabled", "private", "enabled"]


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
    last_activity_after: GivenTime | None = None
    last_activity_before: GivenTime | None = None
    #: As `last_activity_after`: any change is an activity.
    updated_after: GivenTime | None = None
    updated_before: GivenTime | None = None
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


class _LevelsBody(Body):
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

    def levels(self) -> dict[Feature, AccessLevel]:
        """Return what was given, by part."""
        given = {feature: getattr(self, f"{feature}_access_level") for feature in Feature}
        return {feature: AccessLevel(level) for feature, level in given.items() if level}

    def parts(self) -> ProjectEdit:
        """Return the new values of the parts alone."""
        return ProjectEdit(
            access_levels=self.levels(), outbound_job_tokens=self.ci_job_token_scope_enabled
        )


class ProjectBody(_LevelsBody):
    """A new project in a group; it needs a name or a path."""

    name: Name = ""
    path: Name = ""
    #: The id of the group.
    namespace_id: Id
    visibility: Visibility = "private"
    description: Description = ""


class ProjectChangeBody(_LevelsBody):
    """New values of a project."""

    name: Name | None = None
    #: The last part of the full path; URLs with the former one still lead here.
    path: Name | None = None
    visibility: Visibility | None = None
    description: Description | None = None

    def edit(self) -> ProjectEdit:
        """Return the new values."""
        return ProjectEdit(
            name=self.name,
            description=self.description,
            visibility=self.visibility,
            access_levels=self.levels(),
            outbound_job_tokens=self.ci_job_token_scope_enabled,
        )


class ProjectTransferBody(Body):
    """Where a project moves to."""

    #: The id or the full path of a group.
    namespace: Id | Name


class ProjectNamespace(Resource):
    """The group that holds a project."""

    id: int
    name: str
    path: str
    kind: Literal["group"] = "group"
    full_path: str
    parent_id: int | None
    web_url: str


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


@dataclass(frozen=True, kw_only=True)
class Repository:
    """What is known of a project's repository without asking Git."""

    #: None if the caller may not read it.
    default_branch: str | None
    is_empty: bool


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
    operations_access_level: Level | None = _until("16.0", "That of monitor_access_level")
    ci_job_token_scope_enabled: bool | None = _until("17.0", "See the job token scope")
    permissions: ProjectPermissions | None = _not_in_simple()
    links: ProjectLinks | None = Field(
        default=None, exclude_if=_is_absent, serialization_alias="_links"
    )

    @classmethod
    def simple(cls, found: ProjectDetails, base_url: str, repository: Repository) -> "Project":
        """Present the fields that tell projects apart."""
        return cls(**_simple_fields(found, base_url, repository))

    @classmethod
    def of(cls, found: ProjectDetails, base_url: str, repository: Repository) -> "Project":
        """Present a project with the fields of all releases."""
        levels = _levels(found.project)
        return cls(
            **_simple_fields(found, base_url, repository),
            **levels,
            visibility=cast("Visibility", found.project.visibility),
            archived=found.project.is_archived,
            empty_repo=repository.is_empty,
            operations_access_level=levels["monitor_access_level"],
            ci_job_token_scope_enabled=found.project.job_token_scope.outbound,
            permissions=ProjectPermissions(
                project_access=_role(found.direct_role), group_access=_role(found.inherited_role)
            ),
            links=_links(f"{base_url}/api/v4/projects/{found.project.id}"),
        )


def _levels(project: ProjectView) -> Mapping[str, Any]:
    return {
        f"{feature}_access_level": str(level) for feature, level in project.access_levels.items()
    }


def _simple_fields(
    found: ProjectDetails, base_url: str, repository: Repository
) -> Mapping[str, Any]:
    project = found.project
    return {
        "id": project.id,
        "name": project.name,
        "name_with_namespace": " / ".join((*found.group_names, project.name)),
        "path": project.path.rpartition("/")[2],
        "path_with_namespace": project.path,
        "description": project.description,
        "created_at": project.created_at,
        "default_branch": repository.default_branch,
        "http_url_to_repo": f"{base_url}/{project.path}.git",
        "ssh_url_to_repo": f"{base_url}/{project.path}.git",
        "last_activity_at": found.last_activity_at,
        "web_url": f"{base_url}/{project.path}",
        "namespace": ProjectNamespace(
            id=project.group_id,
            name=found.group_name,
            path=project.group_path.rpartition("/")[2],
            full_path=project.group_path,
            parent_id=found.parent_id,
            web_url=f"{base_url}/{project.group_path}",
        ),
    }


def _role(role: Role | None) -> ProjectRole | None:
    return None if role is None else ProjectRole(access_level=int(role))


def _links(url: str) -> ProjectLinks:
    return ProjectLinks(
        self=url,
        members=f"{url}/members",
        environments=f"{url}/environments",
        alerts=f"{url}/alert_management_alerts",
    )
