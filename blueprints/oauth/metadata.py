"""Metadata for clients at /.well-known (RFC 8414, RFC 9728, OpenID Connect Discovery)."""

from functools import partial
from typing import Any

from flask import Response, jsonify

from domain.core.errors import NotFoundError
from domain.oauth import discovery as documents
from web.access.decorators import open_to_anyone
from web.api.description.described import METADATA, Description
from web.api.schemas.oauth import (
    AuthorizationServerMetadata,
    OpenIdProviderMetadata,
    ProtectedResourceMetadata,
)
from web.http.cors import CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.public_urls import path_of
from web.services import oauth_policy, settings

metadata = MachineBlueprint(
    "metadata",
    __name__,
    url_prefix="/.well-known",
    errors=ErrorFormat.MESSAGE,
    # Scripts of any origin have access, since metadata is public.
    cross_origin=CorsPolicy(),
)
#: Description of a document. Clients may also append the issuer's path to the document's URL.
_document = partial(Description, tag=METADATA, without=("issuer_path",))


def _public(document: dict[str, Any]) -> Response:
    response = jsonify(document)
    response.headers["Cache-Control"] = "public, max-age=3600"
    return response


def _is_ours(path: str) -> None:
    """Raise NotFoundError for a path that is not the issuer's.

    Clients put the name of the document between the host and the issuer's path, or after both. See
    RFC 8414 section 3 and RFC 9728 section 3.1. Proxies may forward requests in either form.
    """
    if path and f"/{path}" != path_of(settings().base_url):
        raise NotFoundError("Unknown issuer.")


@metadata.get("/oauth-authorization-server")
@metadata.get("/oauth-authorization-server/<path:issuer_path>")
@_document(name="metadata.authorization_server", returns=AuthorizationServerMetadata)
@open_to_anyone
def authorization_server(issuer_path: str = "") -> Response:
    """Return the metadata of the authorization server (RFC 8414 section 3)."""
    _is_ours(issuer_path)
    return _public(documents.authorization_server(oauth_policy()))


@metadata.get("/openid-configuration")
@metadata.get("/openid-configuration/<path:issuer_path>")
@_document(name="metadata.openid_provider", returns=OpenIdProviderMetadata)
@open_to_anyone
def openid_provider(issuer_path: str = "") -> Response:
    """Return the metadata of the OpenID provider (OpenID Connect Discovery section 4)."""
    _is_ours(issuer_path)
    return _public(documents.openid_provider(oauth_policy()))


@metadata.get("/oauth-protected-resource")
@metadata.get("/oauth-protected-resource/<path:issuer_path>")
@_document(name="metadata.protected_resource", returns=ProtectedResourceMetadata)
@open_to_anyone
def protected_resource(issuer_path: str = "") -> Response:
    """Return the metadata of the service as a protected resource (RFC 9728 section 3)."""
    _is_ours(issuer_path)
    issuer = settings().base_url
    return _public(documents.protected_resource(issuer, issuer=issuer))


@metadata.get("/oauth-protected-resource/api/v4")
@metadata.get("/oauth-protected-resource/<path:issuer_path>/api/v4")
@_document(name="metadata.rest_api", returns=ProtectedResourceMetadata)
@open_to_anyone
def rest_api(issuer_path: str = "") -> Response:
    """Return the metadata of the REST API (section 3.1)."""
    _is_ours(issuer_path)
    issuer = settings().base_url
    return _public(documents.protected_resource(f"{issuer}/api/v4", issuer=issuer))
