"""Schemas of the OpenAPI document, and of the errors that `web/http/errors.py` renders."""

from typing import Any, Literal

from pydantic import Field

from domain.core.types.base import Query, Resource, Text


class OpenApiQuery(Query):
    """Query parameters of a request for the OpenAPI document."""

    tag: Text | None = Field(
        default=None,
        description="Tag to filter by, such as `Alerts`. Operations with other tags are omitted.",
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
    """Error in a field of the request body."""

    field: str
    message: str


class Message(Resource):
    """API error, such as `404 Not Found`, often with an explanation."""

    message: str


class Conflict(Message):
    """Error for a request that conflicts with an existing resource."""

    errors: list[WrongField] = Field(default_factory=list)


class Taken(Resource):
    """Error for a path or name that is already in use."""

    #: Messages by parameter. Each message is `has already been taken`.
    message: dict[str, list[str]]
    errors: list[WrongField] = Field(default_factory=list)


class ParameterError(Resource):
    """Error in request parameters, with all invalid fields of the body."""

    error: str
    errors: list[WrongField] = Field(default_factory=list)


class RejectedOAuthRequest(Resource):
    """Error for a rejected token (RFC 6750 section 3.1)."""

    error: str
    error_description: str
    #: Accepted scopes. The token needs one of these scopes.
    scope: str = ""


class UnreadRequest(Message):
    """Error for a request that the web server could not parse, before the endpoint is known."""

    error: str
    error_description: str


class OAuthError(Resource):
    """Error from an OAuth endpoint (RFC 6749 section 5.2)."""

    error: str
    error_description: str = ""
    #: URL of a page that explains the error.
    error_uri: str
    #: ID of this request in the log.
    request_id: str
    #: New interval between polls in seconds. Only included with the `slow_down` error.
    interval: int | None = None


class RefusedItem(Resource):
    """Item in the request body that is not a valid alert."""

    item: int
    reason: str


class Refusal(Resource):
    """Error for a request body that a receiver rejects."""

    message: str
    #: Required attributes that are missing or malformed.
    missing: list[str] = Field(default_factory=list)
    errors: list[RefusedItem] = Field(default_factory=list)


class EventRefusal(Resource):
    """Error in the format of PagerDuty's Events API v2."""

    status: str
    message: str
    errors: list[str] = Field(default_factory=list)
