"""Frozen views of groups and projects for pages and commands."""

from dataclasses import dataclass

from domain.accounts.roles import Role


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """The viewer of a page; anonymous if `user_id` is None."""

    user_id: int | None
    is_admin: bool = False


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """A group or a project that users can be members of."""

    group_id: int | None = None
    project_id: int | None = None
    path: str

    @property
    def resource_type(self) -> str:
        """`group` or `project`."""
        return "project" if self.group_id is None else "group"

    @property
    def id(self) -> int | None:
        """The id of the group or project."""
        return self.project_id if self.group_id is None else self.group_id


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    """A project as one viewer sees it."""

    id: int
    name: str
    path: str
    visibility: str
    role: Role | None
    open_alerts: int = 0

    @property
    def namespace(self) -> Namespace:
        """The project as a namespace with members."""
        return Namespace(project_id=self.id, path=self.path)

    @property
    def group_path(self) -> str:
        """Full path of the group that holds the project."""
        return self.path.rpartition("/")[0]

    @property
    def can_maintain(self) -> bool:
        """Whether the viewer may change integrations, members and settings."""
        return self.role is not None and self.role >= Role.MAINTAINER

    @property
    def can_develop(self) -> bool:
        """Whether the viewer may see and work on alerts."""
        return self.role is not None and self.role >= Role.DEVELOPER


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """A group as one viewer sees it."""

    id: int
    name: str
    path: str
    role: Role | None
    projects: tuple[ProjectView, ...] = ()
    subgroups: tuple[str, ...] = ()

    @property
    def namespace(self) -> Namespace:
        """The group as a namespace with members."""
        return Namespace(group_id=self.id, path=self.path)

    @property
    def can_maintain(self) -> bool:
        """Whether the viewer may create projects and add members here."""
        return self.role is not None and self.role >= Role.MAINTAINER

    @property
    def is_owned(self) -> bool:
        """Whether the viewer may create access tokens here."""
        return self.role == Role.OWNER


@dataclass(frozen=True, kw_only=True)
class MemberView:
    """A direct or inherited member of a group or project."""

    #: The id of the direct membership; None if the role is only inherited.
    id: int | None
    username: str
    name: str
    #: The effective role: the highest of all.
    role: Role
    #: The direct role, if any.
    own_role: Role | None
    #: The path of the group that the role is inherited from, if it is.
    inherited_from: str | None
    is_you: bool
    is_bot: bool = False

    @property
    def role_name(self) -> str:
        """The name of the role."""
        return self.role.label
