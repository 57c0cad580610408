"""Applications as the API has them, what people choose for them, and their refused requests."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from domain.core.grace_period import GracePeriod
from domain.core.types.base import (
    Argument,
    Body,
    GitLabQuery,
    OffsetQuery,
    Option,
    RequiredText,
    RequiredWords,
    Resource,
    SecretResource,
    Time,
    partial,
)
from domain.oauth.clients.types import ApplicationDetails, ApplicationView
from domain.oauth.clients.user_agents import device_in_words
from domain.oauth.grants.registry import PERMITTED_GRANTS

_GRANTS = "A grant type that only applications may use which an administrator allows it."
_PERMITTED = tuple(grant.GRANT_TYPE for grant in PERMITTED_GRANTS)


class ApplicationQuery(OffsetQuery, GitLabQuery):
    """A list of applications, the newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class ApplicationBody(Body):
    """A new application."""

    name: RequiredText
    #: Separated by spaces or lines; empty for device codes and passwords alone.
    redirect_uri: str
    scopes: RequiredWords
    confidential: bool = True
    #: Written for GitLab: it gets no `iss` (RFC 9207) with codes and errors.
    omit_iss: bool = False


class Application(Resource):
    """An instance-wide application."""

    id: int
    application_id: str
    application_name: str = Field(validation_alias="name")
    #: One a line.
    callback_url: Annotated[str, BeforeValidator("\n".join)] = Field(
        validation_alias="redirect_uris"
    )
    confidential: bool
    scopes: list[str]
    #: Whether it gets no `iss` (RFC 9207) with codes and errors.
    omit_iss: bool


class NewApplication(Application, SecretResource):
    """An application with its secret, which is shown once."""

    secret: str


class OwnApplicationBody(ApplicationDetails):
    """A new application."""

    name: Annotated[str, Argument("NAME")]
    allowed_grants: Annotated[
        tuple[Literal[*_PERMITTED], ...] | None,  # type: ignore[valid-type]
        Option("--allow-grant"),
        Field(description=_GRANTS),
    ] = None


@partial
class ApplicationChange(ApplicationDetails):
    """New settings of an application; omitted fields are kept."""

    allowed_grants: Annotated[
        tuple[Literal[*_PERMITTED], ...] | None,  # type: ignore[valid-type]
        Option("--allow-grant", null="--forbid-grants"),
        Field(description=_GRANTS),
    ] = None


class RenewalBody(Body):
    """How long the old secret is accepted beside the new one."""

    overlap: Literal[*(each.key for each in GracePeriod)] = Field(  # type: ignore[valid-type]
        default=GracePeriod.DAY.key,
        description="How long the old secret is accepted beside the new one.",
    )


class ApplicationWithSecret(ApplicationView, SecretResource):
    """An application with its secret, which is shown once; a public one has none."""

    secret: str | None


class ApplicationUserQuery(OffsetQuery):
    """A list of users of an application, the newest accounts first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class ApplicationUser(Resource):
    """Somebody who let an application in, and did not revoke that."""

    #: Null if the application cannot read who it is.
    username: str | None
    name: str | None
    scopes: tuple[str, ...]
    #: As far as it is stored.
    authorized_at: Time | None
    #: When a token was last issued or used.
    last_used_at: Time | None


class RefusedRequestQuery(OffsetQuery):
    """A list of refused requests, the newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class RefusedRequest(Resource):
    """A refused authorization or token request in the name of an application."""

    id: int
    refused_at: Time
    #: A word for the reason; the title says the same to people, the advice what to change.
    reason: str
    title: str
    advice: str
    #: The grant type, or the name of another endpoint.
    request: str
    error: str
    error_description: str = Field(validation_alias="description")
    #: What was sent in the place of a registered one, without values of parameters and passwords.
    redirect_uri: str | None
    #: Null for authorization requests, which come from people's browsers.
    ip_address: str | None = Field(validation_alias="address")
    user_agent: str | None
    #: How many more of this reason followed that are not listed.
    similar: int = Field(validation_alias="skipped")

    @property
    def device(self) -> str:
        """The program, as its User-Agent header describes it."""
        return device_in_words(self.user_agent)


class RemovedScopes(Resource):
    """Scopes that live access tokens have although they were removed from the application."""

    scopes: tuple[str, ...]
    #: Number of these access tokens.
    tokens: int


class EndedTokens(Resource):
    """The number of access tokens that were ended."""

    tokens: int
