"""Members of projects and groups, and their custom roles, as all faces see them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from domain.access.abilities import Ability
from domain.access.roles import Role, role_named
from domain.types.base import Body, RequiredText, Resource, Text, Time


def _role(value: Any) -> Any:
    is_word = isinstance(value, str) and not value.strip().isdecimal()
    return role_named(value) if is_word else value


#: A role by its name, or by the number of its access level.
GivenRole = Annotated[Role, BeforeValidator(_role)]


class NewMemberRole(Body):
    """A new member role."""

    name: RequiredText
    description: Text = ""
    #: Guest 10, Planner 15, Reporter 20, Developer 30 or Maintainer 40.
    base_access_level: GivenRole
    read_code: bool = False
    read_alerts: bool = False
    #: Includes read_alerts.
    admin_alerts: bool = False
    read_environments: bool = False
    #: Includes read_environments.
    admin_environments: bool = False
    admin_integrations: bool = False

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it adds to the role that it is based on."""
        return frozenset(each for each in Ability if getattr(self, each))


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
    created_at: Time = Field(exclude=True)

    @property
    def base(self) -> Role:
        """The role that it is based on."""
        return Role(self.base_access_level)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it adds to that role."""
        return frozenset(each for each in Ability if getattr(self, each))
