"""Users as other resources name them."""

from collections.abc import Iterable
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.avatars import avatar_url
from domain.types.base import Resource
from models import User


class _Person(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...


class UserReference(Resource):
    """A user, as other resources name one."""

    id: int
    username: str
    name: str
    state: str
    avatar_url: str
    web_url: str

    @classmethod
    def of(cls, person: _Person, base_url: str) -> "UserReference":
        """Present a user; the URL of the installation has no slash at its end."""
        return cls(
            id=person.id,
            username=person.username,
            name=person.name,
            state=person.state,
            avatar_url=avatar_url(person, base_url),
            web_url=f"{base_url}/-/users/{person.username}",
        )


def user_references(
    user_ids: Iterable[int], *, base_url: str, session: Session
) -> dict[int, UserReference]:
    """Return users by id."""
    wanted = set(user_ids)
    if not wanted:
        return {}
    rows = session.execute(
        select(User.id, User.username, User.name, User.state).where(User.id.in_(wanted))
    )
    return {row.id: UserReference.of(row, base_url) for row in rows}
