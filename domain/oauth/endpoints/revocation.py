"""Token revocation (RFC 7009): either token of a pair revokes both."""

from typing import Any

from authlib.oauth2.rfc6749 import OAuth2Error
from authlib.oauth2.rfc7009 import RevocationEndpoint as AuthlibRevocationEndpoint
from sqlalchemy import or_, select

from domain.audit.events import Event, EventKind
from domain.keyring import Kind
from domain.oauth.clients.authentication import Client, names_no_client
from domain.oauth.context import PartOfServer
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.tokens.issuing import revoke_family, revoke_pair
from models import AccessToken


class ForeignTokenError(OAuth2Error):
    """The token belongs to another client; it lives on."""

    error = "unauthorized_client"
    description = "You are not authorized to revoke this token."
    status_code = 403


class RevocationEndpoint(PartOfServer, AuthlibRevocationEndpoint):
    """POST /oauth/revoke."""

    def create_endpoint_response(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, then revoke the pair; an unknown token is no error (2.2).

        A token that was issued for a password alone has no client: whoever holds it may give it
        back. Nobody without a client learns anything of other tokens.
        """
        request.refuse_repeated_parameters()
        if self._gives_back_its_own(request):
            return 200, {}, NO_STORE
        client = self.server.authenticate_client(request, ())
        token = self._find(request.required("token"))
        if token is not None:
            self._revoke_own(token, client)
        return 200, {}, NO_STORE

    def _gives_back_its_own(self, request: ProtocolRequest) -> bool:
        """Revoke a token without a client for who names no client; tell whether it was one."""
        if not names_no_client(request):
            return False
        token = self._find(request.value("token") or "")
        if token is None or token.application_id is not None:
            return False
        self._revoke_pair(token, "password grant")
        return True

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

    def _revoke_own(self, token: AccessToken, client: Client) -> None:
        if token.application_id != client.application.id:
            raise ForeignTokenError
        self._revoke_pair(token, client.application.name)

    def _revoke_pair(self, token: AccessToken, holder: str) -> None:
        if token.revoked_at is None and self._end(token):
            context = self._context
            details = {"by": "application", "scopes": token.scopes}
            context.note(
                Event(
                    kind=EventKind.TOKEN_REVOKED,
                    user_id=token.user_id,
                    subject=holder,
                    details=details,
                )
            )

    def _end(self, token: AccessToken) -> bool:
        """End a pair with the grant that it comes from, which has no other live one (2.1)."""
        session, now, family = self._context.session, self._context.now, token.authorization_id
        if family is None:
            return revoke_pair(token.id, session=session, now=now)
        return revoke_family(family, session=session, now=now)
