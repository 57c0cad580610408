"""The authorization server: Authlib's, with our storage, our client check, our error answers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from authlib.oauth2.rfc6749 import (
    AuthorizationServer as AuthlibServer,
)
from authlib.oauth2.rfc6749 import (
    InvalidRequestError,
    OAuth2Error,
    UnauthorizedClientError,
)

from domain.database.statements import HotRow
from domain.oauth.clients.authentication import Client, authenticate_with
from domain.oauth.clients.credential_lookup import CredentialLookup
from domain.oauth.clients.redirect_uris import with_parameters
from domain.oauth.context import OAuthContext, OAuthPolicy
from domain.oauth.endpoints.device_authorization import DeviceAuthorizationEndpoint
from domain.oauth.endpoints.introspection import IntrospectionEndpoint
from domain.oauth.endpoints.pushed_authorization import PushedAuthorizationEndpoint
from domain.oauth.endpoints.revocation import RevocationEndpoint
from domain.oauth.grants.authorization_code import AuthorizationCodeGrant
from domain.oauth.grants.device_code import DeviceCodeGrant
from domain.oauth.grants.password import PasswordGrant
from domain.oauth.grants.refresh_token import RefreshTokenGrant
from domain.oauth.messages import NO_STORE, OAuthResponse, ProtocolRequest
from domain.oauth.presented_tokens.dpop import (
    InvalidProofError,
    Proof,
    Target,
    consume_proof,
    find_proof,
)

#: Every grant of this server, in the order of the specification.
GRANTS = (AuthorizationCodeGrant, RefreshTokenGrant, PasswordGrant, DeviceCodeGrant)
#: Everything else that clients post to, by the names that Authlib and RFC 9126 give it.
ENDPOINTS: Mapping[str, Callable[[Any], Callable[[ProtocolRequest], Any]]] = {
    "device_authorization": DeviceAuthorizationEndpoint,
    "introspection": IntrospectionEndpoint,
    "pushed_authorization_request": PushedAuthorizationEndpoint,
    "revocation": RevocationEndpoint,
}


def offered_grants(policy: OAuthPolicy) -> tuple[Any, ...]:
    """Return the grants that the instance has not switched off."""
    is_offered = {
        PasswordGrant: policy.passwords.is_offered,
        DeviceCodeGrant: policy.devices.is_offered,
    }
    return tuple(grant for grant in GRANTS if is_offered.get(grant, True))


class AuthorizationServer(AuthlibServer):
    """Made anew for each request, so that it holds nothing from one to the next."""

    def __init__(self, context: OAuthContext) -> None:
        """Work with these collaborators; grants and endpoints are those of the tables above."""
        super().__init__()
        self.context = context
        #: Of the token request, if it is one.
        self._grant_type: str | None = None

    def authenticate_client(
        self, request: ProtocolRequest, methods: Any, endpoint: str = "token"
    ) -> Client:
        """Authenticate by any method that the client may use (RFC 6749 section 2.3)."""
        del methods, endpoint
        return self.authenticate_with(request, None)[0]

    def authenticate_with(
        self, request: ProtocolRequest, lookup: CredentialLookup | None
    ) -> tuple[Client, HotRow | None]:
        """Authenticate, and find what the client comes with in the same breath."""
        client, found = authenticate_with(request, self.context, lookup)
        if self._grant_type is not None:
            self._check_registration(client, self._grant_type)
        return client, found

    def get_authorization_grant(self, request: ProtocolRequest) -> AuthorizationCodeGrant:
        """Return the one grant that has an authorization endpoint."""
        return AuthorizationCodeGrant(request, self)

    def get_token_grant(self, request: ProtocolRequest) -> Any:
        """Return the grant of a token request, or raise (RFC 6749 section 5.2)."""
        wanted = request.value("grant_type")
        if "grant_type" in request.payload.repeated():
            raise InvalidRequestError("The parameter grant_type is given more than once.")
        if wanted is None:
            raise InvalidRequestError("Missing required parameter: grant_type.")
        for grant in offered_grants(self.context.policy):
            if wanted == grant.GRANT_TYPE:
                return grant(request, self)
        raise UnknownGrantTypeError

    def create_token_response(self, request: ProtocolRequest) -> OAuthResponse:
        """Answer a token request; every error is an answer, so that what it wrote is kept."""
        try:
            grant = self.get_token_grant(request)
            proof = self._find_proof(request)
            self._grant_type = grant.GRANT_TYPE
            grant.validate_token_request()
            if proof is not None:
                consume_proof(proof, self.context)
            return self.handle_response(*grant.create_token_response())
        except OAuth2Error as error:
            return self.handle_error_response(request, error)

    def create_endpoint_response(self, name: str, request: ProtocolRequest) -> OAuthResponse:
        """Answer a request to one of the endpoints; every error is an answer here as well."""
        try:
            return self.handle_response(*ENDPOINTS[name](self)(request))
        except OAuth2Error as error:
            return self.handle_error_response(request, error)

    def _find_proof(self, request: ProtocolRequest) -> Proof | None:
        """Return what the client brought to prove its key; what is issued now is bound to it.

        The proof is used up no earlier than the request is found good: who has no client and no
        grant shall not fill the table of used ones.
        """
        target = Target("POST", f"{self.context.policy.issuer}/oauth/token")
        proof = find_proof(request, target, now=self.context.now)
        if proof is not None:
            self.context = replace(self.context, key_thumbprint=proof.thumbprint)
        return proof

    def _check_registration(self, client: Client, grant_type: str) -> None:
        """Refuse a token request that the client's registration rules out."""
        if not client.check_grant_type(grant_type):
            raise UnauthorizedClientError("The application is not registered for this grant type.")
        if client.application.require_dpop and self.context.key_thumbprint is None:
            raise InvalidProofError("Tokens of this application are bound to a key: prove it.")

    def create_oauth2_request(self, request: ProtocolRequest) -> ProtocolRequest:
        """Take our own request as it is."""
        return request

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Send none: who needs to know is called by name."""

    def handle_response(self, status: int, body: Any, headers: Any) -> OAuthResponse:
        """Turn Authlib's triple into an answer."""
        return OAuthResponse(status=status, body=body, headers=tuple(headers))

    def handle_error_response(self, request: ProtocolRequest, error: OAuth2Error) -> OAuthResponse:
        """Send an error to the redirect URI where there is one, else as JSON.

        Sections 4.1.2.1 and 5.2 of RFC 6749; `iss` after RFC 9207.
        """
        if error.redirect_uri:
            parameters = [(name, str(value)) for name, value in error.get_body()]
            state = request.value("state")
            if state is not None and not any(name == "state" for name, _ in parameters):
                parameters.append(("state", state))
            parameters.append(("iss", self.context.policy.issuer))
            location = with_parameters(error.redirect_uri, parameters)
            return OAuthResponse(status=302, headers=(("Location", location),))
        status, body, headers = error()
        body.pop("state", None)
        kept = [each for each in headers if each[0] not in {"Cache-Control", "Pragma"}]
        return OAuthResponse(status=status, body=body, headers=(*kept, *NO_STORE))


class UnknownGrantTypeError(OAuth2Error):
    """unsupported_grant_type, without echoing what was asked for: an answer cannot hold it all."""

    error = "unsupported_grant_type"
    description = "The authorization grant type is not supported by this server."
