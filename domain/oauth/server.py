"""The authorization server: Authlib's server with custom storage and error responses."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from authlib.oauth2.rfc6749 import (
    AuthorizationServer as AuthlibServer,
)
from authlib.oauth2.rfc6749 import (
    InvalidRequestError,
    OAuth2Error,
)

from domain.oauth.client_requests import ClientEndpoint, TokenGrant
from domain.oauth.clients.applications import find_application_row
from domain.oauth.clients.authentication import find_named_application_id
from domain.oauth.clients.redirect_uris import add_query_parameters, redact_redirect_uri
from domain.oauth.consent.pushed_requests import PushedAuthorizationEndpoint
from domain.oauth.context import NewRejectedRequest, OAuthContext
from domain.oauth.endpoints import IntrospectionEndpoint, RevocationEndpoint
from domain.oauth.grants.authorization_code import (
    AuthorizationCodeGrant,
    UnknownRedirectUriError,
    build_issuer_parameter,
)
from domain.oauth.grants.device_code import DeviceAuthorizationEndpoint
from domain.oauth.grants.registry import GRANTS_BY_TYPE, SINGLE_VALUE_PARAMETERS
from domain.oauth.protocol import OAUTH_NO_STORE_HEADERS, OAuthResponse, ProtocolRequest
from domain.oauth.rejection_reasons import OTHER_REASON, REASONS_BY_ERROR

#: Client endpoints other than the token endpoint, by their names in Authlib and RFC 9126.
CLIENT_ENDPOINTS: Mapping[str, Callable[[Any], ClientEndpoint[Any, Any]]] = {
    "device_authorization": DeviceAuthorizationEndpoint,
    "introspection": IntrospectionEndpoint,
    "pushed_authorization_request": PushedAuthorizationEndpoint,
    "revocation": RevocationEndpoint,
}
#: Pattern of plausible grant types, which are shown to the owner of the application.
_GRANT_TYPE_PATTERN = re.compile(r"[a-z][a-z0-9_:.-]{0,63}")
#: Name under which rejected authorization requests are stored.
AUTHORIZATION_REQUEST = "authorization"
#: Name under which rejected token requests with an implausible grant type are stored.
UNKNOWN_GRANT_REQUEST = "other"
#: Codes of errors that a device receives until the user decides (RFC 8628 section 3.5).
_UNRECORDED_ERROR_CODES = frozenset({"authorization_pending", "slow_down"})


class AuthorizationServer(AuthlibServer):
    """The authorization server for one request."""

    #: Parameters that a request may contain only once.
    PARAMETERS = SINGLE_VALUE_PARAMETERS

    def __init__(self, context: OAuthContext) -> None:
        """Store the context of the request."""
        super().__init__()
        self.context = context

    def get_authorization_grant(self, request: ProtocolRequest) -> AuthorizationCodeGrant:
        """Return the grant that handles an authorization request."""
        return AuthorizationCodeGrant(request, self)

    def create_token_response(self, request: ProtocolRequest) -> OAuthResponse:
        """Respond to a token request.

        Errors are returned as responses too, so that the transaction is committed.
        """
        wanted = request.get_parameter("grant_type") or ""
        try:
            # RFC 6749 section 5.2.
            if "grant_type" in request.payload.repeated:
                raise InvalidRequestError("The parameter grant_type is given more than once.")
            request.require_parameter("grant_type")
            grant = GRANTS_BY_TYPE.get(wanted)
            if grant is None or (grant.SWITCH and not grant.SWITCH(self.context.policy)):
                raise UnknownGrantTypeError(_GRANT_ALTERNATIVES.get(wanted))
            chosen: TokenGrant[Any, Any] = grant(request, self)
            return chosen.handle_request(request)
        except OAuth2Error as error:
            name = wanted if _GRANT_TYPE_PATTERN.fullmatch(wanted) else UNKNOWN_GRANT_REQUEST
            self._record_rejection(request, error, name)
            return self.handle_error_response(request, error)

    def create_endpoint_response(self, name: str, request: ProtocolRequest) -> OAuthResponse:
        """Respond to a request to the endpoint with the given name.

        Errors are returned as responses too, so that the transaction is committed.
        """
        try:
            return CLIENT_ENDPOINTS[name](self).handle_request(request)
        except OAuth2Error as error:
            self._record_rejection(request, error, name)
            return self.handle_error_response(request, error)

    def _record_rejection(self, request: ProtocolRequest, error: OAuth2Error, name: str) -> None:
        """Record a rejected request that names a known application.

        Errors that a device receives while it polls for the user's decision are not recorded.
        """
        if isinstance(error, UnknownGrantTypeError):
            request.named_application_id = find_named_application_id(request, self.context)
        if error.error not in _UNRECORDED_ERROR_CODES:
            address = self.context.source.address
            self._record_rejection_for_owner(request.named_application_id, error, name, address)

    def record_rejected_authorization(self, request: ProtocolRequest, error: OAuth2Error) -> None:
        """Record a rejected authorization request that names a known application.

        The IP address is omitted, since the request may come from any visitor's browser.
        """
        uid = request.get_parameter("client_id") or ""
        is_named = uid and "\x00" not in uid and "client_id" not in request.payload.repeated
        found = find_application_row(uid, session=self.context.session) if is_named else None
        self._record_rejection_for_owner(
            found.id if found else None, error, AUTHORIZATION_REQUEST, None
        )

    def _record_rejection_for_owner(
        self, application_id: int | None, error: OAuth2Error, name: str, address: str | None
    ) -> None:
        if application_id is None:
            return
        sent = error.presented if isinstance(error, UnknownRedirectUriError) else None
        self.context.record_refusal(
            NewRejectedRequest(
                application_id=application_id,
                request=name,
                error=error.error,
                description=error.get_error_description(),
                reason=getattr(error, "reason", None)
                or REASONS_BY_ERROR.get(error.error, OTHER_REASON),
                address=address,
                redirect_uri=None if sent is None else redact_redirect_uri(sent),
            ),
            self.context,
        )

    def create_oauth2_request(self, request: ProtocolRequest) -> ProtocolRequest:
        """Return the request unchanged."""
        return request

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Do nothing: signals are not used."""

    def handle_response(
        self, status: int, body: Mapping[str, object] | str, headers: Iterable[tuple[str, str]]
    ) -> OAuthResponse:
        """Return Authlib's status, body and headers as an `OAuthResponse`."""
        return OAuthResponse(status=status, body=body, headers=tuple(headers))

    def handle_error_response(self, request: ProtocolRequest, error: OAuth2Error) -> OAuthResponse:
        """Return an error as a redirect if there is a redirect URI, and as JSON otherwise.

        Implements RFC 6749 sections 4.1.2.1 and 5.2, and `iss` of RFC 9207.
        """
        if error.redirect_uri:
            parameters = [(name, str(value)) for name, value in error.get_body()]
            state = request.get_parameter("state")
            if state is not None and not any(name == "state" for name, _ in parameters):
                parameters.append(("state", state))
            parameters += build_issuer_parameter(request.client.application, self.context.policy)
            location = add_query_parameters(error.redirect_uri, parameters)
            return OAuthResponse(status=302, headers=(("Location", location),))
        status, body, headers = error()
        body.pop("state", None)
        kept = [each for each in headers if each[0] not in {"Cache-Control", "Pragma"}]
        return OAuthResponse(status=status, body=body, headers=(*kept, *OAUTH_NO_STORE_HEADERS))


#: Alternatives to grants that this server does not support.
_GRANT_ALTERNATIVES = {
    "implicit": "This server has no implicit grant. Use authorization_code with PKCE."
}


class UnknownGrantTypeError(OAuth2Error):
    """Error for an unknown grant type. The message omits the type, which may have any length."""

    error = "unsupported_grant_type"
    description = "The authorization grant type is not supported by this server."
