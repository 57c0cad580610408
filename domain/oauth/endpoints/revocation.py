"""Token revocation (RFC 7009): either token of a pair kills both."""

from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Error
from authlib.oauth2.rfc7009 import RevocationEndpoint as AuthlibRevocationEndpoint
from sqlalchemy import or_, select

from domain.keyring import Kind
from domain.oauth.clients import Client
from domain.oauth.context import OAuthContext
from domain.oauth.tokens import revoke_pair
from domain.oauth.wire import NO_STORE, ProtocolRequest
from models import AccessToken


class ForeignTokenError(OAuth2Error):
    """The token belongs to another client; it lives on."""

    error = "unauthorized_client"
    description = "You are not authorized to revoke this token."
    status_code = 403


class RevocationEndpoint(AuthlibRevocationEndpoint):
    """POST /oauth/revoke."""

    def create_endpoint_request(self, request: ProtocolRequest) -> ProtocolRequest:
        """Take the request as it is; it was built for this endpoint."""
        return request

    @property
    def _context(self) -> OAuthContext:
        context: OAuthContext = self.server.context
        return context

    def create_endpoint_response(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, then kill the pair; an unknown token is no error (2.2)."""
        request.refuse_repeated_parameters()
        client = self.server.authenticate_client(request, ())
        token = self._find(request.required("token"))
        if token is not None:
            self._revoke(token, client)
        return 200, {}, NO_STORE

    def _find(self, text: str) -> AccessToken | None:
        """Look for either kind; the hint would only save a comparison (section 2.1)."""
        keyring = self._context.keyring
        return self._context.session.scalar(
            select(AccessToken).where(
                or_(
                    AccessToken.digest.in_(keyring.credential_digests(text, Kind.ACCESS_TOKEN)),
                    AccessToken.refresh_digest.in_(
                        keyring.credential_digests(text, Kind.REFRESH_TOKEN)
                    ),
                )
            )
        )

    def _revoke(self, token: AccessToken, client: Client) -> None:
        if token.application_id != client.application.id:
            raise ForeignTokenError
        revoke_pair(token.id, session=self._context.session, now=self._context.now)
