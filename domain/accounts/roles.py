"""Roles, in order: who has more may do all that who has less may do."""

from enum import IntEnum


class Role(IntEnum):
    """A member's role; the numbers are the API's."""

    GUEST = 10
    PLANNER = 15
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50

    @property
    def label(self) -> str:
        """The word that people read."""
        return self.name.capitalize()


def role_named(word: str) -> Role:
    """Return the role of a word in any case, or of its number; raise ValueError otherwise."""
    text = word.strip()
    for role in Role:
        if text.upper() == role.name or text == str(int(role)):
            return role
    names = ", ".join(role.label for role in Role)
    message = f"“{word}” is not a role; the roles are {names}."
    raise ValueError(message)
