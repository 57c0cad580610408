"""Immutable views of groups and projects for web pages and commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar, NamedTuple

from domain.access.actor import UnitOfWork
from domain.access.features import AccessLevel, Feature
from domain.access.roles import MINIMUM_ROLES, Ability, Role
from domain.core.types.base import Resource


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """The user who views groups and projects, or an anonymous viewer if `user_id` is None."""

    user_id: int | None
    is_admin: bool = False
    #: Day of the request. Memberships that expire on or before this day are ignored. By default,
    #: only memberships without an expiry date count.
    today: date = date.max


def get_viewer(work: UnitOfWork) -> Viewer:
    """Return the actor as a viewer of groups and projects."""
    return Viewer(user_id=work.actor.id, is_admin=work.actor.is_admin, today=work.now.date())


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """A group or a project of which users can be members."""

    group_id: int | None = None
    project_id: int | None = None
    path: str

    @property
    def resource_type(self) -> str:
        """The type of the namespace: `group` or `project`."""
        return "project" if self.group_id is None else "group"

    @property
    def id(self) -> int | None:
        """ID of the group or project."""
        return self.project_id if self.group_id is None else self.group_id

    @property
    def is_group(self) -> bool:
        """True for a group, false for a project."""
        return self.group_id is not None

    @property
    def url_values(self) -> Mapping[str, Any]:
        """Arguments for the URLs of the group's or project's web pages."""
        return {"group_path" if self.is_group else "project_path": self.path}


class JobTokenScope(Resource):
    """The limits on a project's job tokens, for the external CI system that issues the tokens."""

    #: True if job tokens of other projects can access this project only with its permission.
    inbound_enabled: bool
    #: True if job tokens of this project can access only projects that permit the access.
    outbound_enabled: bool


_DEFAULT_JOB_TOKEN_SCOPE = JobTokenScope(inbound_enabled=True, outbound_enabled=False)


@dataclass(frozen=True, kw_only=True)
class _NamespaceView:
    """The common fields of a group or project, with the role and abilities of one viewer."""

    id: int
    name: str
    path: str
    role: Role | None
    created_at: datetime
    description: str = ""
    #: Always false for groups, which cannot be archived.
    is_archived: bool = False
    #: Abilities that custom roles add to the role.
    abilities: frozenset[Ability] = frozenset()

    def has_ability(self, ability: Ability) -> bool:
        """Return whether the viewer has an ability through a standard or custom role."""
        return self.has_role(MINIMUM_ROLES[ability]) or ability in self.abilities

    def has_role(self, minimum_role: Role) -> bool:
        """Return whether the viewer has at least the given role."""
        return self.role is not None and self.role >= minimum_role

    @property
    def can_handle_alerts(self) -> bool:
        """True if the viewer may change, assign, comment on and silence alerts."""
        return not self.is_archived and self.has_ability(Ability.ADMIN_ALERTS)

    @property
    def can_maintain(self) -> bool:
        """True if the viewer may change integrations and members, and create projects."""
        return self.has_role(Role.MAINTAINER)

    @property
    def can_edit(self) -> bool:
        """True if the viewer can maintain the project or group, and it is not archived."""
        return self.can_maintain and not self.is_archived

    @property
    def has_owner_role(self) -> bool:
        """True if the viewer has the Owner role, which is required to delete the namespace."""
        return self.role == Role.OWNER


@dataclass(frozen=True, kw_only=True)
class ProjectView(_NamespaceView):
    """A project with the role and abilities of one viewer."""

    visibility: str
    group_id: int
    access_levels: Mapping[Feature, AccessLevel] = field(
        default_factory=lambda: dict.fromkeys(Feature, AccessLevel.ENABLED)
    )
    open_alerts: int = 0
    job_token_scope: JobTokenScope = _DEFAULT_JOB_TOKEN_SCOPE
    is_group: ClassVar[bool] = False
    is_personal: ClassVar[bool] = False

    @property
    def can_see_alerts(self) -> bool:
        """True if monitoring is enabled and the viewer may see the project's alerts."""
        return self.has_feature(Feature.MONITOR) and self.has_ability(Ability.READ_ALERTS)

    @property
    def can_manage_environments(self) -> bool:
        """True if the viewer may create and delete environments."""
        return not self.is_archived and self.has_ability(Ability.ADMIN_ENVIRONMENTS)

    @property
    def can_see_environments(self) -> bool:
        """True if environments are enabled and the viewer may see them."""
        return self.has_feature(Feature.ENVIRONMENTS) and self.has_ability(
            Ability.READ_ENVIRONMENTS
        )

    @property
    def can_manage_integrations(self) -> bool:
        """True if monitoring is enabled and the viewer may see and change integrations."""
        return self.has_feature(Feature.MONITOR) and self.has_ability(Ability.ADMIN_INTEGRATIONS)

    @property
    def url_values(self) -> Mapping[str, Any]:
        """Arguments for the URLs of the project's web pages."""
        return {"project_path": self.path}

    @property
    def namespace(self) -> Namespace:
        """The ID and the path of the project as a `Namespace`."""
        return Namespace(project_id=self.id, path=self.path)

    @property
    def group_path(self) -> str:
        """Full path of the group that contains the project."""
        return self.path.rpartition("/")[0]

    @property
    def has_reporter_role(self) -> bool:
        """True if the viewer has the role that is required to see images of a private project."""
        return self.has_role(Role.REPORTER)

    @property
    def has_developer_role(self) -> bool:
        """True if the viewer's role is sufficient to see and change alerts and environments."""
        return self.has_role(Role.DEVELOPER)

    def get_access_level(self, feature: Feature) -> AccessLevel:
        """Return the access level of a feature of the project."""
        return self.access_levels[feature]

    def has_feature(self, feature: Feature) -> bool:
        """Return whether a feature of the project is enabled."""
        return self.access_levels[feature] is not AccessLevel.DISABLED


@dataclass(frozen=True, kw_only=True)
class GroupView(_NamespaceView):
    """A group with the role and abilities of one viewer."""

    parent_id: int | None = None
    #: ID of the user who owns the personal namespace. None for other groups.
    owner_id: int | None = None
    #: Time since which members need a second factor. None if they do not need a second factor.
    two_factor_required_at: datetime | None = None
    #: Grace period in hours.
    two_factor_grace_period: int = 48
    #: First projects, for web pages that list groups with their projects.
    projects: tuple[ProjectView, ...] = ()
    has_more_projects: bool = False
    subgroups: tuple[str, ...] = ()
    has_more_subgroups: bool = False
    is_group: ClassVar[bool] = True

    @property
    def require_two_factor_authentication(self) -> bool:
        """True if members need a second factor."""
        return self.two_factor_required_at is not None

    @property
    def is_personal(self) -> bool:
        """True for a user's personal namespace, which contains only projects."""
        return self.owner_id is not None

    def get_access_level(self, feature: Feature) -> AccessLevel:
        """Return ENABLED, since only projects can disable features."""
        del feature
        return AccessLevel.ENABLED

    @property
    def can_see_alerts(self) -> bool:
        """True if the viewer may see the group's settings for alerts."""
        return not self.is_personal and self.has_ability(Ability.READ_ALERTS)

    @property
    def url_values(self) -> Mapping[str, Any]:
        """Arguments for the URLs of the group's web pages."""
        return {"group_path": self.path}

    @property
    def namespace(self) -> Namespace:
        """The ID and the path of the group as a `Namespace`."""
        return Namespace(group_id=self.id, path=self.path)


#: A group or project as one viewer sees it.
ProjectOrGroup = GroupView | ProjectView


class SharedGroup(Resource):
    """A group with which a project is shared, and the maximum role of the group's members."""

    group_id: int
    group_name: str
    group_full_path: str
    #: Maximum role of the group's members in the project.
    group_access_level: int
    #: First day on which the share no longer gives a role.
    expires_at: date | None

    @property
    def role(self) -> Role:
        """The maximum role of the group's members in the project."""
        return Role(self.group_access_level)


class AssignedMemberRole(NamedTuple):
    """A custom role that a member has."""

    id: int
    name: str


@dataclass(frozen=True, kw_only=True)
class MemberView:
    """A direct or inherited member of a group or project."""

    #: ID of the direct membership. None if the role is only inherited.
    id: int | None
    user_id: int
    username: str
    name: str
    #: Effective role, which is the highest of the member's roles.
    role: Role
    #: Direct role, if any.
    own_role: Role | None
    #: Path of the group from which the effective role is inherited, if any.
    inherited_from: str | None
    is_you: bool
    #: First day on which the member no longer has the effective role.
    expires_at: date | None
    #: First day on which the member no longer has the direct role.
    own_expires_at: date | None
    created_at: datetime
    #: State of the account: active, locked or blocked.
    state: str
    #: Kind of the account: human, bot or service.
    kind: str = "human"
    #: Custom role of the membership that gives the effective role, if any.
    custom_role: AssignedMemberRole | None = None
    #: Custom role of the direct membership, if any.
    own_custom_role: AssignedMemberRole | None = None
    #: Abilities that direct and inherited custom roles add.
    abilities: frozenset[Ability] = frozenset()

    def has_ability(self, ability: Ability) -> bool:
        """Return whether the member has an ability through a standard or custom role."""
        return self.role >= MINIMUM_ROLES[ability] or ability in self.abilities

    @property
    def role_name(self) -> str:
        """Name of the effective role, with the name of the custom role if there is one."""
        return _format_role_name(self.role, self.custom_role)

    @property
    def own_role_name(self) -> str:
        """Name of the direct role, or an empty string if there is no direct role."""
        return _format_role_name(self.own_role, self.own_custom_role) if self.own_role else ""


def _format_role_name(role: Role, custom: AssignedMemberRole | None) -> str:
    return f"{custom.name} ({role.label})" if custom else role.label
