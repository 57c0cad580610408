"""Schemas of errors, as `web/http/errors.py` renders them, and of the OpenAPI document."""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Query, Resource, Text


class OpenApiQuery(Query):
    """Query for the OpenAPI document."""

    tag: Text | None = Field(
        default=None,
        description="Tag of operations, such as `Alerts`. Other operations are omitted.",
    )


class OpenApiDocument(Resource):
    """OpenAPI 3.1 document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]


class WrongField(Resource):
    """Error in one field of a body."""

    field: str
    message: str


class Message(Resource):
    """API error, such as `404 Not Found`, often with an explanation."""

    message: str


class Conflict(Message):
    """Existing resource that the request conflicts with."""

    errors: list[WrongField] = Field(default_factory=list)


class Taken(Resource):
    """Path or name that is already in use."""

    #: `has already been taken`, by parameter.
    message: dict[str, list[str]]
    errors: list[WrongField] = Field(default_factory=list)


class ParameterError(Resource):
    """Error in parameters, with all invalid fields of a body."""

    error: str
    errors: list[WrongField] = Field(default_factory=list)


class TokenRefusal(Resource):
    """Rejected token (RFC 6750 section 3.1)."""

    error: str
    error_description: str
    #: Scopes of which one is required.
    scope: str = ""


class UnreadRequest(Message):
    """Request that the web server could not parse, reported before the endpoint is known."""

    error: str
    error_description: str


class OAuthError(Resource):
    """Error of the OAuth endpoints (RFC 6749 section 5.2)."""

    error: str
    error_description: str = ""
    #: URL of a page that explains the error.
    error_uri: str
    #: Id of this request in the log.
    request_id: str
    #: Number of seconds between polls from now on, only with `slow_down`.
    interval: int | None = None


class RefusedItem(Resource):
    """Item of a body that is not a valid alert."""

    item: int
    reason: str


class Refusal(Resource):
    """Error for a body that a receiver rejects."""

    message: str
    #: Required attributes that are missing or malformed.
    missing: list[str] = Field(default_factory=list)
    errors: list[RefusedItem] = Field(default_factory=list)


class EventRefusal(Resource):
    """Error in the format of PagerDuty's Events API v2."""

    status: str
    message: str
    errors: list[str] = Field(default_factory=list)
