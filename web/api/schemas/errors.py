"""The errors of all endpoints, as `web/http/errors.py` renders them, and the description itself."""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Resource


class OpenApiDocument(Resource):
    """A document of OpenAPI 3.1."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]


class WrongField(Resource):
    """An error in one field of a body."""

    field: str
    message: str


class Message(Resource):
    """An error of the API: `404 Not Found`, often with a sentence."""

    message: str


class Conflict(Message):
    """Existing resource that the request conflicts with."""

    errors: list[WrongField] = Field(default_factory=list)


class Taken(Resource):
    """A path or name that something else has."""

    #: `has already been taken`, by parameter.
    message: dict[str, list[str]]
    errors: list[WrongField] = Field(default_factory=list)


class ParameterError(Resource):
    """An error in parameters, with all invalid fields of a body."""

    error: str
    errors: list[WrongField] = Field(default_factory=list)


class TokenRefusal(Resource):
    """A token that is rejected (RFC 6750 section 3.1)."""

    error: str
    error_description: str
    #: The scopes of which one is needed.
    scope: str = ""


class UnreadRequest(Message):
    """A request that the web server could not read, told before any endpoint was known."""

    error: str
    error_description: str


class OAuthError(Resource):
    """An error of the OAuth endpoints (RFC 6749 section 5.2)."""

    error: str
    error_description: str = ""
    #: A page that explains it.
    error_uri: str
    #: Of this request in the log.
    request_id: str
    #: Seconds between polls from now on, in `slow_down` only.
    interval: int | None = None


class RefusedItem(Resource):
    """An item of a body that is no alert."""

    item: int
    reason: str


class Refusal(Resource):
    """A body that a receiver refuses."""

    message: str
    #: Required attributes that are missing or malformed.
    missing: list[str] = Field(default_factory=list)
    errors: list[RefusedItem] = Field(default_factory=list)


class EventRefusal(Resource):
    """An error as PagerDuty's Events API v2 tells it."""

    status: str
    message: str
    errors: list[str] = Field(default_factory=list)
