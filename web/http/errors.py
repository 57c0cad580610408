"""Renders all errors as responses.

The view's blueprint and decorator determine the format (`web/http/endpoints.py`), and
`ERROR_STATUSES` determines the status.
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

from domain.alerts.parsing.incoming_alert import (
    InvalidEventError,
    MissingAttributesError,
    NoValidItemError,
    UnreadableBodyError,
)
from domain.alerts.receiving.receivers import (
    BodyTooLargeError,
    DisabledReceiverError,
    NotJsonError,
    RateLimitExceededError,
    RetryableRateLimitError,
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
    GitFailedError,
    GitUnavailableError,
    UnsupportedGitEncodingError,
)
from domain.oauth.personal_tokens.tokens import NotPersonalTokenError
from domain.oauth.token_authentication.bearer import (
    InsufficientScopeError,
    InvalidTokenError,
    TokenRejectionReason,
)
from domain.projects.paths import MovedError
from domain.registry.access import InvalidRegistryCredentialsError
from domain.registry.client import RegistryRequestError, RegistryUnavailableError
from domain.registry.notifications import MissingNotificationSecretError
from web.http.endpoints import ErrorFormat, get_error_format
from web.http.error_formats import (
    add_explanation,
    find_error_advice,
    render_error_page,
    render_json_error,
    render_pagerduty_error,
    render_plain_text_error,
    render_registry_error,
)
from web.http.error_texts import EXPIRED_FORM_TEXTS, INVALID_QUERY_TEXTS
from web.http.public_urls import add_base_path
from web.http.transactions import roll_back_session
from web.http.url_converters import (
    decode_reference,
    find_parent_page_path,
    is_delivery_to_wrong_receiver_url,
    is_receiver_read_request,
    list_existing_methods,
)
from web.services import get_settings

_log = logging.getLogger("gatebell.error")
#: Value of Retry-After in seconds while the database is unavailable.
_DATABASE_RETRY_SECONDS = 2
_READ_METHODS = frozenset({"GET", "HEAD"})
#: Message that clients written for GitLab recognize.
_MOVED_PROJECT_MESSAGE = "Non GET methods are not allowed for moved projects"

#: HTTP statuses of errors. The first matching class is used, so subclasses come first.
ERROR_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (BodyTooLargeError, 413),
    (WrongKeyError, 401),
    (InvalidRegistryCredentialsError, 401),
    (MissingNotificationSecretError, 401),
    (RegistryUnavailableError, 503),
    (RegistryRequestError, 502),
    (DisabledReceiverError, 403),
    (NotJsonError, 415),
    (UnreadableBodyError, 400),
    (InvalidEventError, 400),
    (MissingAttributesError, 422),
    (NoValidItemError, 422),
    (RetryableRateLimitError, 503),
    (RateLimitExceededError, 429),
    (TooManyAttemptsError, 429),
    (CredentialsNeededError, 401),
    (GitBodyTooLargeError, 413),
    (UnsupportedGitEncodingError, 415),
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
    (NotPersonalTokenError, 405),
    (DomainError, 400),
    (InvalidTokenError, 401),
    (InsufficientScopeError, 403),
)

_FIXED_HEADERS: Mapping[type[Exception], Mapping[str, str]] = {
    InvalidRegistryCredentialsError: {
        "WWW-Authenticate": 'Basic realm="Gatebell", charset="UTF-8"'
    },
    MissingNotificationSecretError: {"WWW-Authenticate": 'Bearer realm="Gatebell"'},
    WrongKeyError: {"WWW-Authenticate": 'Bearer realm="Gatebell", Basic realm="Gatebell"'},
    # The rest of the body is unread, so the connection has to be closed.
    BodyTooLargeError: {"Connection": "close"},
    GitBodyTooLargeError: {"Connection": "close"},
    # RFC 9110 section 12.5.3 recommends this header with status 415.
    UnsupportedGitEncodingError: {"Accept-Encoding": "gzip", "Connection": "close"},
    CredentialsNeededError: {
        "WWW-Authenticate": 'Basic realm="Gatebell", charset="UTF-8"',
        "Cache-Control": "no-store",
    },
    GitUnavailableError: {"Retry-After": "60"},
    GitFailedError: {"Retry-After": "10"},
    # Allow is empty because no method is allowed for such a token (RFC 9110 section 15.5.6).
    NotPersonalTokenError: {"Allow": ""},
}

_NO_RECEIVER_MESSAGE = (
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


def get_error_status(error: Exception) -> int:
    """Return the HTTP status of an error, or 500 if the error is not listed."""
    return next((status for kind, status in ERROR_STATUSES if isinstance(error, kind)), 500)


def register_error_handlers(app: Flask) -> None:
    """Register the error handlers of the application."""
    for kind in (DomainError, InvalidTokenError, InsufficientScopeError):
        app.register_error_handler(kind, _handle_known_error)
    app.register_error_handler(MovedError, _handle_moved_error)
    app.register_error_handler(HTTPException, _handle_http_exception)
    app.register_error_handler(SQLAlchemyError, _handle_database_error)
    app.register_error_handler(OAuth2Error, _handle_protocol_error)
    app.register_error_handler(ParseException, _handle_malformed_request)
    app.register_error_handler(InternalServerError, _handle_unexpected_error)


def _handle_known_error(error: Exception) -> Response:
    roll_back_session()
    headers = _build_error_headers(error)
    if isinstance(error, InvalidTokenError | InsufficientScopeError):
        return _render_bearer_error(error, headers)
    if isinstance(error, NotFoundError) and is_receiver_read_request():
        # An HTML page would repeat the URL in its links, and the URL may contain a key.
        message = _format_message(405, "Send alerts with POST.")
        return render_json_error({"message": message}, 405, {"Allow": "POST"})
    if get_error_format() is ErrorFormat.API and (body := _build_parameter_body(error)):
        return render_json_error({**body, **_collect_details(error)}, 400, headers)
    if isinstance(error, QueryError) and get_error_format() is ErrorFormat.PAGE:
        return render_error_page(400, str(error), headers, words=INVALID_QUERY_TEXTS)
    # Docker's registry does not use 422.
    is_registry = _is_parameter_error(error) and get_error_format() is ErrorFormat.REGISTRY
    status = 400 if is_registry else get_error_status(error)
    return _render_error(status, str(error), headers, extra=_collect_details(error))


def _is_parameter_error(error: Exception) -> bool:
    return (
        isinstance(error, QueryError) or get_error_status(error) == HTTPStatus.UNPROCESSABLE_ENTITY
    )


def _build_parameter_body(error: Exception) -> dict[str, Any]:
    """Return the body of the API's parameter error, or an empty body for other errors."""
    if isinstance(error, TakenError):
        # Clients written for GitLab look for this text. The actual message is in `errors`.
        return {"message": {error.field: ["has already been taken"]}}
    return {"error": str(error)} if _is_parameter_error(error) else {}


def _handle_moved_error(error: MovedError) -> Response:
    roll_back_session()
    return _find_moved_response(error) or _handle_known_error(error)


def _find_moved_response(error: MovedError) -> Response | None:
    """Return the response for a previous path in the URL, or None if there is no such path.

    Web pages redirect to the current path. A browser sends a form to the current path again if the
    form was open during a transfer (RFC 9110 section 15.4.8). Browsers do not cache the redirects,
    because the previous path may be reused.
    """
    name = next(
        (key for key, value in (request.view_args or {}).items() if _is_former_path(value, error)),
        None,
    )
    if name is None:
        return None
    if get_error_format() is ErrorFormat.PAGE:
        status = 302 if request.method in _READ_METHODS else 307
        return make_response(redirect(_build_moved_url(name, error.namespace.path), status))
    if get_error_format() is not ErrorFormat.API:
        return None
    if request.method not in _READ_METHODS:
        return render_json_error(
            {"message": f"405 {_MOVED_PROJECT_MESSAGE}"}, 405, {"Allow": "GET, HEAD"}
        )
    body = {"message": f"302 Found: {error}"}
    return render_json_error(
        body, 302, {"Location": _build_moved_url(name, str(error.namespace.id))}
    )


def _is_former_path(value: object, error: MovedError) -> bool:
    return isinstance(value, str) and decode_reference(value) == error.former


def _build_moved_url(name: str, reference: str) -> str:
    url = url_for(str(request.endpoint), **{**(request.view_args or {}), name: reference})
    query = request.query_string.decode("latin-1")
    return f"{url}?{query}" if query else url


def _build_error_headers(error: Exception) -> dict[str, str]:
    if isinstance(error, TooManyAttemptsError | OverloadedError | RegistryUnavailableError):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, InvalidTokenError | InsufficientScopeError):
        return {"WWW-Authenticate": _build_challenge(error)}
    return dict(_FIXED_HEADERS.get(type(error), {}))


def _build_challenge(error: InvalidTokenError | InsufficientScopeError) -> str:
    """Return the challenge of RFC 6750 section 3, without an error if there was no token."""
    realm = 'Bearer realm="Gatebell"'
    if (
        get_error_format() is ErrorFormat.API
    ):  # URL of the metadata for obtaining a token (RFC 9728 section 5.1)
        description = f"{get_settings().base_url}/.well-known/oauth-protected-resource/api/v4"
        realm = f'{realm}, resource_metadata="{description}"'
    if isinstance(error, InsufficientScopeError):
        code, more = "insufficient_scope", f', scope="{" ".join(error.accepted)}"'
    elif error.refusal is TokenRejectionReason.MISSING:
        return realm
    else:
        code, more = "invalid_token", ""
    return f'{realm}, error="{code}", error_description="{error}"{more}'


def _collect_details(error: Exception) -> dict[str, Any]:
    """Return additional fields for the body of an error, such as `errors` or `missing`."""
    if isinstance(error, InvalidParametersError | InvalidQueryError):
        return {"errors": [{"field": name, "message": why} for name, why in error.problems]}
    if isinstance(error, InvalidError) and error.field and _is_api_parameter_error(error):
        return {"errors": [{"field": error.field, "message": str(error)}]}
    if isinstance(error, MissingAttributesError):
        return {"missing": list(error.names)}
    return _collect_body_details(error)


def _collect_body_details(error: Exception) -> dict[str, Any]:
    if isinstance(error, InvalidEventError):
        return {"errors": list(error.problems)}
    if isinstance(error, NoValidItemError):
        return {
            "errors": [
                {"item": refused.item_index, "reason": refused.reason} for refused in error.refused
            ]
        }
    return {}


def _is_api_parameter_error(error: Exception) -> bool:
    is_change = request.method not in _READ_METHODS
    return get_error_format() is ErrorFormat.API and (is_change or isinstance(error, QueryError))


def build_error_response(error: DomainError) -> Response:
    """Return the response for an error.

    A view that must commit the transaction returns this response instead of raising the error.
    """
    return _render_error(
        get_error_status(error),
        str(error),
        _build_error_headers(error),
        extra=_collect_details(error),
    )


def build_bearer_error_response(error: InvalidTokenError) -> Response:
    """Return the response for a rejected token.

    A view that must commit the transaction returns this response instead of raising the error.
    """
    return _render_bearer_error(error, _build_error_headers(error))


def _render_bearer_error(
    error: InvalidTokenError | InsufficientScopeError, headers: dict[str, str]
) -> Response:
    """Return the response for a rejected token (RFC 6750 section 3.1) in the client's format."""
    if isinstance(error, InsufficientScopeError):
        refusal = {"error": "insufficient_scope", "error_description": str(error)}
        return render_json_error(
            _add_oauth_explanation({**refusal, "scope": " ".join(error.accepted)}), 403, headers
        )
    is_untold = error.refusal in {TokenRejectionReason.MISSING, TokenRejectionReason.UNKNOWN}
    if is_untold and get_error_format() is ErrorFormat.API:
        return render_json_error({"message": "401 Unauthorized"}, 401, headers)
    body = _add_oauth_explanation({"error": "invalid_token", "error_description": str(error)})
    return render_json_error(body, 401, {**headers, "Cache-Control": "no-store"})


def _handle_protocol_error(error: OAuth2Error) -> Response:
    roll_back_session()
    challenge = {name: text for name, text in error.get_headers() if name == "WWW-Authenticate"}
    headers = {**challenge, "Cache-Control": "no-store", "Pragma": "no-cache"}
    return render_json_error(
        _add_oauth_explanation(dict(error.get_body())), error.status_code, headers
    )


def _handle_malformed_request(error: ParseException) -> Response:
    """Handle a body that violates HTTP, which the web server detects only while reading it."""
    del error
    roll_back_session()
    return _render_error(400, "The request is not valid HTTP.", {"Connection": "close"})


def _handle_http_exception(error: HTTPException) -> Response:
    roll_back_session()
    error = _adjust_error_to_url(error)
    status = error.code or 500
    if status == HTTPStatus.SERVICE_UNAVAILABLE:  # deadline exceeded; the log shows where
        _log.error("Request timed out.", exc_info=error, extra={"event": "request.timed_out"})
    if error.response is not None:
        return make_response(error.response)
    kept = {k: value for k, value in error.get_headers() if k in {"Allow", "Retry-After"}}
    if status in {408, 413}:  # the rest of the body is not read
        kept["Connection"] = "close"
    is_page = get_error_format() is ErrorFormat.PAGE
    # A user reopened the URL of a rejected form, for example from the address bar.
    if is_page and status == HTTPStatus.METHOD_NOT_ALLOWED and (above := find_parent_page_path()):
        return make_response(redirect(add_base_path(above), HTTPStatus.SEE_OTHER))
    if is_page and isinstance(error, CSRFError):
        return render_error_page(status, None, kept, words=EXPIRED_FORM_TEXTS)
    text = error.description if status == HTTPStatus.BAD_REQUEST and is_page else None
    return _render_error(status, text, kept)


def _adjust_error_to_url(error: HTTPException) -> HTTPException:
    """Return the error that applies to this URL.

    Werkzeug's error may be wrong, because Werkzeug also matches rules that do not apply to the URL.
    """
    if not isinstance(error, MethodNotAllowed | NotFound):
        return error
    if is_delivery_to_wrong_receiver_url():
        body = {"message": _format_message(404, _NO_RECEIVER_MESSAGE)}
        return NotFound(response=render_json_error(body, 404, {}))
    if isinstance(error, NotFound):
        return error
    methods = list_existing_methods(error.valid_methods or ())
    return MethodNotAllowed(valid_methods=methods) if methods else NotFound()


def _handle_database_error(error: SQLAlchemyError) -> Response:
    """Handle an unavailable, busy or full database.

    The request has stored nothing, and a retry may succeed.
    """
    roll_back_session()
    g.asks_no_database = True
    if isinstance(error, DataError):
        return _render_error(
            400, "A value contains a character that cannot be stored, such as NUL.", {}
        )
    if not isinstance(error, DBAPIError | PoolTimeoutError) or isinstance(error, IntegrityError):
        return _handle_unexpected_error(error)
    _log.error(
        "Request failed because of a database error.",
        extra={
            "event": "request.database_error",
            "kind": type(error).__name__,
            "reason": _get_driver_message(error),
        },
    )
    return _render_error(503, None, {"Retry-After": str(_DATABASE_RETRY_SECONDS)})


def _get_driver_message(error: SQLAlchemyError) -> str:
    """Return the first line of the driver's message, without the statement and its values."""
    original = getattr(error, "orig", None) or error
    return str(original).partition("\n")[0][:200]


def _handle_unexpected_error(error: Exception) -> Response:
    roll_back_session()
    original = getattr(error, "original_exception", None) or error
    if isinstance(original, SQLAlchemyError) and original is not error:
        # The commit failed, or the error page for another error could not be rendered.
        return _handle_database_error(original)
    g.asks_no_database = True
    _log.error(
        "Request failed because of an unexpected error.",
        exc_info=original,
        extra={"event": "request.failed"},
    )
    return _render_error(500, None, {})


def _render_error(
    status: int,
    sentence: str | None,
    headers: Mapping[str, str],
    *,
    extra: Mapping[str, Any] | None = None,
) -> Response:
    said = get_error_format()
    if said is ErrorFormat.PAGE:
        return render_error_page(status, sentence, headers)
    if said is ErrorFormat.EVENTS:
        return render_pagerduty_error(status, sentence, headers, extra or {})
    if (render := _RENDERERS.get(said)) is not None:
        return render(status, sentence, headers)
    body = {"message": _format_message(status, sentence), **(extra or {})}
    return render_json_error(body, status, headers)


def _render_oauth_error(status: int, sentence: str | None, headers: Mapping[str, str]) -> Response:
    code = _OAUTH_CODES.get(status, "server_error")
    text = sentence or find_error_advice(status) or HTTP_STATUS_CODES.get(status, "Error")
    body = add_explanation({"error": code, "error_description": text})
    return render_json_error(body, status, {**headers, "Cache-Control": "no-store"})


#: Render functions for the formats in which an error consists of a status and a message.
_RENDERERS: Mapping[ErrorFormat, Callable[[int, str | None, Mapping[str, str]], Response]] = {
    ErrorFormat.OAUTH: _render_oauth_error,
    ErrorFormat.TEXT: render_plain_text_error,
    ErrorFormat.REGISTRY: render_registry_error,
}


def _add_oauth_explanation(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an OAuth error with an explanation, or an API error unchanged."""
    return add_explanation(body) if get_error_format() is ErrorFormat.OAUTH else body


def _format_message(status: int, sentence: str | None) -> str:
    known = f"{status} {HTTP_STATUS_CODES.get(status, 'Error')}"
    return f"{known}: {sentence}" if sentence else known
