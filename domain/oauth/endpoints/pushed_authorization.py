"""The endpoint for pushed authorization requests (RFC 9126)."""

from collections.abc import Mapping

from authlib.oauth2.rfc6749 import Endpoint, InvalidRequestError, OAuth2Error

from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.consent.pushed_requests import store
from domain.oauth.presented_tokens.dpop import InvalidProofError
from domain.oauth.protocol import ProtocolRequest


class PushedAuthorizationEndpoint(ClientEndpoint[None, ProtocolRequest], Endpoint):
    """POST /oauth/par."""

    PROOF_PATH = "/oauth/par"
    STATUS = 201

    def check(self, asked: ClientRequest[None]) -> ProtocolRequest:
        """Check the request as the authorization endpoint would, and return it (section 2.1).

        Every error goes to the client, and none to a redirect URI.
        """
        if asked.request.value("request_uri") is not None:
            raise InvalidRequestError("A request_uri cannot be pushed.")
        pushed = _authorization_request(asked)
        try:
            self.server.get_authorization_grant(pushed).validate_authorization_request()
        except OAuth2Error as error:
            error.redirect_uri = None
            raise
        return pushed

    def perform(self, asked: ClientRequest[None], checked: ProtocolRequest) -> Mapping[str, object]:
        """Store the request; `expires_in` is in seconds (section 2.2)."""
        request_uri = store(checked, asked.get_client(), self._context)
        lifetime = self._context.policy.pushed_requests.lifetime
        return {"request_uri": request_uri, "expires_in": int(lifetime.total_seconds())}


def _authorization_request(asked: ClientRequest[None]) -> ProtocolRequest:
    """Return the authorization request, bound to the key that is proved (RFC 9449, 10.1)."""
    named, thumbprint = asked.request.value("dpop_jkt"), asked.key_thumbprint
    if thumbprint is not None and named not in {None, thumbprint}:
        raise InvalidProofError("The key of the DPoP proof does not match dpop_jkt.")
    # With Basic authentication, client_id is not in the body.
    known = {"client_id": asked.get_client().get_client_id(), "dpop_jkt": thumbprint or named}
    lists = {**asked.request.payload.datalist, **{k: [v] for k, v in known.items() if v}}
    return ProtocolRequest("POST", lists, {})
