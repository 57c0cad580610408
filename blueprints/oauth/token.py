"""Endpoints for tokens, pushed authorization requests, and device authorization."""

from functools import partial
from http import HTTPStatus

from flask import request
from flask.typing import ResponseReturnValue

from domain.core.errors import NotFoundError
from domain.oauth.endpoints import build_token_info
from domain.oauth.server import AuthorizationServer
from domain.oauth.token_authentication.bearer import (
    InvalidTokenError,
    TokenRejectionReason,
    get_bearer,
)
from web.access.bearer_token import OAUTH_TOKEN_LOCATIONS, check_key_proof, find_presented_token
from web.access.decorators import authenticates_client, open_to_anyone
from web.access.rate_limits import limit_oauth_by_address
from web.api.openapi.view_descriptions import OAUTH, Caller, ViewDescription
from web.api.schemas.oauth import (
    DeviceAuthorizationRequest,
    DeviceAuthorizationResponse,
    PushedRequest,
    PushedResponse,
    RevocationResponse,
    TokenInfo,
    TokenQuestion,
    TokenRequest,
    TokenResponse,
)
from web.http.cors import RATE_LIMIT_HEADERS, CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.json_responses import build_json_response
from web.metrics import count_token_request
from web.oauth import (
    build_flask_response,
    build_oauth_context,
    check_parameters_utf8,
    read_form_request,
)
from web.services import get_services, get_settings

token = ApiClientBlueprint("token", __name__, url_prefix="/oauth", errors=ErrorFormat.OAUTH)
#: CORS policy for single-page applications, which redeem codes and refresh and revoke tokens (RFC
#: 7009 section 2.3).
_SCRIPT_CORS_POLICY = CorsPolicy(methods=("POST",), exposed=RATE_LIMIT_HEADERS)
#: Maximum size of a pushed request in bytes, which is far more than a URL can carry.
_MAX_PUSHED_REQUEST_BYTES = 32_767
#: Error statuses of client requests.
_CLIENT_ERROR_STATUSES = (400, 401, 408, 413, 429)
_describe_client_operation = partial(
    ViewDescription, tag=OAUTH, caller=Caller.CLIENT, errors=_CLIENT_ERROR_STATUSES
)


@token.post("/token")
@_describe_client_operation(name="oauth.token", body=TokenRequest, returns=TokenResponse)
@authenticates_client.with_changes(cross_origin=_SCRIPT_CORS_POLICY)
@limit_oauth_by_address
def issue() -> ResponseReturnValue:
    """Issue tokens for a grant (RFC 6749 section 3.2)."""
    asked = read_form_request()
    oauth_response = AuthorizationServer(build_oauth_context()).create_token_response(asked)
    body = oauth_response.body if isinstance(oauth_response.body, dict) else {}
    count_token_request(asked.get_parameter("grant_type") or "", body.get("error", "issued"))
    return build_flask_response(oauth_response)


@token.post("/par")
@_describe_client_operation(
    name="oauth.push", body=PushedRequest, returns=PushedResponse, status=HTTPStatus.CREATED
)
@authenticates_client
@limit_oauth_by_address
def push() -> ResponseReturnValue:
    """Store a pushed authorization request (RFC 9126 section 2)."""
    request.max_content_length = _MAX_PUSHED_REQUEST_BYTES
    if request.mimetype == "application/x-www-form-urlencoded":
        check_parameters_utf8(request.get_data())
    server = AuthorizationServer(build_oauth_context())
    return build_flask_response(
        server.create_endpoint_response("pushed_authorization_request", read_form_request())
    )


@token.post("/authorize_device")
@_describe_client_operation(
    name="oauth.authorize_device",
    body=DeviceAuthorizationRequest,
    returns=DeviceAuthorizationResponse,
    errors=(*_CLIENT_ERROR_STATUSES, HTTPStatus.NOT_FOUND),
)
@authenticates_client
@limit_oauth_by_address
def authorize_device() -> ResponseReturnValue:
    """Issue a device code and a user code (RFC 8628 section 3.1)."""
    if not get_settings().oauth2_device_grant_flow:
        raise NotFoundError("The device flow is turned off on this instance.")
    server = AuthorizationServer(build_oauth_context())
    return build_flask_response(
        server.create_endpoint_response("device_authorization", read_form_request())
    )


@token.post("/revoke")
@_describe_client_operation(
    name="oauth.revoke",
    body=TokenQuestion,
    returns=RevocationResponse,
    errors=(*_CLIENT_ERROR_STATUSES, HTTPStatus.FORBIDDEN),
)
@authenticates_client.with_changes(cross_origin=_SCRIPT_CORS_POLICY)
@limit_oauth_by_address
def revoke() -> ResponseReturnValue:
    """Revoke an access token and its refresh token (RFC 7009)."""
    server = AuthorizationServer(build_oauth_context())
    oauth_response = server.create_endpoint_response("revocation", read_form_request())
    return build_flask_response(oauth_response)


@token.get("/token/info")
@ViewDescription(
    name="oauth.token_info",
    tag=OAUTH,
    caller=Caller.OAUTH_TOKEN,
    returns=TokenInfo,
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED),
)
@open_to_anyone
def info() -> ResponseReturnValue:
    """Return the scopes and the lifetime of the token that the request presents."""
    presented = find_presented_token(*OAUTH_TOKEN_LOCATIONS)
    if presented is None:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    own = get_services()
    moment = own.clock()
    found = get_bearer(presented, connection=own.connections, keyring=own.keyring, now=moment)
    check_key_proof(found, presented, now=moment)
    response = build_json_response(build_token_info(found, now=moment))
    response.headers["Cache-Control"] = "no-store"
    return response
