"""What pages and commands see of groups and projects: frozen values, never rows."""

from dataclasses import dataclass

from domain.accounts.roles import Role


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who is looking; nobody in particular when `user_id` is None."""

    user_id: int | None
    is_admin: bool = False


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
    def can_maintain(self) -> bool:
        """Whether the viewer may make projects and add members here."""
        return self.role is not None and self.role >= Role.MAINTAINER

    @property
    def is_owned(self) -> bool:
        """Whether the viewer may make access tokens here."""
        return self.role == Role.OWNER


@dataclass(frozen=True, kw_only=True)
class MemberView:
    """A member of a place, also when the role comes from a group above it."""

    #: The number of the membership here; None if all that they have comes from above.
    id: int | None
    username: str
    name: str
    #: The highest of their roles: the one that counts.
    role: Role
    #: The role that they were given here itself, if any.
    own_role: Role | None
    #: The group above that the role comes from, if it is not their own.
    inherited_from: str | None
    is_you: bool
    is_bot: bool = False

    @property
    def role_name(self) -> str:
        """The role in a word."""
        return self.role.label
