"""POST /oauth/token, /oauth/par, /oauth/authorize_device, /oauth/revoke, GET /oauth/token/info."""

from functools import partial
from http import HTTPStatus

from flask import request
from flask.typing import ResponseReturnValue

from domain.core.errors import NotFoundError
from domain.oauth.endpoints import token_info
from domain.oauth.presented_tokens.bearer import (
    BearerRefusedError,
    Refusal,
    get_bearer,
)
from domain.oauth.server import AuthorizationServer
from web.access.bearer_token import OAUTH_LOCATIONS, check_key, presented_token
from web.access.decorators import checks_its_client, open_to_anyone
from web.access.rate_limits import by_address
from web.api.description.described import OAUTH, Caller, Description
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
from web.http.cors import LIMIT_HEADERS, CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.json_responses import json_response
from web.metrics import count_token
from web.oauth import oauth_context, refuse_other_encodings, request_in_form, send
from web.services import services, settings

token = MachineBlueprint("token", __name__, url_prefix="/oauth", errors=ErrorFormat.OAUTH)
#: CORS policy for single-page applications, which redeem, refresh and revoke (RFC 7009 section
#: 2.3).
_FROM_SCRIPTS = CorsPolicy(methods=("POST",), exposed=LIMIT_HEADERS)
#: Maximum size of a pushed request in bytes, which is far more than a URL can carry.
_LONGEST_PUSH = 32_767
#: Error statuses of client requests.
_OF_CLIENTS = (400, 401, 408, 413, 429)
_for_clients = partial(Description, tag=OAUTH, caller=Caller.CLIENT, errors=_OF_CLIENTS)


@token.post("/token")
@_for_clients(name="oauth.token", body=TokenRequest, returns=TokenResponse)
@checks_its_client.but(cross_origin=_FROM_SCRIPTS)
@by_address
def issue() -> ResponseReturnValue:
    """Issue tokens for a grant (RFC 6749 section 3.2)."""
    asked = request_in_form()
    oauth_response = AuthorizationServer(oauth_context()).create_token_response(asked)
    body = oauth_response.body if isinstance(oauth_response.body, dict) else {}
    count_token(asked.value("grant_type") or "", body.get("error", "issued"))
    return send(oauth_response)


@token.post("/par")
@_for_clients(
    name="oauth.push", body=PushedRequest, returns=PushedResponse, status=HTTPStatus.CREATED
)
@checks_its_client
@by_address
def push() -> ResponseReturnValue:
    """Store a pushed authorization request (RFC 9126 section 2)."""
    request.max_content_length = _LONGEST_PUSH
    if request.mimetype == "application/x-www-form-urlencoded":
        refuse_other_encodings(request.get_data())
    server = AuthorizationServer(oauth_context())
    return send(server.create_endpoint_response("pushed_authorization_request", request_in_form()))


@token.post("/authorize_device")
@_for_clients(
    name="oauth.authorize_device",
    body=DeviceAuthorizationRequest,
    returns=DeviceAuthorizationResponse,
    errors=(*_OF_CLIENTS, HTTPStatus.NOT_FOUND),
)
@checks_its_client
@by_address
def authorize_device() -> ResponseReturnValue:
    """Issue a device code and a user code (RFC 8628 section 3.1)."""
    if not settings().oauth2_device_grant_flow:
        raise NotFoundError("The device flow is turned off on this instance.")
    server = AuthorizationServer(oauth_context())
    return send(server.create_endpoint_response("device_authorization", request_in_form()))


@token.post("/revoke")
@_for_clients(
    name="oauth.revoke",
    body=TokenQuestion,
    returns=RevocationResponse,
    errors=(*_OF_CLIENTS, HTTPStatus.FORBIDDEN),
)
@checks_its_client.but(cross_origin=_FROM_SCRIPTS)
@by_address
def revoke() -> ResponseReturnValue:
    """Revoke a pair of tokens (RFC 7009)."""
    server = AuthorizationServer(oauth_context())
    oauth_response = server.create_endpoint_response("revocation", request_in_form())
    return send(oauth_response)


@token.get("/token/info")
@Description(
    name="oauth.token_info",
    tag=OAUTH,
    caller=Caller.OAUTH_TOKEN,
    returns=TokenInfo,
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED),
)
@open_to_anyone
def info() -> ResponseReturnValue:
    """Return the scopes and the lifetime of an OAuth or access token."""
    presented = presented_token(*OAUTH_LOCATIONS)
    if presented is None:
        raise BearerRefusedError(Refusal.MISSING)
    own = services()
    moment = own.clock()
    found = get_bearer(presented, connection=own.connections, keyring=own.keyring, now=moment)
    check_key(found, presented, now=moment)
    response = json_response(token_info(found, now=moment))
    response.headers["Cache-Control"] = "no-store"
    return response
