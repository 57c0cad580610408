"""What the OAuth endpoints answer. `domain/oauth` writes it: here it is described only."""

from typing import Literal

from pydantic import Field

from domain.types.base import Resource


class TokenResponse(Resource):
    """New tokens (RFC 6749 section 5.1)."""

    access_token: str
    token_type: Literal["bearer", "Bearer", "DPoP"]
    expires_in: int = Field(description="Seconds.")
    refresh_token: str = ""
    scope: str = Field(default="", description="Separated by spaces.")
    created_at: int = Field(default=0, description="Seconds since 1970.")
    id_token: str = Field(default="", description="Of OpenID Connect, if openid was granted.")


class DeviceAuthorizationResponse(Resource):
    """The codes of a device (RFC 8628 section 3.2)."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int = Field(description="Seconds.")
    interval: int = Field(description="Seconds between two requests for a token.")


class PushedResponse(Resource):
    """The name of a pushed request (RFC 9126 section 2.2)."""

    request_uri: str
    expires_in: int = Field(description="Seconds.")


class RevocationResponse(Resource):
    """Nothing: the token is revoked, or did not exist (RFC 7009 section 2.2)."""


class BoundKey(Resource):
    """The key that a token is bound to (RFC 9449 section 6.1)."""

    jkt: str


class Introspection(Resource):
    """What is known of a token; of one that is not active nothing (RFC 7662 section 2.2)."""

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
    """The application that a token was issued to."""

    uid: str | None


class TokenInfo(Resource):
    """The scopes and the lifetime of a token."""

    resource_owner_id: int
    scope: list[str]
    expires_in: int | None = Field(description="Seconds that are left.")
    application: TokenApplication
    created_at: int = Field(description="Seconds since 1970.")
    scopes: list[str] = Field(deprecated=True, description="Use scope.")
    expires_in_seconds: int | None = Field(deprecated=True, description="Use expires_in.")


class UserClaims(Resource):
    """The claims of a user that the scopes allow (OpenID Connect Core section 5.3.2)."""

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
    """A public key (RFC 7517 section 4)."""

    kty: Literal["RSA"]
    use: Literal["sig"]
    alg: Literal["RS256"]
    kid: str
    n: str
    e: str


class KeySet(Resource):
    """The public keys of ID tokens (RFC 7517 section 5)."""

    keys: list[PublicKey]


class RegisteredClient(Resource):
    """A client and its metadata (RFC 7591 section 3.2.1)."""

    client_id: str
    client_id_issued_at: int
    client_secret: str = ""
    client_secret_expires_at: Literal[0] = Field(default=0, description="Never.")
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
    code_challenge_methods_supported: list[str]
    dpop_signing_alg_values_supported: list[str]
    authorization_response_iss_parameter_supported: bool


class OpenIdProviderMetadata(AuthorizationServerMetadata):
    """The same with what OpenID Connect Discovery section 3 adds."""

    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]
    claim_types_supported: list[str]
    claims_supported: list[str]
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
