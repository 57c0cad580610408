"""Custom member roles."""

from typing import Any

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.projects.member_roles import MemberRoleDetails, MemberRoleView
from domain.types.base import Body, RequiredText, Resource, Text


class MemberRoleBody(Body):
    """A new member role."""

    name: RequiredText
    description: Text = ""
    #: Guest 10, Planner 15, Reporter 20, Developer 30 or Maintainer 40.
    base_access_level: Role
    read_code: bool = False
    read_alerts: bool = False
    #: Includes read_alerts.
    admin_alerts: bool = False
    read_environments: bool = False
    #: Includes read_environments.
    admin_environments: bool = False
    admin_integrations: bool = False

    @property
    def details(self) -> MemberRoleDetails:
        """The requested role."""
        return MemberRoleDetails(
            name=self.name,
            description=self.description,
            base=self.base_access_level,
            abilities=frozenset(each for each in Ability if getattr(self, each.value)),
        )


class MemberRole(Resource):
    """A custom role of the instance, with a boolean for each permission that it can add."""

    id: int
    name: str
    description: str
    #: Always null: roles belong to the instance.
    group_id: None = None
    base_access_level: int
    read_code: bool
    read_alerts: bool
    admin_alerts: bool
    read_environments: bool
    admin_environments: bool
    admin_integrations: bool

    @classmethod
    def of(cls, view: MemberRoleView) -> "MemberRole":
        """Present a member role."""
        added: dict[str, Any] = {each.value: each in view.abilities for each in Ability}
        return cls(
            id=view.id,
            name=view.name,
            description=view.description,
            base_access_level=int(view.base),
            **added,
        )
