"""The key set as the endpoints publish it."""

from flask import Response, jsonify

from domain.oauth.openid.keys import (
    NOTICE,
    PublishedKey,
    find_published_keys,
    get_signing_key,
    list_published_keys,
)
from web.extensions import db
from web.http.transactions import begin_to_write
from web.services import now, services


def key_set() -> Response:
    """Return the public keys (RFC 7517 section 5), to be kept for as long as new ones wait."""
    response = jsonify({"keys": [key.public_jwk for key in _published_keys()]})
    response.headers["Cache-Control"] = f"public, max-age={int(NOTICE.total_seconds())}"
    return response


def _published_keys() -> tuple[PublishedKey, ...]:
    moment = now()
    found = find_published_keys(connection=services().connections, now=moment)
    if found:
        return found
    # Clients must not cache an empty key set: the first GET creates a key.
    begin_to_write()
    session = db.session()
    get_signing_key(session=session, keyring=services().keyring, now=moment)
    return list_published_keys(session=session, now=moment)
