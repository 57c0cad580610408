"""Renders all errors as responses.

The view's blueprint and decorator determine the format (`web/http/endpoints.py`), and `STATUSES`
the status.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Error
from flask import Flask, Response, g, make_response, redirect, request, url_for
from flask_wtf.csrf import CSRFError
from gunicorn.http.errors import ParseException
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed, NotFound
from werkzeug.http import HTTP_STATUS_CODES

from domain.alerts.reading.incoming import (
    InvalidEvent,
    MissingAttributes,
    NoValidItem,
    UnreadableBody,
)
from domain.alerts.receiving.receivers import (
    BodyTooLargeError,
    BusyError,
    DisabledReceiverError,
    NotJsonError,
    OverLimitError,
    WrongKeyError,
)
from domain.core.errors import (
    ConflictError,
    DomainError,
    ForbiddenError,
    GoneError,
    InvalidError,
    InvalidParametersError,
    InvalidQueryError,
    NotFoundError,
    OverloadedError,
    QueryError,
    TakenError,
    TooManyAttemptsError,
)
from domain.git.errors import (
    CredentialsNeededError,
    DiskNearlyFullError,
    GitBodyTooLargeError,
    GitEncodingError,
    GitFailedError,
    GitUnavailableError,
)
from domain.oauth.personal_tokens.tokens import NotPersonalError
from domain.oauth.presented_tokens.bearer import BearerRefusedError, InsufficientScopeError, Refusal
from domain.projects.paths import MovedError
from domain.registry.access import RegistryCredentialsError
from domain.registry.client import RegistryRefusedError, RegistryUnavailableError
from domain.registry.notifications import NotificationSecretError
from web.http.endpoints import ErrorFormat, error_format
from web.http.error_formats import (
    EXPIRED_FORM,
    UNKNOWN_QUERY,
    advice,
    as_page,
    as_sentence,
    explained,
    for_event,
    for_registry,
    written_json,
)
from web.http.routes import (
    decoded_reference,
    existing_methods,
    is_delivery_to_part_of_a_receiver,
    is_read_of_receiver,
)
from web.http.transactions import roll_back
from web.services import settings

_log = logging.getLogger("gatebell.error")
#: Value of Retry-After in seconds while the database is unavailable.
_DATABASE_RETRY_AFTER = 2
_READING = frozenset({"GET", "HEAD"})
#: Message that clients written for GitLab know.
_NOT_MOVED = "Non GET methods are not allowed for moved projects"

#: Statuses of errors. The first matching class decides, so subclasses come first.
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (BodyTooLargeError, 413),
    (WrongKeyError, 401),
    (RegistryCredentialsError, 401),
    (NotificationSecretError, 401),
    (RegistryUnavailableError, 503),
    (RegistryRefusedError, 502),
    (DisabledReceiverError, 403),
    (NotJsonError, 415),
    (UnreadableBody, 400),
    (InvalidEvent, 400),
    (MissingAttributes, 422),
    (NoValidItem, 422),
    (BusyError, 503),
    (OverLimitError, 429),
    (TooManyAttemptsError, 429),
    (CredentialsNeededError, 401),
    (GitBodyTooLargeError, 413),
    (GitEncodingError, 415),
    (DiskNearlyFullError, 507),
    (GitFailedError, 503),
    (GitUnavailableError, 503),
    (OverloadedError, 503),
    (ConflictError, 409),
    (QueryError, 400),
    (InvalidError, 422),
    (ForbiddenError, 403),
    (NotFoundError, 404),
    (GoneError, 410),
    (NotPersonalError, 405),
    (DomainError, 400),
    (BearerRefusedError, 401),
    (InsufficientScopeError, 403),
)

_FIXED_HEADERS: Mapping[type[Exception], Mapping[str, str]] = {
    RegistryCredentialsError: {"WWW-Authenticate": 'Basic realm="Gatebell", charset="UTF-8"'},
    NotificationSecretError: {"WWW-Authenticate": 'Bearer realm="Gatebell"'},
    WrongKeyError: {"WWW-Authenticate": 'Bearer realm="Gatebell", Basic realm="Gatebell"'},
    # The rest of the body is unread, so the connection has to be closed.
    BodyTooLargeError: {"Connection": "close"},
    GitBodyTooLargeError: {"Connection": "close"},
    # RFC 9110 section 12.5.3 recommends this header with status 415.
    GitEncodingError: {"Accept-Encoding": "gzip", "Connection": "close"},
    CredentialsNeededError: {
        "WWW-Authenticate": 'Basic realm="Gatebell", charset="UTF-8"',
        "Cache-Control": "no-store",
    },
    GitUnavailableError: {"Retry-After": "60"},
    GitFailedError: {"Retry-After": "10"},
    # Allow is empty because such a token may use no method (RFC 9110 section 15.5.6).
    NotPersonalError: {"Allow": ""},
}

_NO_RECEIVER = (
    "This is not the complete URL of an integration. Copy the whole URL, including .json, from the "
    "page View credentials of the integration."
)

_OAUTH_CODES = {
    400: "invalid_request",
    403: "access_denied",
    404: "invalid_request",
    405: "invalid_request",
    408: "invalid_request",
    413: "invalid_request",
    415: "invalid_request",
    429: "temporarily_unavailable",
    503: "temporarily_unavailable",
}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error, or 500 if the error is not listed."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def render_errors(app: Flask) -> None:
    """Register the error handlers of the application."""
    for kind in (DomainError, BearerRefusedError, InsufficientScopeError):
        app.register_error_handler(kind, _answer_known)
    app.register_error_handler(MovedError, _answer_moved)
    app.register_error_handler(HTTPException, _answer_http)
    app.register_error_handler(SQLAlchemyError, _answer_database)
    app.register_error_handler(OAuth2Error, _answer_protocol)
    app.register_error_handler(ParseException, _answer_broken)
    app.register_error_handler(InternalServerError, _answer_unknown)


def _answer_known(error: Exception) -> Response:
    roll_back()
    headers = _headers_of(error)
    if isinstance(error, BearerRefusedError | InsufficientScopeError):
        return _bearer_answer(error, headers)
    if isinstance(error, NotFoundError) and is_read_of_receiver():
        # A page would contain the URL in its links, and the URL may contain a key.
        message = _message(405, "Send alerts with POST.")
        return written_json({"message": message}, 405, {"Allow": "POST"})
    if error_format() is ErrorFormat.API and (body := _body_of_parameter(error)):
        return written_json({**body, **_details_of(error)}, 400, headers)
    if isinstance(error, QueryError) and error_format() is ErrorFormat.PAGE:
        return as_page(400, str(error), headers, words=UNKNOWN_QUERY)
    # Docker's registry does not use 422.
    is_registry = _is_of_parameter(error) and error_format() is ErrorFormat.REGISTRY
    status = 400 if is_registry else status_of(error)
    return _answer(status, str(error), headers, extra=_details_of(error))


def _is_of_parameter(error: Exception) -> bool:
    return isinstance(error, QueryError) or status_of(error) == HTTPStatus.UNPROCESSABLE_ENTITY


def _body_of_parameter(error: Exception) -> dict[str, Any]:
    """Return the body of the API's error for a parameter, or an empty one for other errors."""
    if isinstance(error, TakenError):
        # Clients written for GitLab look for this text; our own message is in `errors`.
        return {"message": {error.field: ["has already been taken"]}}
    return {"error": str(error)} if _is_of_parameter(error) else {}


def _answer_moved(error: MovedError) -> Response:
    roll_back()
    return _moved_answer(error) or _answer_known(error)


def _moved_answer(error: MovedError) -> Response | None:
    """Return the response for a request to a former path, or None if the URL has no such path.

    Pages redirect. A form that was open during a transfer is sent again (RFC 9110 section 15.4.8).
    Browsers store neither redirect, since the former path may be used again.
    """
    name = next(
        (key for key, value in (request.view_args or {}).items() if _is_asked(value, error)), None
    )
    if name is None:
        return None
    if error_format() is ErrorFormat.PAGE:
        status = 302 if request.method in _READING else 307
        return make_response(redirect(_moved_url(name, error.namespace.path), status))
    if error_format() is not ErrorFormat.API:
        return None
    if request.method not in _READING:
        return written_json({"message": f"405 {_NOT_MOVED}"}, 405, {"Allow": "GET, HEAD"})
    body = {"message": f"302 Found: {error}"}
    return written_json(body, 302, {"Location": _moved_url(name, str(error.namespace.id))})


def _is_asked(value: object, error: MovedError) -> bool:
    return isinstance(value, str) and decoded_reference(value) == error.former


def _moved_url(name: str, reference: str) -> str:
    url = url_for(str(request.endpoint), **{**(request.view_args or {}), name: reference})
    query = request.query_string.decode("latin-1")
    return f"{url}?{query}" if query else url


def _headers_of(error: Exception) -> dict[str, str]:
    if isinstance(error, TooManyAttemptsError | OverloadedError | RegistryUnavailableError):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, BearerRefusedError | InsufficientScopeError):
        return {"WWW-Authenticate": _challenge(error)}
    return dict(_FIXED_HEADERS.get(type(error), {}))


def _challenge(error: BearerRefusedError | InsufficientScopeError) -> str:
    """Return the challenge of RFC 6750 section 3, without an error if there was no token."""
    realm = 'Bearer realm="Gatebell"'
    if error_format() is ErrorFormat.API:  # where to get a token (RFC 9728 section 5.1)
        description = f"{settings().base_url}/.well-known/oauth-protected-resource/api/v4"
        realm = f'{realm}, resource_metadata="{description}"'
    if isinstance(error, InsufficientScopeError):
        code, more = "insufficient_scope", f', scope="{" ".join(error.accepted)}"'
    elif error.refusal is Refusal.MISSING:
        return realm
    else:
        code, more = "invalid_token", ""
    return f'{realm}, error="{code}", error_description="{error}"{more}'


def _details_of(error: Exception) -> dict[str, Any]:
    """Return the machine-readable details of an error."""
    if isinstance(error, InvalidParametersError | InvalidQueryError):
        return {"errors": [{"field": name, "message": why} for name, why in error.problems]}
    if isinstance(error, InvalidError) and error.field and _is_of_api_parameter(error):
        return {"errors": [{"field": error.field, "message": str(error)}]}
    if isinstance(error, MissingAttributes):
        return {"missing": list(error.names)}
    return _details_of_body(error)


def _details_of_body(error: Exception) -> dict[str, Any]:
    if isinstance(error, InvalidEvent):
        return {"errors": list(error.problems)}
    if isinstance(error, NoValidItem):
        return {
            "errors": [
                {"item": refused.item_index, "reason": refused.reason} for refused in error.refused
            ]
        }
    return {}


def _is_of_api_parameter(error: Exception) -> bool:
    is_change = request.method not in _READING
    return error_format() is ErrorFormat.API and (is_change or isinstance(error, QueryError))


def refusal(error: DomainError) -> Response:
    """Return the response for an error, for views that must return it to commit."""
    return _answer(status_of(error), str(error), _headers_of(error), extra=_details_of(error))


def bearer_refusal(error: BearerRefusedError) -> Response:
    """Return the response for a rejected token, for views that must return it to commit."""
    return _bearer_answer(error, _headers_of(error))


def _bearer_answer(
    error: BearerRefusedError | InsufficientScopeError, headers: dict[str, str]
) -> Response:
    """Render an error of RFC 6750 section 3.1 in the formats of the API's clients."""
    if isinstance(error, InsufficientScopeError):
        refusal = {"error": "insufficient_scope", "error_description": str(error)}
        return written_json(
            _explained({**refusal, "scope": " ".join(error.accepted)}), 403, headers
        )
    is_untold = error.refusal in {Refusal.MISSING, Refusal.UNKNOWN}
    if is_untold and error_format() is ErrorFormat.API:
        return written_json({"message": "401 Unauthorized"}, 401, headers)
    body = _explained({"error": "invalid_token", "error_description": str(error)})
    return written_json(body, 401, {**headers, "Cache-Control": "no-store"})


def _answer_protocol(error: OAuth2Error) -> Response:
    roll_back()
    challenge = {name: text for name, text in error.get_headers() if name == "WWW-Authenticate"}
    headers = {**challenge, "Cache-Control": "no-store", "Pragma": "no-cache"}
    return written_json(_explained(dict(error.get_body())), error.status_code, headers)


def _answer_broken(error: ParseException) -> Response:
    """Handle a body that violates HTTP, which the web server only detects while reading it."""
    del error
    roll_back()
    return _answer(400, "The request is not valid HTTP.", {"Connection": "close"})


def _answer_http(error: HTTPException) -> Response:
    roll_back()
    error = _corrected(error)
    status = error.code or 500
    if status == HTTPStatus.SERVICE_UNAVAILABLE:  # deadline exceeded; the log shows where
        _log.error("Request timed out.", exc_info=error, extra={"event": "request.timed_out"})
    if error.response is not None:
        return make_response(error.response)
    kept = {k: value for k, value in error.get_headers() if k in {"Allow", "Retry-After"}}
    if status in {408, 413}:  # the rest of the body is not read
        kept["Connection"] = "close"
    is_page = error_format() is ErrorFormat.PAGE
    if is_page and isinstance(error, CSRFError):
        return as_page(status, None, kept, words=EXPIRED_FORM)
    text = error.description if status == HTTPStatus.BAD_REQUEST and is_page else None
    return _answer(status, text, kept)


def _corrected(error: HTTPException) -> HTTPException:
    """Return the error that is correct for this URL.

    Werkzeug also matches rules that do not apply to it.
    """
    if not isinstance(error, MethodNotAllowed | NotFound):
        return error
    if is_delivery_to_part_of_a_receiver():
        body = {"message": _message(404, _NO_RECEIVER)}
        return NotFound(response=written_json(body, 404, {}))
    if isinstance(error, NotFound):
        return error
    methods = existing_methods(error.valid_methods or ())
    return MethodNotAllowed(valid_methods=methods) if methods else NotFound()


def _answer_database(error: SQLAlchemyError) -> Response:
    """Handle an unavailable, busy or full database.

    Nothing was stored, and a retry may succeed.
    """
    roll_back()
    g.asks_no_database = True
    if isinstance(error, DataError):
        return _answer(400, "A value contains a character that cannot be stored, such as NUL.", {})
    if not isinstance(error, DBAPIError | PoolTimeoutError) or isinstance(error, IntegrityError):
        return _answer_unknown(error)
    _log.error(
        "Request failed because of a database error.",
        extra={
            "event": "request.database_error",
            "kind": type(error).__name__,
            "reason": _reason(error),
        },
    )
    return _answer(503, None, {"Retry-After": str(_DATABASE_RETRY_AFTER)})


def _reason(error: SQLAlchemyError) -> str:
    """Return the first line of the driver's message, without the statement and its values."""
    original = getattr(error, "orig", None) or error
    return str(original).partition("\n")[0][:200]


def _answer_unknown(error: Exception) -> Response:
    roll_back()
    original = getattr(error, "original_exception", None) or error
    if isinstance(original, SQLAlchemyError) and original is not error:
        # The commit failed, or the page of another error could not be rendered.
        return _answer_database(original)
    g.asks_no_database = True
    _log.error(
        "Request failed because of an unexpected error.",
        exc_info=original,
        extra={"event": "request.failed"},
    )
    return _answer(500, None, {})


def _answer(
    status: int,
    sentence: str | None,
    headers: Mapping[str, str],
    *,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    said = error_format()
    if said is ErrorFormat.PAGE:
        return as_page(status, sentence, headers)
    if said is ErrorFormat.EVENTS:
        return for_event(status, sentence, headers, extra or {})
    if (render := _RENDERERS.get(said)) is not None:
        return render(status, sentence, headers)
    body = {"message": _message(status, sentence), **(extra or {})}
    return written_json(body, status, headers)


def _oauth(status: int, sentence: str | None, headers: Mapping[str, str]) -> Response:
    code = _OAUTH_CODES.get(status, "server_error")
    text = sentence or advice(status) or HTTP_STATUS_CODES.get(status, "Error")
    body = explained({"error": code, "error_description": text})
    return written_json(body, status, {**headers, "Cache-Control": "no-store"})


#: Render functions of the formats in which an error is a status and a sentence.
_RENDERERS: Mapping[ErrorFormat, Callable[[int, str | None, Mapping[str, str]], Response]] = {
    ErrorFormat.OAUTH: _oauth,
    ErrorFormat.TEXT: as_sentence,
    ErrorFormat.REGISTRY: for_registry,
}


def _explained(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an error with its explanation for OAuth, or unchanged for the API."""
    return explained(body) if error_format() is ErrorFormat.OAUTH else body


def _message(status: int, sentence: str | None) -> str:
    known = f"{status} {HTTP_STATUS_CODES.get(status, 'Error')}"
    return f"{known}: {sentence}" if sentence else known
