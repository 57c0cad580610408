"""Pushed authorization requests (RFC 9126): the client leaves with us what it would ask for."""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error

from domain.oauth.clients.authentication import Client, note_use
from domain.oauth.consent.pushed_requests import store
from domain.oauth.context import PartOfServer
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.presented_tokens.dpop import InvalidProofError, Target, prove_key

PATH = "/oauth/par"


class PushedAuthorizationEndpoint(PartOfServer):
    """POST /oauth/par."""

    def __init__(self, server: Any) -> None:
        """Belong to a server."""
        self.server = server

    def __call__(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, check what it would ask for, and keep it (section 2.1)."""
        request.refuse_repeated_parameters()
        client = self.server.authenticate_client(request, ())
        if request.value("request_uri") is not None:
            raise InvalidRequestError("A request_uri cannot be pushed.")
        pushed = self._with_key(request, client)
        self._check(pushed)
        request_uri = store(pushed, client, self._context)
        note_use(client, self._context)
        lifetime = self._context.policy.pushed_requests.lifetime
        body = {"request_uri": request_uri, "expires_in": int(lifetime.total_seconds())}
        return 201, body, NO_STORE

    def _with_key(self, request: ProtocolRequest, client: Client) -> ProtocolRequest:
        """Return the authorization request, bound to the key that is proved (RFC 9449, 10.1)."""
        context = self._context
        thumbprint = prove_key(request, Target("POST", context.policy.issuer + PATH), context)
        named = request.value("dpop_jkt")
        if thumbprint is not None and named not in {None, thumbprint}:
            raise InvalidProofError("The DPoP proof is not of the key that dpop_jkt names.")
        # A client that authenticates by Basic has said who it is already.
        known = {"client_id": client.get_client_id(), "dpop_jkt": thumbprint or named}
        lists = {**request.payload.datalist, **{k: [v] for k, v in known.items() if v}}
        return ProtocolRequest("POST", lists, {})

    def _check(self, request: ProtocolRequest) -> None:
        """Check it as the authorization endpoint would; every error is for the client to read."""
        try:
            self.server.get_authorization_grant(request).validate_authorization_request()
        except OAuth2Error as error:
            error.redirect_uri = None
            raise
