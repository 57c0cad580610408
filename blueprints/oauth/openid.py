"""OpenID Connect endpoints for clients: user claims, keys, introspection and avatars."""

from flask import Response, jsonify
from flask.typing import ResponseReturnValue

from domain.accounts.profiles import build_avatar_svg
from domain.oauth.openid.signing_keys import (
    KEY_NOTICE_PERIOD,
    PublishedKey,
    find_published_keys,
    get_or_create_signing_key,
    list_published_keys,
)
from domain.oauth.openid.userinfo import build_userinfo as claims_for
from domain.oauth.server import AuthorizationServer
from domain.oauth.token_authentication.bearer import Bearer
from domain.releases.schedule import CHANGES_BY_ID
from web.access.decorators import authenticates_client, oauth_token_required, open_to_anyone
from web.access.rate_limits import limit_oauth_by_address
from web.api.openapi.view_descriptions import OAUTH, OPENID, Caller, ViewDescription
from web.api.schemas.oauth import Introspection, KeySet, TokenQuestion, UserClaims
from web.extensions import db
from web.http.cors import RATE_LIMIT_HEADERS, CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.transactions import allow_writes
from web.oauth import build_flask_response, build_oauth_context, read_form_request
from web.releases.gate import apply_change
from web.services import get_current_time, get_services, get_settings


def build_key_set_response() -> Response:
    """Return the public keys (RFC 7517 section 5), cacheable for the notice period of new keys."""
    response = jsonify({"keys": [key.public_jwk for key in _find_or_create_published_keys()]})
    response.headers["Cache-Control"] = f"public, max-age={int(KEY_NOTICE_PERIOD.total_seconds())}"
    return response


def _find_or_create_published_keys() -> tuple[PublishedKey, ...]:
    moment = get_current_time()
    found = find_published_keys(connection=get_services().connections, now=moment)
    if found:
        return found
    # Clients must not cache an empty key set, so the first GET creates a key.
    allow_writes()
    session = db.session()
    get_or_create_signing_key(session=session, keyring=get_services().keyring, now=moment)
    return list_published_keys(session=session, now=moment)


openid = ApiClientBlueprint("openid", __name__, errors=ErrorFormat.OAUTH)
#: Lifetime of cached avatars in seconds.
_AVATAR_CACHE_SECONDS = 86_400
#: Access decorator for the key sets. The keys are public, and scripts from any origin can verify
#: ID tokens.
_key_set_access = open_to_anyone.with_changes(errors=ErrorFormat.MESSAGE, cross_origin=CorsPolicy())


@openid.route("/oauth/userinfo", methods=["GET", "POST"])
@ViewDescription(
    name="openid.userinfo",
    tag=OPENID,
    caller=Caller.OAUTH_TOKEN,
    returns=UserClaims,
    errors=(400, 401, 403),
)
@oauth_token_required("openid").with_changes(
    cross_origin=CorsPolicy(methods=("GET", "POST"), exposed=RATE_LIMIT_HEADERS)
)
def userinfo(bearer: Bearer) -> Response:
    """Return the user claims that the token's scopes allow (OpenID Connect Core 5.3)."""
    claims = claims_for(
        bearer,
        issuer=get_settings().base_url,
        connection=get_services().connections,
        today=get_current_time().date(),
    )
    response = jsonify(claims)
    response.headers["Cache-Control"] = "no-store"
    return response


@openid.post("/oauth/introspect")
@ViewDescription(
    name="oauth.introspect",
    tag=OAUTH,
    caller=Caller.CLIENT,
    body=TokenQuestion,
    returns=Introspection,
    errors=(400, 401, 408, 413, 429),
)
@authenticates_client
@limit_oauth_by_address
def introspect() -> ResponseReturnValue:
    """Return the status and the metadata of a token (RFC 7662)."""
    server = AuthorizationServer(build_oauth_context())
    return build_flask_response(
        server.create_endpoint_response("introspection", read_form_request())
    )


@openid.get("/oauth/discovery/keys")
@ViewDescription(name="openid.keys", tag=OPENID, returns=KeySet)
@_key_set_access
def keys() -> Response:
    """Return the public keys that verify ID tokens (RFC 7517)."""
    return build_key_set_response()


@openid.get("/-/jwks")
@_key_set_access
def jwks() -> Response:
    """Return the public keys at an older URL, in releases that support this URL."""
    apply_change(CHANGES_BY_ID["jwks-alias"])
    return build_key_set_response()


@openid.get("/-/pictures/<string(length=1):letter>-<int(max=359):hue>.svg")
@open_to_anyone.with_changes(errors=ErrorFormat.PAGE)
def picture(letter: str, hue: int) -> Response:
    """Return the avatar that the URL describes."""
    response = Response(build_avatar_svg(letter, hue), mimetype="image/svg+xml")
    response.headers["Cache-Control"] = f"public, max-age={_AVATAR_CACHE_SECONDS}, immutable"
    response.headers["Content-Security-Policy"] = "default-src 'none'"
    return response
