"""Parameters and resources for applications, and for their rejected requests."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.core.grace_period import GracePeriod
from domain.core.types.base import (
    Argument,
    Body,
    GitLabQuery,
    Option,
    RequiredText,
    RequiredWords,
    Resource,
    SecretResource,
    Time,
    make_fields_optional,
)
from domain.core.types.pagination import OffsetQuery
from domain.oauth.clients.types import ApplicationDetails, ApplicationView
from domain.oauth.clients.user_agents import describe_device
from domain.oauth.grants.registry import PERMITTED_GRANTS

_GRANTS_DESCRIPTION = (
    "Grant types that an administrator must allow, and that the application may use."
)
_PERMITTED_GRANT_TYPES = tuple(grant.GRANT_TYPE for grant in PERMITTED_GRANTS)


class ApplicationQuery(OffsetQuery, GitLabQuery):
    """Query parameters for a list of applications, newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class ApplicationBody(Body):
    """The settings of a new instance-wide application."""

    name: RequiredText
    #: Redirect URIs, separated by spaces or line breaks. Empty if the application only uses the
    #: device and password grants.
    redirect_uri: str
    scopes: RequiredWords
    confidential: bool = True
    #: True to omit `iss` (RFC 9207) from authorization responses, for clients written for GitLab.
    omit_iss: bool = False


class Application(Resource):
    """An instance-wide application, without its secret."""

    id: int
    application_id: str
    application_name: str = Field(validation_alias="name")
    #: Redirect URIs, one per line.
    callback_url: Annotated[str, BeforeValidator("\n".join)] = Field(
        validation_alias="redirect_uris"
    )
    confidential: bool
    scopes: list[str]
    #: True if authorization responses have no `iss` (RFC 9207).
    omit_iss: bool


class NewApplication(Application, SecretResource):
    """An application with its secret, which is shown once."""

    secret: str


class OwnApplicationBody(ApplicationDetails):
    """The settings of a new application."""

    name: Annotated[str, Argument("NAME")]
    allowed_grants: Annotated[
        tuple[Literal[*_PERMITTED_GRANT_TYPES], ...] | None,  # type: ignore[valid-type]
        Option("--allow-grant"),
        Field(description=_GRANTS_DESCRIPTION),
    ] = None


@make_fields_optional
class ApplicationChange(ApplicationDetails):
    """New settings for an application. Omitted fields are kept."""

    allowed_grants: Annotated[
        tuple[Literal[*_PERMITTED_GRANT_TYPES], ...] | None,  # type: ignore[valid-type]
        Option("--allow-grant", null="--forbid-grants"),
        Field(description=_GRANTS_DESCRIPTION),
    ] = None


class SecretRenewalBody(Body):
    """Request body for renewing a secret, with the time for which the old secret remains valid."""

    overlap: Literal[*(each.key for each in GracePeriod)] = Field(  # type: ignore[valid-type]
        default=GracePeriod.DAY.key,
        description="Time for which the old secret remains valid.",
    )


class ApplicationWithSecret(ApplicationView, SecretResource):
    """An application with its secret, which is shown once. Public applications have no secret."""

    secret: str | None


class ApplicationUserQuery(OffsetQuery):
    """Query parameters for a list of an application's users, newest accounts first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class ApplicationUser(Resource):
    """A user who has authorized an application and has not revoked its access."""

    #: Username; null if the application cannot identify the user.
    username: str | None
    name: str | None
    scopes: tuple[str, ...]
    #: Time of the first stored authorization.
    authorized_at: Time | None
    #: Time when a token was last issued or used.
    last_used_at: Time | None


class RejectedRequestQuery(OffsetQuery):
    """Query parameters for a list of rejected requests, newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class RejectedRequest(Resource):
    """A rejected authorization or token request from an application."""

    id: int
    refused_at: Time
    #: Name of the reason; `title` describes it, and `advice` explains what to change.
    reason: str
    title: str
    advice: str
    #: Grant type of a token request, or the name of another endpoint.
    request: str
    error: str
    error_description: str = Field(validation_alias="description")
    #: Unregistered redirect URI of the request, without parameter values and passwords.
    redirect_uri: str | None
    #: IP address; null for authorization requests, which come from users' browsers.
    ip_address: str | None = Field(validation_alias="address")
    user_agent: str | None
    #: Number of later requests with the same reason that are not listed.
    similar: int = Field(validation_alias="skipped")

    @property
    def device(self) -> str:
        """The device or program that the User-Agent header describes."""
        return describe_device(self.user_agent)


class RemovedScopes(Resource):
    """Scopes that were removed from an application, but that active access tokens still have."""

    scopes: tuple[str, ...]
    #: Number of active access tokens that have removed scopes.
    tokens: int


class EndedTokens(Resource):
    """The number of access tokens that were expired early."""

    tokens: int
