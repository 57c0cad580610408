"""The user object of the API."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from domain.accounts.avatars import avatar_url
from domain.clock import written
from domain.database.statements import Row
from models import User

#: The columns of `FoundProfile`.
PROFILE = (
    User.id.label("user_id"),
    User.username,
    User.name.label("user_name"),
    User.email,
    User.state,
    User.is_admin,
    User.created_at.label("user_created_at"),
    User.last_sign_in_at,
    User.email_confirmed_at,
)


class FoundProfile(NamedTuple):
    """The columns of `PROFILE` in their order; a test compares the names."""

    user_id: int
    username: str
    user_name: str
    email: str
    state: str
    is_admin: bool
    user_created_at: datetime
    last_sign_in_at: datetime | None
    email_confirmed_at: datetime | None


def profile_path(username: str) -> str:
    """Return the path of a user's page; no group path can collide below `/-/`."""
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
    #: When it was shown that the e-mail address is theirs; None if it never was.
    email_confirmed_at: datetime | None

    def as_json(self, base_url: str) -> dict[str, object]:
        """Return the object of GET /user, with the field names that API clients read."""
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
    """Return the profile in a row that begins with the columns of PROFILE."""
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
