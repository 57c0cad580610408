"""Representations of users: the user object of the API, references to users, and avatars.

An avatar is the initial of a user's name on a color derived from the user's id. Its URL contains
everything that it shows, so it does not reveal which users exist.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from urllib.parse import quote

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.clock import written
from domain.core.database.statements import Row, columns_for
from domain.core.types.base import Resource
from models import User

_HUES = 360
#: Placeholder for a name without a letter or digit. It is drawn as head and shoulders.
_UNKNOWN = "-"
_SOMEBODY = (
    '<g fill="#fff"><circle cx="32" cy="24" r="10"/><path d="M12 54a20 18 0 0 1 40 0z"/></g>'
)
#: The golden angle in degrees, which gives users with consecutive ids very different colors.
_STEP = 137
_AVATAR = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="256" height="256">'
    '<rect width="64" height="64" fill="hsl({hue} 45% 38%)"/>{shown}</svg>'
)
_LETTER = (
    '<text x="32" y="43" text-anchor="middle" font-family="sans-serif" font-size="32" '
    'fill="#fff">{letter}</text>'
)


def avatar_path(name: str, user_id: int) -> str:
    """Return the URL path of a user's avatar."""
    return f"/-/pictures/{quote(_initial(name))}-{user_id * _STEP % _HUES}.svg"


class _Pictured(Protocol):
    """A user who has an avatar."""

    @property
    def id(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...


def avatar_url(person: _Pictured, base_url: str) -> str:
    """Return the URL of a user's avatar."""
    return f"{base_url}{avatar_path(person.name or person.username, person.id)}"


def _initial(name: str) -> str:
    """Return the first letter or digit of a name, in upper case."""
    first = next((each for each in unicodedata.normalize("NFKC", name) if each.isalnum()), _UNKNOWN)
    capital = unicodedata.normalize("NFC", first.upper())
    return capital if len(capital) == 1 else first


def draw_avatar(letter: str, hue: int) -> str:
    """Return the avatar as SVG; `hue` is in degrees."""
    is_letter = letter.isalnum() and len(letter) == 1
    shown = _LETTER.format(letter=letter) if is_letter else _SOMEBODY
    return _AVATAR.format(shown=shown, hue=hue % _HUES)


class FoundProfile(NamedTuple):
    """A user with the columns of `PROFILE`."""

    user_id: int
    username: str
    user_name: str
    email: str
    state: str
    is_admin: bool
    user_created_at: datetime
    last_sign_in_at: datetime | None
    email_confirmed_at: datetime | None


PROFILE = columns_for(FoundProfile._fields, {"user_": User, "": User})


def profile_path(username: str) -> str:
    """Return the path of a user's page; no group path can start with `/-/`."""
    return f"/-/users/{username}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """The current user's profile in the API."""

    id: int
    username: str
    name: str
    email: str
    state: str
    is_admin: bool
    created_at: datetime
    last_sign_in_at: datetime | None
    #: Time at which the email address was confirmed. None if it never was.
    email_confirmed_at: datetime | None

    def as_json(self, base_url: str) -> dict[str, object]:
        """Return the JSON object of GET /user, with the field names that API clients expect."""
        body: dict[str, object] = {
            "id": self.id,
            "username": self.username,
            "name": self.name,
            "state": self.state,
            "email": self.email,
            "public_email": None,
            "avatar_url": avatar_url(self, base_url),
            "web_url": f"{base_url}{profile_path(self.username)}",
            "created_at": _moment(self.created_at),
            "confirmed_at": _moment(self.email_confirmed_at),
            "last_sign_in_at": _moment(self.last_sign_in_at),
        }
        return {**body, "is_admin": True} if self.is_admin else body


def _moment(moment: datetime | None) -> str | None:
    return written(moment) if moment else None


def profile_in(row: Row) -> Profile:
    """Return the profile in a row that starts with the columns of PROFILE."""
    found = FoundProfile._make(row[: len(PROFILE)])
    return Profile(
        id=found.user_id,
        username=found.username,
        name=found.user_name,
        email=found.email,
        state=found.state,
        is_admin=found.is_admin,
        created_at=found.user_created_at,
        last_sign_in_at=found.last_sign_in_at,
        email_confirmed_at=found.email_confirmed_at,
    )


class _Person(_Pictured, Protocol):
    @property
    def state(self) -> str: ...


class UserReference(Resource):
    """A reference to a user in other resources."""

    id: int
    username: str
    name: str
    state: str
    avatar_url: str
    web_url: str

    @classmethod
    def of(cls, person: _Person, base_url: str) -> "UserReference":
        """Return a reference to a user; `base_url` has no trailing slash."""
        return cls(
            id=person.id,
            username=person.username,
            name=person.name,
            state=person.state,
            avatar_url=avatar_url(person, base_url),
            web_url=f"{base_url}{profile_path(person.username)}",
        )


def user_references(
    user_ids: Iterable[int], *, base_url: str, session: Session
) -> dict[int, UserReference]:
    """Return references to users, by user id."""
    wanted = set(user_ids)
    if not wanted:
        return {}
    rows = session.execute(
        select(User.id, User.username, User.name, User.state).where(User.id.in_(wanted))
    )
    return {row.id: UserReference.of(row, base_url) for row in rows}
