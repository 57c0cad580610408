"""/oauth/register: dynamic client registration (RFC 7591) and its management (RFC 7592)."""

from functools import partial
from http import HTTPStatus
from typing import Any

from flask.typing import ResponseReturnValue

from domain.alerts.parsing.json_body import parse_body_object
from domain.core.errors import ForbiddenError, NotFoundError
from domain.oauth import registration as domain
from domain.oauth.token_authentication.bearer import InvalidTokenError, TokenRejectionReason
from web.access.bearer_token import TokenLocation, find_presented_token
from web.access.decorators import authenticates_client, find_bearer
from web.access.rate_limits import limit_oauth_by_address, limit_registrations_by_address
from web.api.openapi.view_descriptions import JSON, REGISTRATION, Caller, ViewDescription
from web.api.schemas.oauth import ClientChange, ClientRegistration, RegisteredClient
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.request_bodies import check_media_type, read_limited_body
from web.oauth import build_flask_response, build_oauth_context
from web.services import get_settings

registration = ApiClientBlueprint(
    "registration", __name__, url_prefix="/oauth/register", errors=ErrorFormat.OAUTH
)
_MAX_BODY_BYTES = 65_536
_MAX_NESTING_DEPTH = 20
#: Error statuses of requests. Status 404 is also returned while registration is turned off.
_CLIENT_ERROR_STATUSES = (400, 401, 404, 429)
_BODY_ERROR_STATUSES = (*_CLIENT_ERROR_STATUSES, 408, 413, 415)
_describe_client_operation = partial(
    ViewDescription,
    tag=REGISTRATION,
    caller=Caller.REGISTERED_CLIENT,
    errors=_CLIENT_ERROR_STATUSES,
)


@registration.before_request
def check_registration_enabled() -> None:
    """Reject all requests if the instance does not offer registration.

    Raise NotFoundError in this case.
    """
    if not get_settings().dynamic_client_registration:
        raise NotFoundError("Clients cannot register themselves on this instance.")


@registration.post("")
@ViewDescription(
    name="registration.create",
    tag=REGISTRATION,
    caller=Caller.REGISTRAR,
    body=ClientRegistration,
    accepts=(JSON,),
    returns=RegisteredClient,
    status=HTTPStatus.CREATED,
    errors=(*_BODY_ERROR_STATUSES, HTTPStatus.FORBIDDEN),
)
@authenticates_client
@limit_oauth_by_address
def register() -> ResponseReturnValue:
    """Register a client (RFC 7591 section 3.1)."""
    return _register_client(_find_registrar_id())


@limit_registrations_by_address
def _register_client(registrar_id: int | None) -> ResponseReturnValue:
    return build_flask_response(
        domain.register_client(_read_body(), registrar_id, context=build_oauth_context())
    )


@registration.get("/<uid>")
@_describe_client_operation(name="registration.show", returns=RegisteredClient)
@authenticates_client
@limit_oauth_by_address
def show(uid: str) -> ResponseReturnValue:
    """Return the registration of a client (RFC 7592 section 2.1)."""
    context = build_oauth_context()
    found = domain.get_registration(uid, _find_registration_token(), context=context)
    return build_flask_response(domain.show_registration(found, context=context))


@registration.put("/<uid>")
@_describe_client_operation(
    name="registration.change",
    body=ClientChange,
    accepts=(JSON,),
    returns=RegisteredClient,
    errors=_BODY_ERROR_STATUSES,
)
@authenticates_client
@limit_oauth_by_address
def change(uid: str) -> ResponseReturnValue:
    """Replace the metadata of a client (RFC 7592 section 2.2)."""
    context = build_oauth_context()
    found = domain.get_registration(uid, _find_registration_token(), context=context)
    return build_flask_response(domain.change_registration(found, _read_body(), context=context))


@registration.delete("/<uid>")
@_describe_client_operation(name="registration.remove", status=HTTPStatus.NO_CONTENT)
@authenticates_client
@limit_oauth_by_address
def remove(uid: str) -> ResponseReturnValue:
    """Delete a client (RFC 7592 section 2.3)."""
    context = build_oauth_context()
    found = domain.get_registration(uid, _find_registration_token(), context=context)
    return build_flask_response(domain.delete_registration(found, context=context))


def _find_registrar_id() -> int | None:
    """Return the ID of the user who owns the initial access token (RFC 7591, 3).

    Return None if the request has no token and registration is open. Raise InvalidTokenError if a
    token is required, and ForbiddenError for a bot's token.
    """
    bearer = find_bearer("api")
    if bearer is not None and bearer.is_bot:
        raise ForbiddenError("Bots cannot own applications. Use a personal access token.")
    if bearer is None and not get_settings().open_client_registration:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    return bearer.user_id if bearer else None


def _find_registration_token() -> str | None:
    """Return the registration access token from the request headers, or None.

    A token in any other part of the request is not accepted.
    """
    return find_presented_token(TokenLocation.HEADER)


def _read_body() -> dict[str, Any]:
    """Return the JSON object of the body.

    Raise an error if the body is too large or is not a JSON object.
    """
    body = read_limited_body(_MAX_BODY_BYTES)
    check_media_type()
    body.raise_for_error()
    return parse_body_object(body.content, nesting_limit=_MAX_NESTING_DEPTH)
