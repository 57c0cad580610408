"""Metadata documents (RFC 8414, RFC 9728, OpenID Connect Discovery)."""

from domain.access.scopes import PUBLISHED_SCOPES
from domain.oauth.client_jwts import CLIENT_JWT_ALGORITHMS
from domain.oauth.clients.authentication import ClientAuthMethod
from domain.oauth.context import OAuthPolicy
from domain.oauth.grants.authorization_code import SUPPORTED_PROMPTS
from domain.oauth.grants.registry import list_enabled_grants
from domain.oauth.openid import id_tokens, userinfo
from domain.oauth.openid.signing_keys import SIGNING_ALGORITHM

_CONFIDENTIAL_METHODS = [
    method.value for method in ClientAuthMethod if method is not ClientAuthMethod.NONE
]
_METHODS_BY_ENDPOINT = {
    "token": [*ClientAuthMethod],
    "revocation": [*ClientAuthMethod],
    "introspection": _CONFIDENTIAL_METHODS,
}


def build_authorization_server_metadata(policy: OAuthPolicy) -> dict[str, object]:
    """Return the metadata defined in RFC 8414 section 2.

    Every URL begins with the issuer.
    """
    issuer = policy.issuer
    device = {"device_authorization_endpoint": f"{issuer}/oauth/authorize_device"}
    registration = {"registration_endpoint": f"{issuer}/oauth/register"}
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        # RFC 8628 section 4.
        **(device if policy.devices.is_offered else {}),
        "pushed_authorization_request_endpoint": f"{issuer}/oauth/par",
        "require_pushed_authorization_requests": policy.pushed_requests.is_required,
        # RFC 7591 section 3.
        **(registration if policy.registration.is_offered else {}),
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "introspection_endpoint": f"{issuer}/oauth/introspect",
        "userinfo_endpoint": f"{issuer}/oauth/userinfo",
        "end_session_endpoint": f"{issuer}/oauth/logout",
        "jwks_uri": f"{issuer}/oauth/discovery/keys",
        "scopes_supported": list(PUBLISHED_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [grant.GRANT_TYPE for grant in list_enabled_grants(policy)],
        **{
            f"{name}_endpoint_auth_methods_supported": of
            for name, of in _METHODS_BY_ENDPOINT.items()
        },
        **{
            f"{name}_endpoint_auth_signing_alg_values_supported": list(CLIENT_JWT_ALGORITHMS)
            for name in _METHODS_BY_ENDPOINT
        },
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(CLIENT_JWT_ALGORITHMS),
        "authorization_response_iss_parameter_supported": True,
    }


def build_openid_provider_metadata(policy: OAuthPolicy) -> dict[str, object]:
    """Return the metadata defined in OpenID Connect Discovery section 3."""
    user_claims = [name for names in userinfo.CLAIMS_BY_SCOPE.values() for name in names]
    return {
        **build_authorization_server_metadata(policy),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [SIGNING_ALGORITHM],
        "claim_types_supported": ["normal"],
        "claims_supported": list(dict.fromkeys((*id_tokens.ID_TOKEN_CLAIMS, *user_claims))),
        "acr_values_supported": [id_tokens.ACR_ONE_FACTOR, id_tokens.ACR_TWO_FACTORS],
        "backchannel_logout_supported": True,
        "backchannel_logout_session_supported": True,
        "prompt_values_supported": sorted(SUPPORTED_PROMPTS),
        # Without these members, clients would assume that request_uri is supported.
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }


def build_protected_resource_metadata(resource: str, *, issuer: str) -> dict[str, object]:
    """Return the metadata for the protected resource at a URL (RFC 9728 section 2)."""
    return {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": list(PUBLISHED_SCOPES),
        "bearer_methods_supported": ["header", "query"],
        "dpop_signing_alg_values_supported": list(CLIENT_JWT_ALGORITHMS),
    }
