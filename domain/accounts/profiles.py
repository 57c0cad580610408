"""Representations of users: the API's user object, references to users, and avatars.

An avatar is the initial of a user's name on a color derived from the user's ID. The URL contains
the letter and the color, so a request does not reveal whether a user exists.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from urllib.parse import quote

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.clock import format_api_time
from domain.core.database.statements import Row, build_columns
from domain.core.types.base import Resource
from models import User

_HUE_COUNT = 360
#: Placeholder for the initial of a name without letters and digits, drawn as a head and shoulders.
_PLACEHOLDER_INITIAL = "-"
_PLACEHOLDER_SVG = (
    '<g fill="#fff"><circle cx="32" cy="24" r="10"/><path d="M12 54a20 18 0 0 1 40 0z"/></g>'
)
#: The golden angle in degrees, which gives users with consecutive IDs very different colors.
_HUE_STEP = 137
_AVATAR_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="256" height="256">'
    '<rect width="64" height="64" fill="hsl({hue} 45% 38%)"/>{shown}</svg>'
)
_LETTER_SVG = (
    '<text x="32" y="43" text-anchor="middle" font-family="sans-serif" font-size="32" '
    'fill="#fff">{letter}</text>'
)


def build_avatar_path(name: str, user_id: int) -> str:
    """Return the URL path of a user's avatar, without the base URL."""
    return f"/-/pictures/{quote(_find_initial(name))}-{user_id * _HUE_STEP % _HUE_COUNT}.svg"


class _AvatarUser(Protocol):
    """The fields of a user that an avatar is built from."""

    @property
    def id(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...


def build_avatar_url(person: _AvatarUser, base_url: str) -> str:
    """Return the absolute URL of a user's avatar."""
    return f"{base_url}{build_avatar_path(person.name or person.username, person.id)}"


def _find_initial(name: str) -> str:
    """Return the first letter or digit of a name, in upper case."""
    first = next(
        (each for each in unicodedata.normalize("NFKC", name) if each.isalnum()),
        _PLACEHOLDER_INITIAL,
    )
    capital = unicodedata.normalize("NFC", first.upper())
    return capital if len(capital) == 1 else first


def build_avatar_svg(letter: str, hue: int) -> str:
    """Return the avatar as SVG.

    `hue` is in degrees.
    """
    is_letter = letter.isalnum() and len(letter) == 1
    shown = _LETTER_SVG.format(letter=letter) if is_letter else _PLACEHOLDER_SVG
    return _AVATAR_SVG.format(shown=shown, hue=hue % _HUE_COUNT)


class ProfileRow(NamedTuple):
    """A row of a query that selects `PROFILE_COLUMNS`."""

    user_id: int
    username: str
    user_name: str
    email: str
    state: str
    is_admin: bool
    user_created_at: datetime
    last_sign_in_at: datetime | None
    email_confirmed_at: datetime | None


PROFILE_COLUMNS = build_columns(ProfileRow._fields, {"user_": User, "": User})


def build_profile_path(username: str) -> str:
    """Return the path of a user's page.

    No group path can start with `/-/`.
    """
    return f"/-/users/{username}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """The profile of a user for GET /user in the API."""

    id: int
    username: str
    name: str
    email: str
    state: str
    is_admin: bool
    created_at: datetime
    last_sign_in_at: datetime | None
    #: Time at which the email address was confirmed. None if the address is not confirmed.
    email_confirmed_at: datetime | None

    def convert_to_json_value(self, base_url: str) -> dict[str, object]:
        """Return the JSON object of GET /user, with the field names that API clients expect."""
        body: dict[str, object] = {
            "id": self.id,
            "username": self.username,
            "name": self.name,
            "state": self.state,
            "email": self.email,
            "public_email": None,
            "avatar_url": build_avatar_url(self, base_url),
            "web_url": f"{base_url}{build_profile_path(self.username)}",
            "created_at": _format_optional_time(self.created_at),
            "confirmed_at": _format_optional_time(self.email_confirmed_at),
            "last_sign_in_at": _format_optional_time(self.last_sign_in_at),
        }
        return {**body, "is_admin": True} if self.is_admin else body


def _format_optional_time(moment: datetime | None) -> str | None:
    return format_api_time(moment) if moment else None


def build_profile(row: Row) -> Profile:
    """Return the profile in a row that starts with PROFILE_COLUMNS."""
    found = ProfileRow._make(row[: len(PROFILE_COLUMNS)])
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


class _ReferencedUser(_AvatarUser, Protocol):
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
    def from_user(cls, person: _ReferencedUser, base_url: str) -> "UserReference":
        """Build a reference to a user, with absolute URLs.

        `base_url` has no trailing slash.
        """
        return cls(
            id=person.id,
            username=person.username,
            name=person.name,
            state=person.state,
            avatar_url=build_avatar_url(person, base_url),
            web_url=f"{base_url}{build_profile_path(person.username)}",
        )


def find_user_references(
    user_ids: Iterable[int], *, base_url: str, session: Session
) -> dict[int, UserReference]:
    """Return references to users, by user ID."""
    wanted = set(user_ids)
    if not wanted:
        return {}
    rows = session.execute(
        select(User.id, User.username, User.name, User.state).where(User.id.in_(wanted))
    )
    return {row.id: UserReference.from_user(row, base_url) for row in rows}
