"""Schemas of requests from Docker's registry and its clients, used only in OpenAPI.

`domain/registry` contains the code that reads the requests.
"""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Body, Query, Resource, Time


class RegistryTokenQuery(Query):
    """Token request from a registry client."""

    service: Literal["container_registry"]
    scope: str = Field(
        default="",
        description="Requested access, such as `repository:acme/shop:pull,push`. The parameter "
        "can be repeated.",
    )


class RegistryTokenForm(Body):
    """Token request that a registry client sends as a form."""

    grant_type: Literal["password"]
    service: Literal["container_registry"]
    password: str = Field(description="Access token.")
    username: str = Field(default="", description="Any username.")
    scope: str = ""


class RegistryTokenResponse(Resource):
    """Token for the registry, included under both names that clients use."""

    token: str
    access_token: str
    expires_in: int = Field(description="Lifetime in seconds.")
    issued_at: Time
    scope: str = ""


class RegistryEnvelope(Body):
    """Notification with events from the registry."""

    events: list[dict[str, Any]] = Field(max_length=200)


class RegistryError(Resource):
    """Error in the registry's format."""

    code: str
    message: str


class RegistryErrors(Resource):
    """Errors in a response to a registry client."""

    errors: list[RegistryError]
