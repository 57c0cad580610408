"""Finds the account that an administrator acts as."""

from sqlalchemy import bindparam, select

from domain.accounts.profiles import PROFILE, Profile, profile_in
from domain.accounts.users import ACTIVE, BOT, ERASED, HUMAN
from domain.database.paging import LARGEST_ID
from domain.database.statements import KeptConnection
from domain.errors import ForbiddenError, NotFoundError
from models import User
from models.folding import fold

_WITH_KIND = select(*PROFILE, User.kind)
_BY_ID = _WITH_KIND.where(User.id == bindparam("named"))
_BY_NAME = _WITH_KIND.where(User.username_key == bindparam("named"))


def get_profile_to_act_as(named: str, *, connection: KeptConnection) -> Profile:
    """Return the profile of the person with this id or user name.

    Raises NotFoundError, or ForbiddenError for an account that nobody can use, and for a bot.
    """
    is_number = named.isascii() and named.isdecimal()
    is_found = _BY_ID if is_number and int(named) <= LARGEST_ID else _BY_NAME
    row = connection.first(is_found, {"named": int(named) if is_found is _BY_ID else fold(named)})
    kind = row[len(PROFILE)] if row else ERASED
    if row is None or kind == ERASED:
        message = "The user that sudo names was not found."
        raise NotFoundError(message)
    profile = profile_in(row)
    if profile.state != ACTIVE or kind != HUMAN:
        why = "is a bot" if kind == BOT else f"is {profile.state}"
        message = f"Nobody can act as {profile.username}: the account {why}."
        raise ForbiddenError(message)
    return profile
