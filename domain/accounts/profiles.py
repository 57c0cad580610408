"""The user object of the API."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.clock import written
from domain.database.statements import HotRow
from models import User

#: The columns that `profile_of` reads.
PROFILE = (
    User.id.label("user_id"),
    User.username,
    User.name.label("user_name"),
    User.email,
    User.state,
    User.is_admin,
    User.created_at.label("user_created_at"),
    User.last_sign_in_at,
)


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

    def as_json(self, base_url: str) -> dict[str, Any]:
        """Return the object of GET /user, with the field names that API clients read."""
        body: dict[str, Any] = {
            "id": self.id,
            "username": self.username,
            "name": self.name,
            "state": self.state,
            "email": self.email,
            "public_email": None,
            "avatar_url": None,
            "web_url": f"{base_url}{profile_path(self.username)}",
            "created_at": _moment(self.created_at),
            "last_sign_in_at": _moment(self.last_sign_in_at),
        }
        return {**body, "is_admin": True} if self.is_admin else body


def _moment(moment: datetime | None) -> str | None:
    return written(moment) if moment else None


def profile_of(row: HotRow) -> Profile:
    """Build a profile from a row with the columns of PROFILE."""
    return Profile(
        id=row.user_id,
        username=row.username,
        name=row.user_name,
        email=row.email,
        state=row.state,
        is_admin=row.is_admin,
        created_at=row.user_created_at,
        last_sign_in_at=row.last_sign_in_at,
    )
