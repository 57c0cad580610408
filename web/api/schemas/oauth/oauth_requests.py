"""What clients send to the OAuth endpoints. `domain/oauth` reads it: here it is described only."""

from functools import reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field, RootModel

from domain.oauth.client_requests import ClientParameters
from domain.oauth.grants.registry import GRANTS
from domain.types.base import Body, Query

Prompt = Literal["none", "login", "consent"]


#: One of the requests of all grants.
_AnyRequest = reduce(or_, (grant.REQUEST for grant in GRANTS))


class TokenRequest(RootModel[_AnyRequest]):  # type: ignore[valid-type]
    """A grant for tokens."""


class DeviceAuthorizationRequest(ClientParameters):
    """A device that asks for codes (RFC 8628 section 3.1)."""

    scope: str = ""


class TokenQuestion(ClientParameters):
    """A token to look up or to revoke (RFC 7009 section 2.1, RFC 7662 section 2.1)."""

    token: str
    token_type_hint: str = Field(default="", description="Is not needed and not used.")


class _AuthorizationParameters(Query):
    """What an authorization asks for (RFC 6749 section 4.1.1, OpenID Connect Core 3.1.2.1)."""

    response_type: Literal["code"]
    redirect_uri: str
    scope: str = ""
    state: str = ""
    code_challenge: Annotated[str, Field(pattern=r"^[A-Za-z0-9\-_]{43}$")] = Field(
        default="", description="Of PKCE (RFC 7636); public applications need it."
    )
    code_challenge_method: Literal["S256"] = "S256"
    response_mode: Literal["query"] = "query"
    nonce: str = ""
    prompt: Prompt | None = None
    max_age: Annotated[int, Field(ge=0)] | None = None
    login_hint: str = ""


class AuthorizationRequest(_AuthorizationParameters):
    """An authorization request that a browser brings."""

    client_id: str
    request_uri: str = Field(default="", description="Of a pushed request (RFC 9126).")


class PushedRequest(_AuthorizationParameters):
    """An authorization request that the client pushes first (RFC 9126 section 2.1)."""

    client_id: str = ""
    client_secret: str = ""


class ClientRegistration(Body):
    """Metadata of a client (RFC 7591 section 2)."""

    redirect_uris: list[str] = Field(default_factory=list, max_length=50)
    client_name: str = Field(default="", max_length=100)
    scope: str = Field(default="", max_length=1000)
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post", "none"] = (
        Field(default="client_secret_basic")
    )
    grant_types: list[str] = Field(default_factory=list, max_length=50)
    response_types: list[str] = Field(default_factory=list, max_length=50)
    client_uri: str = Field(default="", description="An https URL, as the ones below.")
    logo_uri: str = ""
    tos_uri: str = ""
    policy_uri: str = ""
    contacts: list[str] = Field(default_factory=list, max_length=50)
    software_id: str = Field(default="", max_length=255)
    software_version: str = Field(default="", max_length=255)
    dpop_bound_access_tokens: bool = False
    require_pushed_authorization_requests: bool = False


class ClientChange(ClientRegistration):
    """Metadata that replaces all former metadata of a client (RFC 7592 section 2.2)."""

    client_id: str
    client_secret: str = ""
