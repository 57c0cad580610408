"""What limits the tokens of CI jobs of a project."""

from domain.projects.views import JobTokenScope as Scope
from domain.types.base import Body, Resource


class JobTokenScopeBody(Body):
    """The limits of a project; what is missing stays."""

    #: The name that clients know for `inbound_enabled`.
    enabled: bool | None = None
    inbound_enabled: bool | None = None
    outbound_enabled: bool | None = None

    @property
    def inbound(self) -> bool | None:
        """The new limit for tokens of other projects."""
        return self.enabled if self.inbound_enabled is None else self.inbound_enabled


class JobTokenScope(Resource):
    """The limits of a project, for the external CI that makes the tokens."""

    #: Whether tokens of other projects' jobs reach this project only if it allows them.
    inbound_enabled: bool
    #: Whether tokens of this project's jobs reach only the projects that allow it.
    outbound_enabled: bool

    @classmethod
    def of(cls, scope: Scope) -> "JobTokenScope":
        """Present the limits."""
        return cls(inbound_enabled=scope.inbound, outbound_enabled=scope.outbound)
