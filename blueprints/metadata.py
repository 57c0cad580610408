"""/.well-known: what clients find out by themselves (RFC 8414, RFC 9728, OpenID Connect)."""

from typing import Any

from flask import Blueprint, Response, jsonify

from domain.oauth import metadata as documents
from web.access import open_to_anyone
from web.services import oauth_policy, settings

metadata = Blueprint("metadata", __name__, url_prefix="/.well-known")


def _public(document: dict[str, Any]) -> Response:
    response = jsonify(document)
    response.headers["Cache-Control"] = "public, max-age=3600"
    # Metadata is for scripts of any origin; there is nothing in it to protect.
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


@metadata.get("/oauth-authorization-server")
@open_to_anyone
def authorization_server() -> Response:
    """Describe the authorization server (RFC 8414 section 3)."""
    return _public(documents.authorization_server(oauth_policy()))


@metadata.get("/openid-configuration")
@open_to_anyone
def openid_provider() -> Response:
    """Describe the OpenID provider (OpenID Connect Discovery section 4)."""
    return _public(documents.openid_provider(oauth_policy()))


@metadata.get("/oauth-protected-resource")
@open_to_anyone
def protected_resource() -> Response:
    """Describe everything here that takes a token (RFC 9728 section 3)."""
    issuer = settings().base_url
    return _public(documents.protected_resource(issuer, issuer=issuer))


@metadata.get("/oauth-protected-resource/api/v4")
@open_to_anyone
def rest_api() -> Response:
    """Describe the REST API, at the place that belongs to its address (section 3.1)."""
    issuer = settings().base_url
    return _public(documents.protected_resource(f"{issuer}/api/v4", issuer=issuer))
