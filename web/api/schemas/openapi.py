"""The description of the API, described."""

from typing import Any, Literal

from domain.types.base import Resource


class OpenApiDocument(Resource):
    """A document of OpenAPI 3.1."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    servers: list[dict[str, Any]]
    tags: list[dict[str, Any]]
    paths: dict[str, Any]
    components: dict[str, Any]
