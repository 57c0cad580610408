"""What Docker's registry and its clients send. `domain/registry` reads it: here it is described."""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Body, Query, Resource, Time


class RegistryTokenQuery(Query):
    """Which token a client of the registry asks for."""

    service: Literal["container_registry"]
    scope: str = Field(
        default="",
        description="Requested access, such as `repository:acme/shop:pull,push`. The parameter "
        "can be repeated.",
    )


class RegistryTokenForm(Body):
    """The same as a form."""

    grant_type: Literal["password"]
    service: Literal["container_registry"]
    password: str = Field(description="An access token.")
    username: str = Field(default="", description="Any.")
    scope: str = ""


class RegistryTokenResponse(Resource):
    """A token for the registry, under both names that clients read."""

    token: str
    access_token: str
    expires_in: int = Field(description="Seconds.")
    issued_at: Time
    scope: str = ""


class RegistryEnvelope(Body):
    """A notification of the registry."""

    events: list[dict[str, Any]] = Field(max_length=200)


class RegistryError(Resource):
    """An error in the registry's format."""

    code: str
    message: str


class RegistryErrors(Resource):
    """The errors of a request of the registry's clients."""

    errors: list[RegistryError]
