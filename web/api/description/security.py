"""Who may call: the schemes by which requests authenticate."""

from typing import Any

from domain.oauth.scopes import SCOPES
from web.access.bearer_token import PRIVATE_TOKEN


def security_schemes(base_url: str) -> dict[str, Any]:
    """Return the security schemes of the description."""
    scopes = {scope.name: scope.description for scope in SCOPES}
    return {
        "oauth2": {
            "type": "oauth2",
            "description": (
                "An application acts for a user. Devices without a browser ask at "
                f"{base_url}/oauth/authorize_device (RFC 8628); metadata of the server is at "
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
        "access_token": _bearer(
            "Any access token: OAuth, personal, of a project or of a group.",
        ),
        "oauth_token": _bearer("An access token of an application, not a personal one."),
        "private_token": {
            "type": "apiKey",
            "in": "header",
            "name": PRIVATE_TOKEN,
            "description": "The same in the header that clients of GitLab's API send.",
        },
        "client_credentials": _basic("The client_id and the client secret of an application."),
        "registration_access_token": _bearer("From the registration of the client (RFC 7592)."),
        "token_as_password": _basic("An access token as the password, with any user name."),
        "notification_secret": _bearer("From the configuration of the container registry."),
        "integration_key": _bearer("The key of an integration."),
        "integration_key_as_password": _basic("The same as the password, with an empty user name."),
    }


def _bearer(text: str) -> dict[str, str]:
    return {"type": "http", "scheme": "bearer", "description": text}


def _basic(text: str) -> dict[str, str]:
    return {"type": "http", "scheme": "basic", "description": text}
