"""Schemas of requests from Docker's registry and its clients, for the description only.

`domain/registry` contains the code that reads them.
"""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Body, Query, Resource, Time


class RegistryTokenQuery(Query):
    """Token request of a registry client."""

    service: Literal["container_registry"]
    scope: str = Field(
        default="",
        description="Requested access, such as `repository:acme/shop:pull,push`. The parameter "
        "can be repeated.",
    )


class RegistryTokenForm(Body):
    """Token request of a registry client as a form."""

    grant_type: Literal["password"]
    service: Literal["container_registry"]
    password: str = Field(description="Access token.")
    username: str = Field(default="", description="Any user name.")
    scope: str = ""


class RegistryTokenResponse(Resource):
    """Token for the registry, under both names that clients read."""

    token: str
    access_token: str
    expires_in: int = Field(description="Lifetime in seconds.")
    issued_at: Time
    scope: str = ""


class RegistryEnvelope(Body):
    """Notification of the registry."""

    events: list[dict[str, Any]] = Field(max_length=200)


class RegistryError(Resource):
    """Error in the registry's format."""

    code: str
    message: str


class RegistryErrors(Resource):
    """Errors of a request from a registry client."""

    errors: list[RegistryError]
