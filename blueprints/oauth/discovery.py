"""Metadata for clients at /.well-known (RFC 8414, RFC 9728, OpenID Connect Discovery)."""

from functools import partial
from typing import Any

from flask import Response, jsonify

from domain.core.errors import NotFoundError
from domain.oauth import discovery as documents
from web.access.decorators import open_to_anyone
from web.api.openapi.view_descriptions import METADATA, ViewDescription
from web.api.schemas.oauth import (
    AuthorizationServerMetadata,
    OpenIdProviderMetadata,
    ProtectedResourceMetadata,
)
from web.http.cors import CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.public_urls import get_base_path
from web.services import get_oauth_policy, get_settings

metadata = ApiClientBlueprint(
    "metadata",
    __name__,
    url_prefix="/.well-known",
    errors=ErrorFormat.MESSAGE,
    # Scripts from any origin have access because the metadata is public.
    cross_origin=CorsPolicy(),
)
#: Decorator that describes a document. Clients may append the issuer's path to the document's URL.
_describe_document = partial(ViewDescription, tag=METADATA, without=("issuer_path",))


def _build_public_response(document: dict[str, Any]) -> Response:
    response = jsonify(document)
    response.headers["Cache-Control"] = "public, max-age=3600"
    return response


def _check_issuer_path(path: str) -> None:
    """Check that a path is empty or equal to the issuer's path.

    Clients put the name of the document between the host and the issuer's path, or after both. See
    RFC 8414 section 3 and RFC 9728 section 3.1. Proxies may forward requests in either form. Raise
    NotFoundError for any other path.
    """
    if path and f"/{path}" != get_base_path(get_settings().base_url):
        raise NotFoundError("Unknown issuer.")


@metadata.get("/oauth-authorization-server")
@metadata.get("/oauth-authorization-server/<path:issuer_path>")
@_describe_document(name="metadata.authorization_server", returns=AuthorizationServerMetadata)
@open_to_anyone
def authorization_server(issuer_path: str = "") -> Response:
    """Return the metadata of the authorization server (RFC 8414 section 3)."""
    _check_issuer_path(issuer_path)
    return _build_public_response(documents.build_authorization_server_metadata(get_oauth_policy()))


@metadata.get("/openid-configuration")
@metadata.get("/openid-configuration/<path:issuer_path>")
@_describe_document(name="metadata.openid_provider", returns=OpenIdProviderMetadata)
@open_to_anyone
def openid_provider(issuer_path: str = "") -> Response:
    """Return the metadata of the OpenID provider (OpenID Connect Discovery section 4)."""
    _check_issuer_path(issuer_path)
    return _build_public_response(documents.build_openid_provider_metadata(get_oauth_policy()))


@metadata.get("/oauth-protected-resource")
@metadata.get("/oauth-protected-resource/<path:issuer_path>")
@_describe_document(name="metadata.protected_resource", returns=ProtectedResourceMetadata)
@open_to_anyone
def protected_resource(issuer_path: str = "") -> Response:
    """Return the metadata of the service as a protected resource (RFC 9728 section 3)."""
    _check_issuer_path(issuer_path)
    issuer = get_settings().base_url
    return _build_public_response(
        documents.build_protected_resource_metadata(issuer, issuer=issuer)
    )


@metadata.get("/oauth-protected-resource/api/v4")
@metadata.get("/oauth-protected-resource/<path:issuer_path>/api/v4")
@_describe_document(name="metadata.rest_api", returns=ProtectedResourceMetadata)
@open_to_anyone
def rest_api(issuer_path: str = "") -> Response:
    """Return the metadata of the REST API (RFC 9728 section 3.1)."""
    _check_issuer_path(issuer_path)
    issuer = get_settings().base_url
    return _build_public_response(
        documents.build_protected_resource_metadata(f"{issuer}/api/v4", issuer=issuer)
    )
