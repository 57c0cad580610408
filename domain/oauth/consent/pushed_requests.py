"""Pushed authorization requests (RFC 9126), and the endpoint that stores them.

The browser must present the request within a short time. The user then has as much time as for any
consent page, since signing in may take a while. Only the user's decision consumes the request, so
that the page can be reloaded.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from authlib.oauth2.rfc6749 import Endpoint, InvalidRequestError, OAuth2Error
from sqlalchemy import select

from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.keyring import CredentialType
from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.clients.authentication import Client
from domain.oauth.context import OAuthContext
from domain.oauth.protocol import AUTHORIZATION_PARAMETERS, ProtocolRequest, PushedRequestReference
from domain.oauth.token_authentication.dpop import InvalidProofError
from models import Application, PushedRequest

#: Prefix of a request_uri, before the credential (RFC 9126 section 2.2).
REQUEST_URI_PREFIX = "urn:ietf:params:oauth:request_uri:"
#: Lifetime of an opened request, counted from the push. It equals the lifetime of a consent page.
_OPENED_LIFETIME = timedelta(hours=1)


class InvalidRequestUriError(InvalidRequestError):
    """The invalid_request_uri error (RFC 9101 section 7), which never redirects the browser."""

    error = "invalid_request_uri"
    description = (
        "The request_uri is unknown, was already used, has expired, or belongs to another "
        "application. Start again from the application."
    )


def store_pushed_request(request: ProtocolRequest, client: Client, context: OAuthContext) -> str:
    """Store the checked parameters of a pushed request, and return its request_uri.

    See section 2.2.
    """
    credential = context.keyring.issue_credential(CredentialType.PUSHED_REQUEST)
    parameters = request.payload.data
    context.session.add(
        PushedRequest(
            digest=credential.digest,
            application_id=client.application.id,
            parameters={
                name: parameters[name] for name in AUTHORIZATION_PARAMETERS & parameters.keys()
            },
            created_at=context.now,
            expires_at=context.now + context.policy.pushed_requests.lifetime,
        )
    )
    return REQUEST_URI_PREFIX + credential.clear


class _PushedRequestRow(NamedTuple):
    """A stored request with the client_id of its application."""

    id: int
    parameters: dict[str, str]
    created_at: datetime
    uid: str


def is_pushed_request(request: ProtocolRequest) -> bool:
    """Return whether the request refers to a pushed request by request_uri."""
    uris = request.payload.datalist["request_uri"]
    return any(uri.startswith(REQUEST_URI_PREFIX) for uri in uris)


def resolve_pushed_request(request: ProtocolRequest, context: OAuthContext) -> ProtocolRequest:
    """Return the pushed request that a request refers to (section 4).

    Other parameters from the browser are ignored (RFC 9101 section 5). A request without a pushed
    request_uri is returned unchanged. Errors are shown on a page.
    """
    if not is_pushed_request(request):
        return request
    row = _get_pushed_row(request, context)
    _extend_lifetime(row.id, row.created_at + _OPENED_LIFETIME, context)
    parameters = {name: [value] for name, value in row.parameters.items()}
    # The stored parameters do not contain the request_uri, which the consent form must contain.
    uri = request.require_parameter("request_uri")
    opened = ProtocolRequest("GET", {**parameters, "request_uri": [uri]}, {})
    opened.pushed = PushedRequestReference(id=row.id)
    opened.pushed_at = row.created_at
    opened.first_asked, opened.decision = request.first_asked, request.decision
    return opened


def read_authorization_parameters(
    request: ProtocolRequest, context: OAuthContext
) -> dict[str, str]:
    """Return the parameters of an authorization request.

    The result is empty if the request refers to a pushed request that is invalid or has expired.
    """
    if not is_pushed_request(request):
        return request.payload.data
    try:
        parameters: dict[str, str] = _get_pushed_row(request, context).parameters
    except InvalidRequestError:
        return {}
    return parameters


def _get_pushed_row(request: ProtocolRequest, context: OAuthContext) -> _PushedRequestRow:
    """Return the stored row for the request_uri.

    Raise InvalidRequestError if the request_uri is unknown or the parameters are inconsistent.
    """
    if {"client_id", "request_uri"} & set(request.payload.repeated):
        raise InvalidRequestError("client_id and request_uri can be sent only once.")
    if request.get_parameter("request") is not None:
        raise InvalidRequestError("request and request_uri cannot be sent together.")
    uid, uri = request.require_parameter("client_id"), request.require_parameter("request_uri")
    digests = context.keyring.compute_digests(
        uri.removeprefix(REQUEST_URI_PREFIX), CredentialType.PUSHED_REQUEST
    )
    row = context.session.execute(
        select(
            PushedRequest.id,
            PushedRequest.parameters,
            PushedRequest.created_at,
            Application.uid,
        )
        .join(Application, Application.id == PushedRequest.application_id)
        .where(PushedRequest.digest.in_(digests), PushedRequest.expires_at > context.now)
    ).first()
    if row is None or row.uid != uid:
        raise InvalidRequestUriError
    return _PushedRequestRow._make(row)


def _extend_lifetime(row_id: int, until: datetime, context: OAuthContext) -> None:
    context.session.execute(
        build_bulk_update(PushedRequest)
        .where(PushedRequest.id == row_id, PushedRequest.expires_at < until)
        .values(expires_at=until)
    )


def consume_pushed_request(request: ProtocolRequest, context: OAuthContext) -> None:
    """Delete a pushed request after a decision, so that only one concurrent decision succeeds.

    Raise InvalidRequestUriError if the request no longer exists (section 4).
    """
    if request.pushed is None:
        return
    used = context.session.scalar(
        build_bulk_delete(PushedRequest)
        .where(PushedRequest.id == request.pushed.id, PushedRequest.expires_at > context.now)
        .returning(PushedRequest.id)
    )
    if used is None:
        raise InvalidRequestUriError


class PushedAuthorizationEndpoint(ClientEndpoint[None, ProtocolRequest], Endpoint):
    """The POST /oauth/par endpoint, which stores pushed authorization requests."""

    PROOF_PATH = "/oauth/par"
    STATUS = 201

    def validate_request(self, client_request: ClientRequest[None]) -> ProtocolRequest:
        """Check the request as the authorization endpoint would, and return it (section 2.1).

        Errors are returned to the client, never to a redirect URI.
        """
        if client_request.request.get_parameter("request_uri") is not None:
            raise InvalidRequestError("A request_uri cannot be pushed.")
        pushed = _build_authorization_request(client_request)
        try:
            self.server.get_authorization_grant(pushed).validate_authorization_request()
        except OAuth2Error as error:
            error.redirect_uri = None
            raise
        return pushed

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: ProtocolRequest
    ) -> Mapping[str, object]:
        """Store the request, and return the response (section 2.2).

        `expires_in` is in seconds.
        """
        request_uri = store_pushed_request(
            checked_input, client_request.get_client(), self.server.context
        )
        lifetime = self.server.context.policy.pushed_requests.lifetime
        return {"request_uri": request_uri, "expires_in": int(lifetime.total_seconds())}


def _build_authorization_request(client_request: ClientRequest[None]) -> ProtocolRequest:
    """Return the authorization request, bound to the key of the proof (RFC 9449 section 10.1)."""
    named, thumbprint = (
        client_request.request.get_parameter("dpop_jkt"),
        client_request.key_thumbprint,
    )
    if thumbprint is not None and named not in {None, thumbprint}:
        raise InvalidProofError("The key of the DPoP proof does not match dpop_jkt.")
    # With Basic authentication, client_id is not in the body.
    known = {
        "client_id": client_request.get_client().get_client_id(),
        "dpop_jkt": thumbprint or named,
    }
    lists = {**client_request.request.payload.datalist, **{k: [v] for k, v in known.items() if v}}
    return ProtocolRequest("POST", lists, {})
