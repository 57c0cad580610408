"""Users as other resources name them."""

from typing import Protocol

from flask import url_for

from domain.accounts.avatars import avatar_url
from domain.types.base import Resource
from web.http.public_urls import public_url
from web.services import settings


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
    def of(cls, person: _Person) -> "UserReference":
        """Present a user."""
        path = url_for("users.show", username=person.username)
        return cls(
            id=person.id,
            username=person.username,
            name=person.name,
            state=person.state,
            avatar_url=avatar_url(person, settings().base_url),
            web_url=public_url(path),
        )
