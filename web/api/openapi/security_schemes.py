"""Security schemes of the OpenAPI description."""

from typing import Any

from domain.access.scopes import SCOPES
from web.access.bearer_token import PRIVATE_TOKEN_HEADER


def build_security_schemes(base_url: str) -> dict[str, Any]:
    """Return the security schemes of the OpenAPI description, by name."""
    scopes = {scope.name: scope.description for scope in SCOPES}
    return {
        "oauth2": {
            "type": "oauth2",
            "description": (
                "Access token of an application that acts for a user. Devices without a browser "
                f"use {base_url}/oauth/authorize_device (RFC 8628). The server metadata is at "
                f"{base_url}/.well-known/oauth-authorization-server."
            ),
            "flows": {
                "authorizationCode": {
                    "authorizationUrl": f"{base_url}/oauth/authorize",
                    "tokenUrl": f"{base_url}/oauth/token",
                    "refreshUrl": f"{base_url}/oauth/token",
                    "scopes": scopes,
                },
            },
        },
        "access_token": _build_bearer_scheme(
            "Any access token: OAuth, personal, project or group access token.",
        ),
        "oauth_token": _build_bearer_scheme(
            "Access token of an application. Personal access tokens are not accepted."
        ),
        "private_token": {
            "type": "apiKey",
            "in": "header",
            "name": PRIVATE_TOKEN_HEADER,
            "description": "Any access token, in the header that GitLab API clients send.",
        },
        "client_credentials": _build_basic_scheme(
            "The client_id and the client secret of an application."
        ),
        "registration_access_token": _build_bearer_scheme(
            "Registration access token of the client (RFC 7592)."
        ),
        "token_as_password": _build_basic_scheme(
            "Access token as the password, with any username."
        ),
        "notification_secret": _build_bearer_scheme(
            "Secret from the configuration of the container registry."
        ),
        "integration_key": _build_bearer_scheme("Authorization key of an integration."),
        "integration_key_as_password": _build_basic_scheme(
            "Authorization key of an integration as the password, with an empty username."
        ),
    }


def _build_bearer_scheme(text: str) -> dict[str, str]:
    return {"type": "http", "scheme": "bearer", "description": text}


def _build_basic_scheme(text: str) -> dict[str, str]:
    return {"type": "http", "scheme": "basic", "description": text}
