"""Schemas of OAuth requests and responses, used only in the OpenAPI description.

`domain/oauth` contains the code that reads the requests and writes the responses.
"""

from functools import reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field, RootModel

from domain.core.types.base import Body, Query, Resource
from domain.oauth.client_requests import ClientParameters
from domain.oauth.grants.registry import GRANTS

Prompt = Literal["none", "login", "consent"]


#: Union of the token requests for all grants.
_AnyTokenRequest = reduce(or_, (grant.REQUEST for grant in GRANTS))


class TokenRequest(RootModel[_AnyTokenRequest]):  # type: ignore[valid-type]
    """Token request with one of the supported grants."""


class DeviceAuthorizationRequest(ClientParameters):
    """Device authorization request (RFC 8628 section 3.1)."""

    scope: str = ""


class TokenQuestion(ClientParameters):
    """Token to introspect or to revoke (RFC 7009 section 2.1, RFC 7662 section 2.1)."""

    token: str
    token_type_hint: str = Field(default="", description="Accepted but ignored.")


class _AuthorizationParameters(Query):
    """Authorization request parameters (RFC 6749 section 4.1.1, OpenID Connect Core 3.1.2.1)."""

    response_type: Literal["code"]
    redirect_uri: str
    scope: str = ""
    state: str = ""
    code_challenge: Annotated[str, Field(pattern=r"^[A-Za-z0-9\-_]{43}$")] = Field(
        default="", description="PKCE code challenge (RFC 7636). Required for public applications."
    )
    code_challenge_method: Literal["S256"] = "S256"
    response_mode: Literal["query"] = "query"
    nonce: str = ""
    prompt: Prompt | None = None
    max_age: Annotated[int, Field(ge=0)] | None = None
    login_hint: str = ""


class AuthorizationRequest(_AuthorizationParameters):
    """Authorization request from a browser."""

    client_id: str
    request_uri: str = Field(
        default="", description="URI of a pushed authorization request (RFC 9126)."
    )


class PushedRequest(_AuthorizationParameters):
    """Pushed authorization request (RFC 9126 section 2.1)."""

    client_id: str = ""
    client_secret: str = ""


class ClientRegistration(Body):
    """Client metadata (RFC 7591 section 2)."""

    redirect_uris: list[str] = Field(default_factory=list, max_length=50)
    client_name: str = Field(default="", max_length=100)
    scope: str = Field(default="", max_length=1000)
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post", "none"] = (
        Field(default="client_secret_basic")
    )
    grant_types: list[str] = Field(default_factory=list, max_length=50)
    response_types: list[str] = Field(default_factory=list, max_length=50)
    client_uri: str = Field(default="", description="HTTPS URL of the client's home page.")
    logo_uri: str = ""
    tos_uri: str = ""
    policy_uri: str = ""
    contacts: list[str] = Field(default_factory=list, max_length=50)
    software_id: str = Field(default="", max_length=255)
    software_version: str = Field(default="", max_length=255)
    dpop_bound_access_tokens: bool = False
    require_pushed_authorization_requests: bool = False


class ClientChange(ClientRegistration):
    """Client metadata that replaces all previous metadata (RFC 7592 section 2.2)."""

    client_id: str
    client_secret: str = ""


class TokenResponse(Resource):
    """New tokens (RFC 6749 section 5.1)."""

    access_token: str
    token_type: Literal["bearer", "Bearer", "DPoP"]
    expires_in: int = Field(description="Lifetime in seconds.")
    refresh_token: str = ""
    scope: str = Field(default="", description="Granted scopes, separated by spaces.")
    created_at: int = Field(default=0, description="Creation time, as Unix time in seconds.")
    id_token: str = Field(
        default="", description="OpenID Connect ID token. Included if `openid` was granted."
    )


class DeviceAuthorizationResponse(Resource):
    """Codes for a device (RFC 8628 section 3.2)."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int = Field(description="Lifetime in seconds.")
    interval: int = Field(description="Minimum number of seconds between two token requests.")


class PushedResponse(Resource):
    """URI of a pushed authorization request (RFC 9126 section 2.2)."""

    request_uri: str
    expires_in: int = Field(description="Lifetime in seconds.")


class RevocationResponse(Resource):
    """Empty response. The token is revoked or did not exist (RFC 7009 section 2.2)."""


class BoundKey(Resource):
    """Key that a token is bound to (RFC 9449 section 6.1)."""

    jkt: str


class Introspection(Resource):
    """Metadata of a token (RFC 7662 section 2.2). Inactive tokens have only the `active` field."""

    active: bool
    scope: str = ""
    client_id: str = ""
    username: str = ""
    token_type: str = ""
    cnf: BoundKey | None = None
    exp: int = 0
    iat: int = 0
    sub: str = ""
    iss: str = ""


class TokenApplication(Resource):
    """Application that a token was issued to."""

    uid: str | None


class TokenInfo(Resource):
    """Scopes and lifetime of a token."""

    resource_owner_id: int
    scope: list[str]
    expires_in: int | None = Field(description="Remaining lifetime in seconds.")
    application: TokenApplication
    created_at: int = Field(description="Creation time, as Unix time in seconds.")
    scopes: list[str] = Field(
        deprecated=True, description="Same as `scope`, for compatibility with GitLab."
    )
    expires_in_seconds: int | None = Field(
        deprecated=True, description="Same as `expires_in`, for compatibility with GitLab."
    )


class UserClaims(Resource):
    """Claims about a user that the scopes permit (OpenID Connect Core section 5.3.2)."""

    sub: str
    groups: list[str]
    name: str | None = None
    nickname: str = ""
    preferred_username: str = ""
    profile: str = ""
    picture: str = ""
    email: str | None = None
    email_verified: bool = False


class PublicKey(Resource):
    """Public key (RFC 7517 section 4)."""

    kty: Literal["RSA"]
    use: Literal["sig"]
    alg: Literal["RS256"]
    kid: str
    n: str
    e: str


class KeySet(Resource):
    """Public keys that verify ID tokens (RFC 7517 section 5)."""

    keys: list[PublicKey]


class RegisteredClient(Resource):
    """Registered client with its metadata (RFC 7591 section 3.2.1)."""

    client_id: str
    client_id_issued_at: int
    client_secret: str = ""
    client_secret_expires_at: Literal[0] = Field(
        default=0, description="Always 0, because the secret does not expire."
    )
    registration_access_token: str
    registration_client_uri: str
    client_name: str
    redirect_uris: list[str]
    scope: str
    dpop_bound_access_tokens: bool
    token_endpoint_auth_method: str = ""
    grant_types: list[str] = Field(default_factory=list)
    response_types: list[str] = Field(default_factory=list)
    client_uri: str = ""
    logo_uri: str = ""
    tos_uri: str = ""
    policy_uri: str = ""
    contacts: list[str] = Field(default_factory=list)
    software_id: str = ""
    software_version: str = ""
    require_pushed_authorization_requests: bool = False


class AuthorizationServerMetadata(Resource):
    """Metadata of the authorization server (RFC 8414 section 2)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    device_authorization_endpoint: str = ""
    pushed_authorization_request_endpoint: str
    require_pushed_authorization_requests: bool
    registration_endpoint: str = ""
    revocation_endpoint: str
    introspection_endpoint: str
    userinfo_endpoint: str
    end_session_endpoint: str
    jwks_uri: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]
    token_endpoint_auth_signing_alg_values_supported: list[str]
    revocation_endpoint_auth_signing_alg_values_supported: list[str]
    introspection_endpoint_auth_signing_alg_values_supported: list[str]
    code_challenge_methods_supported: list[str]
    dpop_signing_alg_values_supported: list[str]
    authorization_response_iss_parameter_supported: bool


class OpenIdProviderMetadata(AuthorizationServerMetadata):
    """Server metadata with the additional fields from OpenID Connect Discovery section 3."""

    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]
    claim_types_supported: list[str]
    claims_supported: list[str]
    acr_values_supported: list[str]
    backchannel_logout_supported: bool
    backchannel_logout_session_supported: bool
    prompt_values_supported: list[str]
    claims_parameter_supported: bool
    request_parameter_supported: bool
    request_uri_parameter_supported: bool


class ProtectedResourceMetadata(Resource):
    """Metadata of a protected resource (RFC 9728 section 2)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    dpop_signing_alg_values_supported: list[str]
