"""Who changes shifts: a maintainer all of them, other members those of their own."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Changer:
    """Somebody who changes the shifts of a schedule."""

    #: None for a command.
    user_id: int | None
    #: Whether they have the Maintainer role.
    may_change_all: bool


#: The command line has all permissions.
OPERATOR = Changer(user_id=None, may_change_all=True)
