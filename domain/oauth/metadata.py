"""What clients can find out by themselves (RFC 8414, RFC 9728)."""

from typing import Any

from domain.oauth.scopes import SCOPES
from domain.oauth.server import GRANTS

_CLIENT_METHODS = ["client_secret_basic", "client_secret_post", "none"]


def authorization_server(issuer: str) -> dict[str, Any]:
    """Return the metadata of RFC 8414 section 2; every address begins with the issuer."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "scopes_supported": [scope.name for scope in SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [grant.GRANT_TYPE for grant in GRANTS],
        "token_endpoint_auth_methods_supported": _CLIENT_METHODS,
        "revocation_endpoint_auth_methods_supported": _CLIENT_METHODS,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def protected_resource(issuer: str) -> dict[str, Any]:
    """Return the metadata of the REST API (RFC 9728 section 2)."""
    return {
        "resource": f"{issuer}/api/v4",
        "authorization_servers": [issuer],
        "scopes_supported": [scope.name for scope in SCOPES],
        "bearer_methods_supported": ["header", "query"],
    }
