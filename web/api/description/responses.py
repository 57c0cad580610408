"""Responses: the answer of a view, its errors, and the headers that they share."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from domain.types.base import GitLabQuery
from web.api.description.described import JSON, TEXT, Answer
from web.api.description.views import DescribedView, is_linked, is_numbered
from web.api.list_headers import IGNORED_PARAMETERS
from web.api.schemas.errors import (
    Conflict,
    EventRefusal,
    Message,
    OAuthError,
    ParameterError,
    Refusal,
    Taken,
    TokenRefusal,
)
from web.api.schemas.registry import RegistryErrors
from web.http.endpoints import ErrorFormat

#: Returns the reference to the schema of a response.
Referred = Callable[[type[BaseModel]], dict[str, Any]]

_Schemas = tuple[type[BaseModel], ...]
_Special = Mapping[int, _Schemas]
_WHOLE = {"type": "integer", "minimum": 0}
_RATES = ("RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset")


def _header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": schema or {"type": "string"}}


HEADERS: Mapping[str, dict[str, Any]] = {
    "RateLimit-Limit": _header("Requests allowed in the window.", **_WHOLE),
    "RateLimit-Observed": _header("Requests in this window, including rejected ones.", **_WHOLE),
    "RateLimit-Remaining": _header("Requests left in this window.", **_WHOLE),
    "RateLimit-Reset": _header("End of the window, in seconds since 1970.", **_WHOLE),
    "Retry-After": _header("Seconds to wait.", **_WHOLE),
    "ETag": _header(
        "For `If-None-Match`: if nothing has changed, the response is 304 without a body."
    ),
    "Link": _header('The pages around this one (RFC 8288), such as `rel="next"`.'),
    "X-Total": _header("The number of items.", **_WHOLE),
    "X-Total-Pages": _header("The number of pages.", **_WHOLE),
    "X-Page": _header("The number of this page.", **_WHOLE),
    "X-Per-Page": _header("Items of a page.", **_WHOLE),
    "X-Next-Page": _header("The number of the next page, or empty."),
    "X-Prev-Page": _header("The number of the page before, or empty."),
    IGNORED_PARAMETERS: _header(
        "The parameters of the request that this list does not know and has ignored, "
        "percent-encoded, separated by commas."
    ),
    "WWW-Authenticate": _header(
        "How to authenticate (RFC 6750, RFC 7617), and why this was refused."
    ),
    "Idempotency-Replayed": _header(
        "true for the stored response to an earlier request with this key.", const="true"
    ),
    "Location": _header("The URL to continue at."),
}
_NUMBERED = ("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page")
_OF_NUMBERED = (*_NUMBERED, "X-Prev-Page")

_MEANINGS = {
    400: "The request is malformed, or a parameter is wrong.",
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The scopes of the token or the role of its user are not sufficient.",
    404: "The resource does not exist, or the caller has no access to it.",
    405: "Not allowed with this kind of token.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with existing data.",
    410: "A release has removed the operation; the message names what to use instead.",
    413: "The body is too large.",
    415: "The body has an unsupported media type.",
    422: "No alert can be read from the body.",
    429: "Too many requests.",
    503: "Temporarily unavailable: try again later. Nothing was changed.",
}
_NAMES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "Unprocessable",
    429: "TooManyRequests",
    503: "Unavailable",
}
_BEFORE = {
    ErrorFormat.API: "",
    ErrorFormat.OAUTH: "OAuth",
    ErrorFormat.MESSAGE: "Receiver",
    ErrorFormat.REGISTRY: "Registry",
    ErrorFormat.TEXT: "Plain",
    ErrorFormat.EVENTS: "Event",
}
#: The schemas of errors in a format, where statuses differ.
_API: _Special = {
    400: (ParameterError, Taken, Message, TokenRefusal),
    401: (Message, TokenRefusal),
    403: (Message, TokenRefusal),
    409: (Conflict,),
}
_RECEIVER: _Special = {422: (Refusal,)}
_EXTRA = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}

#: Every schema of an error.
ERRORS: _Schemas = (
    *(Message, Conflict, Taken, ParameterError, TokenRefusal),
    *(OAuthError, Refusal, RegistryErrors, EventRefusal),
)


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def responses_of(view: DescribedView, referred: Referred) -> dict[str, Any]:
    """Return the responses of a view by status."""
    found: dict[str, Any] = {str(int(view.status)): _success(view, referred)}
    if view.is_conditional:
        found["304"] = {"$ref": "#/components/responses/NotModified"}
    for status, answer in view.others.items():
        found[str(int(status))] = _other(answer, referred)
    for status in view.errors:
        found[str(int(status))] = {"$ref": f"#/components/responses/{_name(status, view)}"}
    return dict(sorted(found.items()))


def _name(status: int, view: DescribedView) -> str:
    return f"{_BEFORE[view.error_format]}{_NAMES[status]}"


def _success(view: DescribedView, referred: Referred) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(view.status).phrase}
    headers = _headers_of(view)
    if headers:
        found["headers"] = headers
    if view.content_type is not None:
        found["content"] = {view.content_type: {"schema": _schema(view, referred)}}
    return found


def _schema(view: DescribedView, referred: Referred) -> dict[str, Any]:
    if not view.returns:  # a file
        return {} if view.content_type == JSON else {"type": "string"}
    schema = _any_of(view.returns, referred)
    return schema if view.paging is None else {"type": "array", "items": schema}


def _other(answer: Answer, referred: Referred) -> dict[str, Any]:
    found: dict[str, Any] = {"description": answer.text}
    if answer.headers:
        found["headers"] = _headers(*answer.headers)
    if answer.content_type is not None:
        schema = referred(answer.returns) if answer.returns else {"type": "string"}
        found["content"] = {answer.content_type: {"schema": schema}}
    return found


def _headers_of(view: DescribedView) -> dict[str, Any]:
    names: tuple[str, ...] = ("ETag",) if view.is_conditional else ()
    names += ("Idempotency-Replayed",) if view.is_repeatable else ()
    if view.query is not None and issubclass(view.query, GitLabQuery):
        names += (IGNORED_PARAMETERS,)
    if is_numbered(view.paging):
        names += _OF_NUMBERED
    elif is_linked(view.paging):
        names += ("Link",)
    return _headers(*names, *(_RATES if HTTPStatus.TOO_MANY_REQUESTS in view.errors else ()))


def shared_responses(views: Sequence[DescribedView], referred: Referred) -> dict[str, Any]:
    """Return the responses that views refer to."""
    used = {_name(status, view) for view in views for status in view.errors}
    formats: Mapping[ErrorFormat, tuple[_Special, _Schemas]] = {
        ErrorFormat.API: (_API, (Message,)),
        ErrorFormat.OAUTH: ({}, (OAuthError,)),
        ErrorFormat.MESSAGE: (_RECEIVER, (Message,)),
        ErrorFormat.REGISTRY: ({}, (RegistryErrors,)),
        ErrorFormat.TEXT: ({}, ()),
        ErrorFormat.EVENTS: ({}, (EventRefusal,)),
    }
    not_modified = {
        "description": "Not changed since the response with this ETag.",
        "headers": _headers("ETag"),
    }
    return {"NotModified": not_modified} | {
        f"{_BEFORE[each]}{name}": _error(status, special.get(status, usual), referred)
        for each, (special, usual) in formats.items()
        for status, name in _NAMES.items()
        if f"{_BEFORE[each]}{name}" in used
    }


def _error(status: int, schemas: _Schemas, referred: Referred) -> dict[str, Any]:
    return {
        "description": _MEANINGS[status],
        "headers": _headers(*_EXTRA.get(status, ()), *_RATES),
        "content": {JSON: {"schema": _any_of(schemas, referred)}} if schemas else _SENTENCE,
    }


#: Of errors that are no JSON.
_SENTENCE = {TEXT: {"schema": {"type": "string"}}}


def _any_of(schemas: _Schemas, referred: Referred) -> dict[str, Any]:
    references = [referred(each) for each in schemas]
    return references[0] if len(references) == 1 else {"anyOf": references}
