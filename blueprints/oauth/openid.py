"""OpenID Connect for machines: claims of the user, keys, introspection, avatars."""

from flask import Response, jsonify
from flask.typing import ResponseReturnValue

from domain.accounts.profiles import draw_avatar
from domain.oauth.openid.keys import (
    NOTICE,
    PublishedKey,
    find_published_keys,
    get_signing_key,
    list_published_keys,
)
from domain.oauth.openid.userinfo import userinfo as claims_for
from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.server import AuthorizationServer
from domain.releases.schedule import BY_ID
from web.access.decorators import checks_its_client, oauth_bearer, open_to_anyone
from web.access.rate_limits import by_address
from web.api.description.described import OAUTH, OPENID, Caller, Description
from web.api.schemas.oauth import Introspection, KeySet, TokenQuestion, UserClaims
from web.extensions import db
from web.http.cors import LIMIT_HEADERS, CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.transactions import begin_to_write
from web.oauth import oauth_context, request_in_form, send
from web.releases.gate import apply_change
from web.services import now, services, settings


def key_set() -> Response:
    """Return the public keys (RFC 7517 section 5), cacheable for the notice period of new keys."""
    response = jsonify({"keys": [key.public_jwk for key in _published_keys()]})
    response.headers["Cache-Control"] = f"public, max-age={int(NOTICE.total_seconds())}"
    return response


def _published_keys() -> tuple[PublishedKey, ...]:
    moment = now()
    found = find_published_keys(connection=services().connections, now=moment)
    if found:
        return found
    # Clients must not cache an empty key set, so the first GET creates a key.
    begin_to_write()
    session = db.session()
    get_signing_key(session=session, keyring=services().keyring, now=moment)
    return list_published_keys(session=session, now=moment)


openid = MachineBlueprint("openid", __name__, errors=ErrorFormat.OAUTH)
#: Lifetime of cached avatars in seconds.
_A_DAY = 86_400
#: Access decorator of the key sets. Scripts of any origin verify ID tokens, and the keys are
#: public.
_of_keys = open_to_anyone.but(errors=ErrorFormat.MESSAGE, cross_origin=CorsPolicy())


@openid.route("/oauth/userinfo", methods=["GET", "POST"])
@Description(
    name="openid.userinfo",
    tag=OPENID,
    caller=Caller.OAUTH_TOKEN,
    returns=UserClaims,
    errors=(400, 401, 403),
)
@oauth_bearer("openid").but(cross_origin=CorsPolicy(methods=("GET", "POST"), exposed=LIMIT_HEADERS))
def userinfo(bearer: Bearer) -> Response:
    """Return the claims that the token's scopes allow (OpenID Connect Core 5.3)."""
    claims = claims_for(
        bearer,
        issuer=settings().base_url,
        connection=services().connections,
        today=now().date(),
    )
    response = jsonify(claims)
    response.headers["Cache-Control"] = "no-store"
    return response


@openid.post("/oauth/introspect")
@Description(
    name="oauth.introspect",
    tag=OAUTH,
    caller=Caller.CLIENT,
    body=TokenQuestion,
    returns=Introspection,
    errors=(400, 401, 408, 413, 429),
)
@checks_its_client
@by_address
def introspect() -> ResponseReturnValue:
    """Return whether a token is active, with its metadata (RFC 7662)."""
    server = AuthorizationServer(oauth_context())
    return send(server.create_endpoint_response("introspection", request_in_form()))


@openid.get("/oauth/discovery/keys")
@Description(name="openid.keys", tag=OPENID, returns=KeySet)
@_of_keys
def keys() -> Response:
    """Return the public keys of ID tokens (RFC 7517)."""
    return key_set()


@openid.get("/-/jwks")
@_of_keys
def jwks() -> Response:
    """Return the keys at the older URL, in releases that support it."""
    apply_change(BY_ID["jwks-alias"])
    return key_set()


@openid.get("/-/pictures/<string(length=1):letter>-<int(max=359):hue>.svg")
@open_to_anyone.but(errors=ErrorFormat.PAGE)
def picture(letter: str, hue: int) -> Response:
    """Return the avatar that the URL describes."""
    response = Response(draw_avatar(letter, hue), mimetype="image/svg+xml")
    response.headers["Cache-Control"] = f"public, max-age={_A_DAY}, immutable"
    response.headers["Content-Security-Policy"] = "default-src 'none'"
    return response
