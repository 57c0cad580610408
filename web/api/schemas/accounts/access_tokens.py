"""Access tokens of people, projects and groups."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from domain.access.roles import Role
from domain.database.list_queries import LONGEST_SEARCH
from domain.oauth.personal_tokens.lists import TIMES, TokenFilter, TokenView
from domain.oauth.personal_tokens.resource_tokens import ResourceToken
from domain.oauth.personal_tokens.tokens import NewToken
from domain.projects.views import Namespace
from domain.types.base import (
    Body,
    GitLabQuery,
    GivenDay,
    GivenTime,
    Id,
    OffsetQuery,
    Resource,
    SecretResource,
    Time,
    Words,
)


class TokenQuery(OffsetQuery, GitLabQuery):
    """Which tokens a list has."""

    user_id: Id | None = None
    state: Literal["active", "inactive"] | None = None
    revoked: bool | None = None
    #: Of the name; a character that no name can have finds nothing.
    search: Annotated[str, Field(max_length=LONGEST_SEARCH)] = ""
    created_after: GivenTime | None = None
    created_before: GivenTime | None = None
    expires_after: GivenTime | None = None
    expires_before: GivenTime | None = None
    last_used_after: GivenTime | None = None
    last_used_before: GivenTime | None = None
    order_by: Literal["id"] = "id"
    #: `desc` stands for the newest first.
    sort: Literal[
        "desc",
        "created_asc",
        "created_desc",
        "expires_asc",
        "expires_desc",
        "last_used_asc",
        "last_used_desc",
        "name_asc",
        "name_desc",
    ] = "desc"

    @property
    def order(self) -> str | None:
        """The order, or None for the newest first."""
        return None if self.sort == "desc" else self.sort

    def wanted(
        self, *, owner_id: int | None = None, namespace: Namespace | None = None
    ) -> TokenFilter:
        """Return the filter, limited to an owner, or to the bots of a project or group."""
        return TokenFilter(
            owner_id=owner_id,
            user_id=self.user_id,
            namespace=namespace,
            is_active=None if self.state is None else self.state == "active",
            is_revoked=self.revoked,
            search=self.search,
            at_least=self._times("after"),
            at_most=self._times("before"),
        )

    def _times(self, side: str) -> dict[str, datetime]:
        found = {name: getattr(self, f"{name}_{side}") for name in TIMES}
        return {name: moment for name, moment in found.items() if moment is not None}


class RotationBody(Body):
    """When the new token ends; by default in a week."""

    expires_at: GivenDay | None = None


class TokenBody(Body):
    """A new token."""

    name: str = ""
    scopes: Words = ()
    expires_at: GivenDay | None = Field(
        default=None,
        description="Without it a year ahead, or the longest lifetime if that is shorter; before "
        "release 16.0 the token never expires unless the longest lifetime is under a year.",
    )
    description: str = ""


class ResourceTokenBody(TokenBody):
    """A new token of a project or a group."""

    access_level: Role = Role.MAINTAINER


class AccessToken(Resource):
    """A token, without its value."""

    id: int
    name: str
    revoked: bool
    created_at: Time
    description: str | None
    scopes: list[str]
    user_id: int
    last_used_at: Time | None
    active: bool
    expires_at: date | None = Field(description="Null for a token that never expires.")

    @classmethod
    def of(cls, view: TokenView) -> "AccessToken":
        """Present a token."""
        return cls(**_fields(view))


class NewAccessToken(AccessToken, SecretResource):
    """A token with its value, which is shown once."""

    token: str

    @classmethod
    def with_value(cls, made: NewToken) -> "NewAccessToken":
        """Present a token that was made just now."""
        return cls(**_fields(made.token), token=made.clear)


class ResourceAccessToken(AccessToken):
    """A token of a project or a group, without its value."""

    #: None once its bot has left.
    access_level: int | None
    resource_type: Literal["project", "group"]
    resource_id: int

    @classmethod
    def of_resource(cls, found: ResourceToken) -> "ResourceAccessToken":
        """Present a token of a project or a group."""
        return cls(**_resource_fields(found))


class NewResourceAccessToken(ResourceAccessToken, SecretResource):
    """A token of a project or a group with its value, which is shown once."""

    token: str

    @classmethod
    def with_value(cls, found: ResourceToken, clear: str) -> "NewResourceAccessToken":
        """Present a token that was made just now."""
        return cls(**_resource_fields(found), token=clear)


def _fields(view: TokenView) -> dict[str, Any]:
    return {
        "id": view.id,
        "name": view.name,
        "revoked": view.revoked_at is not None,
        "created_at": view.created_at,
        "description": view.description or None,
        "scopes": view.scopes,
        "user_id": view.user_id,
        "last_used_at": view.last_used_at,
        "active": view.is_active,
        "expires_at": view.expires_at.date() if view.expires_at else None,
    }


def _resource_fields(found: ResourceToken) -> dict[str, Any]:
    return {
        **_fields(found.token),
        "access_level": None if found.role is None else int(found.role),
        "resource_type": found.namespace.resource_type,
        "resource_id": found.namespace.id,
    }
