"""Member roles from lowest to highest, and the abilities that custom roles can add to them."""

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Role(IntEnum):
    """The roles of members. The values are the access levels in the API."""

    GUEST = 10
    PLANNER = 15
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50

    @property
    def label(self) -> str:
        """The display name of the role."""
        return self.name.capitalize()


def parse_role(word: str) -> Role:
    """Return the role with this name (case-insensitive) or number.

    Raise ValueError if there is no such role.
    """
    text = word.strip()
    for role in Role:
        if text.upper() == role.name or text == str(int(role)):
            return role
    names = ", ".join(role.label for role in Role)
    raise ValueError(f'"{word}" is not a role. Use one of {names}.')


class Ability(StrEnum):
    """The permissions that a custom role can add. The values are the names in the API."""

    READ_CODE = "read_code"
    READ_ALERTS = "read_alerts"
    ADMIN_ALERTS = "admin_alerts"
    READ_ENVIRONMENTS = "read_environments"
    ADMIN_ENVIRONMENTS = "admin_environments"
    ADMIN_INTEGRATIONS = "admin_integrations"


#: Lowest role that has each ability by default.
MINIMUM_ROLES = {
    Ability.READ_CODE: Role.REPORTER,
    Ability.READ_ENVIRONMENTS: Role.DEVELOPER,
    Ability.READ_ALERTS: Role.DEVELOPER,
    Ability.ADMIN_ALERTS: Role.DEVELOPER,
    Ability.ADMIN_ENVIRONMENTS: Role.MAINTAINER,
    Ability.ADMIN_INTEGRATIONS: Role.MAINTAINER,
}
#: Abilities that include another ability, since users can only change objects that they can see.
_INCLUDED_ABILITIES = {
    Ability.ADMIN_ALERTS: Ability.READ_ALERTS,
    Ability.ADMIN_ENVIRONMENTS: Ability.READ_ENVIRONMENTS,
}


def add_included_abilities(abilities: Iterable[Ability]) -> frozenset[Ability]:
    """Return these abilities and the abilities that they include."""
    given = frozenset(abilities)
    return given | {_INCLUDED_ABILITIES[each] for each in given if each in _INCLUDED_ABILITIES}


def parse_abilities(names: Iterable[str]) -> frozenset[Ability]:
    """Return the abilities with these names.

    Unknown names are ignored, because a later release may have stored them.
    """
    return frozenset(Ability(name) for name in names if name in set(Ability))
