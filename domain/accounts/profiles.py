"""What the API says of a user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select

from domain.errors import NotFoundError
from domain.hot import HotConnection
from models import User

_PROFILE = select(
    User.id,
    User.username,
    User.name,
    User.email,
    User.state,
    User.is_admin,
    User.created_at,
    User.last_sign_in_at,
).where(User.id == bindparam("user_id"))


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A user as the API shows them to themselves."""

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
            "web_url": f"{base_url}/{self.username}",
            "created_at": _moment(self.created_at),
            "last_sign_in_at": _moment(self.last_sign_in_at),
        }
        return {**body, "is_admin": True} if self.is_admin else body


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def get_profile(user_id: int, *, hot: HotConnection) -> Profile:
    """Return a user's profile, or raise NotFoundError."""
    row = hot.first(_PROFILE, {"user_id": user_id})
    if row is None:
        message = "There is no such user."
        raise NotFoundError(message)
    return Profile(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public accessor
