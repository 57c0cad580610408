"""Assembles the OpenAPI 3.1 document from operations, responses and headers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core.core_schema import WithDefaultSchema

from domain.core.types.base import GitLabQuery
from web.api.idempotency import IDEMPOTENCY_KEY_HEADER
from web.api.list_response_headers import IGNORED_PARAMETERS_HEADER
from web.api.openapi.introduction import INTRODUCTION
from web.api.openapi.security_schemes import build_security_schemes
from web.api.openapi.view_descriptions import FORM, JSON, TEXT, AdditionalResponse
from web.api.openapi.views import (
    DescribedView,
    has_cursor_pages,
    has_numbered_pages,
    list_described_views,
)
from web.api.schemas.errors import (
    Conflict,
    EventRefusal,
    Message,
    OAuthError,
    ParameterError,
    Refusal,
    RejectedOAuthRequest,
    Taken,
    UnreadRequest,
)
from web.api.schemas.registry import RegistryErrors
from web.api.schemas.webhook_messages import WEBHOOK_MESSAGES
from web.http.endpoints import ErrorFormat

#: Function that returns the reference to the schema of a response.
ReferenceFinder = Callable[[type[BaseModel]], dict[str, Any]]

_ModelTypes = tuple[type[BaseModel], ...]
_ModelTypesByStatus = Mapping[int, _ModelTypes]
_NON_NEGATIVE_INTEGER = {"type": "integer", "minimum": 0}
_RATE_LIMIT_HEADERS = (
    "RateLimit-Limit",
    "RateLimit-Observed",
    "RateLimit-Remaining",
    "RateLimit-Reset",
)


def _describe_header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": schema or {"type": "string"}}


RESPONSE_HEADERS: Mapping[str, dict[str, Any]] = {
    "RateLimit-Limit": _describe_header(
        "Number of requests allowed in the current window.", **_NON_NEGATIVE_INTEGER
    ),
    "RateLimit-Observed": _describe_header(
        "Number of requests in the current window, including rejected requests.",
        **_NON_NEGATIVE_INTEGER,
    ),
    "RateLimit-Remaining": _describe_header(
        "Number of remaining requests in the current window.", **_NON_NEGATIVE_INTEGER
    ),
    "RateLimit-Reset": _describe_header(
        "End of the current window, as Unix time in seconds.", **_NON_NEGATIVE_INTEGER
    ),
    "Retry-After": _describe_header(
        "Number of seconds to wait before the next request.", **_NON_NEGATIVE_INTEGER
    ),
    "ETag": _describe_header(
        "Version of the response, to send in `If-None-Match`. If nothing has changed, the status "
        "is 304 and the response has no body."
    ),
    "Link": _describe_header('Links to other pages of the list (RFC 8288), such as `rel="next"`.'),
    "X-Total": _describe_header("Total number of items.", **_NON_NEGATIVE_INTEGER),
    "X-Total-Pages": _describe_header("Total number of pages.", **_NON_NEGATIVE_INTEGER),
    "X-Page": _describe_header("Number of the current page.", **_NON_NEGATIVE_INTEGER),
    "X-Per-Page": _describe_header("Number of items per page.", **_NON_NEGATIVE_INTEGER),
    "X-Next-Page": _describe_header("Number of the next page. Empty on the last page."),
    "X-Prev-Page": _describe_header("Number of the previous page. Empty on the first page."),
    IGNORED_PARAMETERS_HEADER: _describe_header(
        "Unknown request parameters that were ignored. The names are percent-encoded and "
        "separated by commas."
    ),
    "Allow": _describe_header("Allowed methods. Empty if the token cannot use the endpoint."),
    "WWW-Authenticate": _describe_header(
        "Authentication scheme (RFC 6750, RFC 7617), and the reason for the rejection."
    ),
    "Idempotency-Replayed": _describe_header(
        "`true` if this is the stored response to an earlier request with the same key.",
        const="true",
    ),
    "Location": _describe_header("Target URL of the redirect."),
}
_SHARED_PAGE_HEADERS = ("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page")
_NUMBERED_PAGE_HEADERS = (*_SHARED_PAGE_HEADERS, "X-Prev-Page")

_ERROR_DESCRIPTIONS = {
    400: "The request is malformed, or a parameter is invalid.",
    401: "The token is missing, unknown, expired or revoked.",
    403: "The scopes of the token or the role of its user are not sufficient.",
    404: "The resource does not exist, or the caller has no access to it.",
    405: "The method is not allowed with this kind of token, or at a previous path of the project "
    "or group.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with existing data.",
    410: "A release has removed the operation. The message names the replacement.",
    413: "The body is too large.",
    414: "The URL is too long.",
    415: "The body has an unsupported media type.",
    422: "The body does not contain a valid alert.",
    429: "The client sent too many requests.",
    503: "The service is temporarily unavailable. Nothing was changed. Try again later.",
}
_ERROR_NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    413: "TooLarge",
    414: "URITooLong",
    415: "UnsupportedMediaType",
    422: "Unprocessable",
    429: "TooManyRequests",
    503: "Unavailable",
}
_FORMAT_PREFIXES = {
    ErrorFormat.API: "",
    ErrorFormat.OAUTH: "OAuth",
    ErrorFormat.MESSAGE: "Receiver",
    ErrorFormat.REGISTRY: "Registry",
    ErrorFormat.TEXT: "Plain",
    ErrorFormat.EVENTS: "Event",
}
#: Error schemas for statuses that do not use the default schema of the format.
_API_ERROR_SCHEMAS: _ModelTypesByStatus = {
    400: (ParameterError, Taken, Message, RejectedOAuthRequest),
    401: (Message, RejectedOAuthRequest),
    403: (Message, RejectedOAuthRequest),
    409: (Conflict,),
    414: (UnreadRequest,),
}
_RECEIVER_ERROR_SCHEMAS: _ModelTypesByStatus = {422: (Refusal,)}
_ERROR_HEADERS = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}

#: Schemas of all errors, for the components of the description.
ERROR_SCHEMAS: _ModelTypes = (
    *(Message, Conflict, Taken, ParameterError, RejectedOAuthRequest),
    *(OAuthError, Refusal, RegistryErrors, EventRefusal, UnreadRequest),
)


def _build_header_references(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def describe_responses(view: DescribedView, find_reference: ReferenceFinder) -> dict[str, Any]:
    """Return the responses of a view, by status."""
    success = _describe_success_response(view, find_reference)
    found: dict[str, Any] = {str(int(view.status)): success}
    if view.is_conditional:
        found["304"] = {"$ref": "#/components/responses/NotModified"}
    for status, answer in view.others.items():
        found[str(int(status))] = _describe_other_response(answer, find_reference)
    for status in view.errors:
        found[str(int(status))] = {
            "$ref": f"#/components/responses/{_get_response_name(status, view)}"
        }
    return dict(sorted(found.items()))


def _get_response_name(status: int, view: DescribedView) -> str:
    return f"{_FORMAT_PREFIXES[view.error_format]}{_ERROR_NAMES[status]}"


#: Descriptions of successful responses by status.
_SUCCESS_DESCRIPTIONS: Mapping[int, str] = {
    HTTPStatus.OK: "The request succeeded.",
    HTTPStatus.CREATED: "The resource was created.",
    HTTPStatus.ACCEPTED: "The request was accepted and is processed in the background.",
    HTTPStatus.NO_CONTENT: "The request succeeded. The response has no body.",
    HTTPStatus.FOUND: "The client is redirected.",
    HTTPStatus.SEE_OTHER: "The client is redirected to a GET request.",
    HTTPStatus.GONE: "A release has removed the operation.",
}


def _describe_success_response(
    view: DescribedView, find_reference: ReferenceFinder
) -> dict[str, Any]:
    found: dict[str, Any] = {"description": _SUCCESS_DESCRIPTIONS[view.status]}
    headers = _list_success_headers(view)
    if headers:
        found["headers"] = headers
    if view.content_type is not None:
        found["content"] = {
            view.content_type: {"schema": _get_response_schema(view, find_reference)}
        }
    return found


def _get_response_schema(view: DescribedView, find_reference: ReferenceFinder) -> dict[str, Any]:
    if not view.returns:  # The response is a file.
        return {} if view.content_type == JSON else {"type": "string"}
    schema = _build_alternatives(view.returns, find_reference)
    return schema if view.paging is None else {"type": "array", "items": schema}


def _describe_other_response(
    answer: AdditionalResponse, find_reference: ReferenceFinder
) -> dict[str, Any]:
    found: dict[str, Any] = {"description": answer.text}
    if answer.headers:
        found["headers"] = _build_header_references(*answer.headers)
    if answer.content_type is not None:
        schema = find_reference(answer.returns) if answer.returns else {"type": "string"}
        found["content"] = {answer.content_type: {"schema": schema}}
    return found


def _list_success_headers(view: DescribedView) -> dict[str, Any]:
    names: tuple[str, ...] = ("ETag",) if view.is_conditional else ()
    names += ("Idempotency-Replayed",) if view.is_repeatable else ()
    if view.query is not None and issubclass(view.query, GitLabQuery):
        names += (IGNORED_PARAMETERS_HEADER,)
    if has_numbered_pages(view.paging):
        names += _NUMBERED_PAGE_HEADERS
    elif has_cursor_pages(view.paging):
        names += ("Link",)
    return _build_header_references(
        *names, *(_RATE_LIMIT_HEADERS if HTTPStatus.TOO_MANY_REQUESTS in view.errors else ())
    )


def describe_shared_responses(
    views: Sequence[DescribedView], find_reference: ReferenceFinder
) -> dict[str, Any]:
    """Return the shared responses that views refer to."""
    used = {_get_response_name(status, view) for view in views for status in view.errors}
    formats: Mapping[ErrorFormat, tuple[_ModelTypesByStatus, _ModelTypes]] = {
        ErrorFormat.API: (_API_ERROR_SCHEMAS, (Message,)),
        ErrorFormat.OAUTH: ({}, (OAuthError,)),
        ErrorFormat.MESSAGE: (_RECEIVER_ERROR_SCHEMAS, (Message,)),
        ErrorFormat.REGISTRY: ({}, (RegistryErrors,)),
        ErrorFormat.TEXT: ({}, ()),
        ErrorFormat.EVENTS: ({}, (EventRefusal,)),
    }
    not_modified = {
        "description": "The resource has not changed since the response with this ETag.",
        "headers": _build_header_references("ETag"),
    }
    return {"NotModified": not_modified} | {
        f"{_FORMAT_PREFIXES[each]}{name}": _describe_error_response(
            status, special.get(status, usual), find_reference
        )
        for each, (special, usual) in formats.items()
        for status, name in _ERROR_NAMES.items()
        if f"{_FORMAT_PREFIXES[each]}{name}" in used
    }


def _describe_error_response(
    status: int, schemas: _ModelTypes, find_reference: ReferenceFinder
) -> dict[str, Any]:
    return {
        "description": _ERROR_DESCRIPTIONS[status],
        "headers": _build_header_references(*_ERROR_HEADERS.get(status, ()), *_RATE_LIMIT_HEADERS),
        "content": {JSON: {"schema": _build_alternatives(schemas, find_reference)}}
        if schemas
        else _PLAIN_TEXT_CONTENT,
    }


#: Content of errors that are not JSON.
_PLAIN_TEXT_CONTENT = {TEXT: {"schema": {"type": "string"}}}


def _build_alternatives(schemas: _ModelTypes, find_reference: ReferenceFinder) -> dict[str, Any]:
    references = [find_reference(each) for each in schemas]
    return references[0] if len(references) == 1 else {"anyOf": references}


_REFERENCE_TEMPLATE = "#/components/schemas/{model}"
#: Modes of schemas, for requests and for responses. A model may have a different schema in each
#: mode.
VALIDATION_MODE: Literal["validation"] = "validation"
SERIALIZATION_MODE: Literal["serialization"] = "serialization"
SchemaMode = Literal["validation", "serialization"]


class _SchemaGenerator(GenerateJsonSchema):
    """Schema generator that omits field titles, and defaults that represent an omitted field.

    All defaults in responses and empty strings in requests represent an omitted field.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False, so that the schemas contain no field titles."""
        del schema
        return False

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        """Return the schema of a field, without a default that represents an omitted field."""
        if self.mode == SERIALIZATION_MODE or schema.get("default") == "":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


class ModelSchemas:
    """Schemas of all models in the description."""

    def __init__(self, models: Iterable[tuple[type[BaseModel], SchemaMode]]) -> None:
        """Generate the schemas of request and response models."""
        wanted = list(dict.fromkeys(models))
        references, written = models_json_schema(
            wanted, ref_template=_REFERENCE_TEMPLATE, schema_generator=_SchemaGenerator
        )
        self._references = references
        self._written: dict[str, Any] = written["$defs"]
        self._in_parameters: set[str] = set()
        self._in_references: set[str] = set()

    def build_reference(self, model: type[BaseModel], mode: SchemaMode) -> dict[str, Any]:
        """Return the reference to the schema of a model."""
        reference = self._references[model, mode]
        self._in_references.add(_get_schema_name(reference))
        return reference

    def list_properties(self, model: type[BaseModel]) -> tuple[Mapping[str, Any], frozenset[str]]:
        """Return the fields of a request model and the names of its required fields."""
        schema = self._written[self._get_name(model)]
        return schema.get("properties", {}), frozenset(schema.get("required", ()))

    def build_parameters(self, model: type[BaseModel]) -> list[dict[str, Any]]:
        """Return the fields of a model as query parameters."""
        self._in_parameters.add(self._get_name(model))
        properties, required = self.list_properties(model)
        return [
            _describe_query_parameter(name, schema, is_required=name in required)
            for name, schema in properties.items()
        ]

    def build_components(self) -> dict[str, Any]:
        """Return all schemas except schemas that are used only for query parameters."""
        only_in_parameters = self._in_parameters - self._in_references
        return {
            name: schema
            for name, schema in sorted(self._written.items())
            if name not in only_in_parameters
        }

    def _get_name(self, model: type[BaseModel]) -> str:
        return _get_schema_name(self._references[model, VALIDATION_MODE])


def _get_schema_name(reference: Mapping[str, Any]) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def _describe_query_parameter(
    name: str, schema: Mapping[str, Any], *, is_required: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "in": "query",
        "schema": {key: each for key, each in schema.items() if key != "description"},
    }
    if is_required:
        found["required"] = True
    if text := schema.get("description"):
        found["description"] = text
    if schema.get("type") == "array":
        found |= {"style": "form", "explode": False}
    return found


@dataclass(frozen=True, kw_only=True)
class InstanceDetails:
    """Base URL, name and release of the instance, for its OpenAPI description."""

    base_url: str
    instance_name: str
    #: Release of the API.
    release: str


def build_openapi_document(app: Flask, edition: InstanceDetails) -> dict[str, Any]:
    """Return the OpenAPI document for all described views."""
    views = sorted(list_described_views(app), key=lambda each: (each.path.template, each.method))
    schemas = ModelSchemas(_list_models(views))
    paths: dict[str, Any] = {}
    for view in views:
        path = paths.setdefault(view.path.template, {})
        path[view.method.lower()] = _describe_operation(view, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": edition.instance_name,
            "version": edition.release,
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": edition.base_url}],
        "tags": [{"name": each} for each in sorted({view.tag for view in views})],
        "paths": paths,
        "webhooks": {
            name: {"post": _describe_webhook_message(name, schemas)} for name in WEBHOOK_MESSAGES
        },
        "components": {
            "schemas": schemas.build_components(),
            "responses": describe_shared_responses(
                views, lambda model: schemas.build_reference(model, SERIALIZATION_MODE)
            ),
            "headers": dict(RESPONSE_HEADERS),
            "parameters": _SHARED_PARAMETERS,
            "securitySchemes": build_security_schemes(edition.base_url),
        },
    }


def select_operations_by_tag(document: Mapping[str, Any], tag: str) -> dict[str, Any]:
    """Return the operations with a tag, and the components that they refer to."""
    selected = {
        "tags": [each for each in document["tags"] if each["name"] == tag],
        **{
            kind: {
                path: operations
                for path, methods in document[kind].items()
                if (operations := {k: v for k, v in methods.items() if tag in v["tags"]})
            }
            for kind in ("paths", "webhooks")
        },
    }
    all_components = document["components"]
    components: dict[str, Any] = {"securitySchemes": all_components["securitySchemes"]}
    waiting = _list_references(selected)
    while waiting:
        kind, name = waiting.pop()
        found = components.setdefault(kind, {})
        if name not in found:
            found[name] = all_components[kind][name]
            waiting += _list_references(found[name])
    return {**document, **selected, "components": components}


def _list_references(part: object) -> list[tuple[str, str]]:
    """Return the kinds and names of the components that a fragment of a document refers to."""
    if isinstance(part, list):
        return [each for item in part for each in _list_references(item)]
    if not isinstance(part, dict):
        return []
    found = [each for item in part.values() for each in _list_references(item)]
    if isinstance(reference := part.get("$ref"), str):
        kind, name = reference.removeprefix("#/components/").split("/")
        found.append((kind, name))
    return found


_SHARED_PARAMETERS = {
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "description": "ETag of the response that the client has stored.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": IDEMPOTENCY_KEY_HEADER,
        "in": "header",
        "description": "Unique key that the client chooses. Requests with the same key are "
        "executed only once.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
}


def _list_models(views: Sequence[DescribedView]) -> Iterable[tuple[type[BaseModel], SchemaMode]]:
    for view in views:
        answers = (*view.returns, *(other.returns for other in view.others.values()))
        yield from ((each, VALIDATION_MODE) for each in (view.query, view.body) if each is not None)
        yield from ((each, SERIALIZATION_MODE) for each in answers if each is not None)
    yield from (
        (each, SERIALIZATION_MODE)
        for each in (*ERROR_SCHEMAS, *dict.fromkeys(WEBHOOK_MESSAGES.values()))
    )


def _describe_webhook_message(name: str, schemas: ModelSchemas) -> dict[str, Any]:
    """Return the description of a request to a project's webhook."""
    headers = (
        ("webhook-id", "ID of the message. Every attempt has the same ID.", "string"),
        ("webhook-timestamp", "Unix time of the attempt, in seconds.", "integer"),
        (
            "webhook-signature",
            "Space-separated signatures, one for each valid secret, each prefixed with `v1,`.",
            "string",
        ),
    )
    return {
        "operationId": f"webhook.{name}",
        "tags": ["Webhooks"],
        "summary": f"Receive the event {name}",
        "description": (
            "Messages are signed as specified in Standard Webhooks. See docs/webhooks.md."
        ),
        "parameters": [
            {
                "name": header,
                "in": "header",
                "required": True,
                "description": words,
                "schema": {"type": kind},
            }
            for header, words, kind in headers
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": schemas.build_reference(WEBHOOK_MESSAGES[name], SERIALIZATION_MODE)
                }
            },
        },
        "responses": {
            "2XX": {"description": "The message was accepted."},
            "410": {"description": "The receiver no longer exists. The webhook is paused."},
            "default": {"description": "The message was not accepted. It is sent again later."},
        },
    }


def _describe_operation(view: DescribedView, schemas: ModelSchemas) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": view.name,
        "tags": [view.tag],
        "summary": view.summary,
        "description": view.text,
        "security": [
            {name: list(scopes) for name, scopes in each.items()} for each in view.security
        ],
        "parameters": _list_parameters(view, schemas),
        "responses": describe_responses(
            view, lambda model: schemas.build_reference(model, SERIALIZATION_MODE)
        ),
    }
    if view.body is not None:
        found["requestBody"] = _describe_request_body(view, view.body, schemas)
    return {name: each for name, each in found.items() if each != ""}


def _list_parameters(view: DescribedView, schemas: ModelSchemas) -> list[dict[str, Any]]:
    found = list(view.path.parameters)
    if view.query is not None:
        found += schemas.build_parameters(view.query)
    if view.is_conditional:
        found.append({"$ref": "#/components/parameters/IfNoneMatch"})
    if view.is_repeatable:
        found.append({"$ref": "#/components/parameters/IdempotencyKey"})
    return found


def _describe_request_body(
    view: DescribedView, body: type[BaseModel], schemas: ModelSchemas
) -> dict[str, Any]:
    properties, required = schemas.list_properties(body)
    content: dict[str, Any] = {}
    for media_type in view.accepts:
        content[media_type] = {"schema": schemas.build_reference(body, VALIDATION_MODE)}
    lists = {name for name, each in properties.items() if each.get("type") == "array"}
    if lists and FORM in content:
        separated = {"style": "form", "explode": False}
        content[FORM]["encoding"] = dict.fromkeys(sorted(lists), separated)
    return {"required": bool(required) or JSON not in content, "content": content}
