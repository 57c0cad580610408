"""Member roles, in order; each includes the permissions of the ones below."""

from enum import IntEnum


class Role(IntEnum):
    """A member's role; the value is the access level of the API."""

    GUEST = 10
    PLANNER = 15
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50

    @property
    def label(self) -> str:
        """The name for people."""
        return self.name.capitalize()


def role_named(word: str) -> Role:
    """Return the role of a name (in any case) or a number; raise ValueError if there is none."""
    text = word.strip()
    for role in Role:
        if text.upper() == role.name or text == str(int(role)):
            return role
    names = ", ".join(role.label for role in Role)
    message = f"“{word}” is not a role; the roles are {names}."
    raise ValueError(message)
