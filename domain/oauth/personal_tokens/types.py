"""Parameters and resources for access tokens of users, projects and groups."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from domain.access.roles import Role
from domain.core.database.pagination import MAX_SEARCH_TEXT_LENGTH
from domain.core.types.base import (
    Body,
    GitLabQuery,
    Id,
    RequestDay,
    RequestTimeOrDay,
    Resource,
    SecretResource,
    Time,
    Words,
    join_option_values,
)
from domain.core.types.pagination import OffsetQuery
from domain.oauth.personal_tokens.token_lists import TIME_COLUMNS, TokenFilter
from domain.projects.views import Namespace


def _is_not_none(value: Any) -> bool:
    return value is not None


def _replace_empty_with_none(text: str) -> str | None:
    return text or None


def _get_date(moment: datetime | None) -> date | None:
    return moment.date() if moment else None


class TokenQuery(OffsetQuery, GitLabQuery):
    """Query parameters that filter and order a list of tokens."""

    user_id: Id | None = None
    state: Literal["active", "inactive"] | None = None
    revoked: bool | None = None
    #: Part of the name. A text with characters that names cannot contain matches no token.
    search: Annotated[str, Field(max_length=MAX_SEARCH_TEXT_LENGTH)] = ""
    created_after: RequestTimeOrDay | None = None
    created_before: RequestTimeOrDay | None = None
    expires_after: RequestTimeOrDay | None = None
    expires_before: RequestTimeOrDay | None = None
    last_used_after: RequestTimeOrDay | None = None
    last_used_before: RequestTimeOrDay | None = None
    order_by: Literal["id"] = "id"
    #: Sort order; `desc` is newest first.
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
    def requested_order(self) -> str | None:
        """The sort order, or None for newest first."""
        return None if self.sort == "desc" else self.sort

    def build_filter(
        self, *, owner_id: int | None = None, namespace: Namespace | None = None
    ) -> TokenFilter:
        """Return the token filter, limited to an owner or to the bots of a project or group."""
        return TokenFilter(
            owner_id=owner_id,
            user_id=self.user_id,
            namespace=namespace,
            is_active=None if self.state is None else self.state == "active",
            is_revoked=self.revoked,
            search=self.search,
            at_least=self._get_time_filters("after"),
            at_most=self._get_time_filters("before"),
        )

    def _get_time_filters(self, side: str) -> dict[str, datetime]:
        found = {name: getattr(self, f"{name}_{side}") for name in TIME_COLUMNS}
        return {name: moment for name, moment in found.items() if moment is not None}


class RotationBody(Body):
    """Request body for rotating a token. By default, the new token expires in one week."""

    expires_at: RequestDay | None = None


class TokenBody(Body):
    """The settings for a new token."""

    name: str = ""
    scopes: Words = ()
    expires_at: RequestDay | None = Field(
        default=None,
        description=(
            "Expiry date of the token. The default is one year from now, or the end of the maximum "
            "lifetime if that is earlier. Before release 16.0, the token never expires by default, "
            "unless the maximum lifetime is less than a year."
        ),
    )
    description: str = ""


class OwnTokenBody(TokenBody):
    """The settings for a new token of the current user."""

    name: str = Field(description="Name that describes the purpose of the token.")
    scopes: Annotated[Words, BeforeValidator(join_option_values)] = Field(
        description="Scopes, separated by spaces."
    )
    days: int | None = Field(
        default=None, ge=1, le=3650, description="Lifetime in days, instead of an expiry date."
    )


class ResourceTokenBody(TokenBody):
    """The settings for a new token of a project or a group."""

    access_level: Role = Role.MAINTAINER


class AccessToken(Resource):
    """A token, without its value."""

    id: int
    name: str
    revoked: Annotated[bool, BeforeValidator(_is_not_none)] = Field(validation_alias="revoked_at")
    created_at: Time
    description: Annotated[str | None, BeforeValidator(_replace_empty_with_none)]
    scopes: list[str]
    user_id: int
    last_used_at: Time | None
    active: bool = Field(validation_alias="is_active")
    expires_at: Annotated[date | None, BeforeValidator(_get_date)] = Field(
        description="Expiry date. Null if the token never expires."
    )


class NewAccessToken(AccessToken, SecretResource):
    """A token with its value, which is shown once."""

    token: str


class ResourceAccessToken(AccessToken):
    """A token of a project or a group, without its value."""

    #: Access level of the bot; null if the bot is no longer a member.
    access_level: int | None
    resource_type: Literal["project", "group"]
    resource_id: int


class NewResourceAccessToken(ResourceAccessToken, SecretResource):
    """A token of a project or a group with its value, which is shown once."""

    token: str
