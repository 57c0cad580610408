"""Token revocation (RFC 7009): either token of a pair revokes both."""

from collections.abc import Mapping

from authlib.oauth2.rfc6749 import OAuth2Error
from authlib.oauth2.rfc7009 import RevocationEndpoint as AuthlibRevocationEndpoint
from sqlalchemy import or_, select

from domain.audit.events import EventKind
from domain.keyring import CredentialType
from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.clients.authentication import names_no_client
from domain.oauth.context import Named
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.tokens.issuing import revoke_family, revoke_pair
from models import AccessToken


class ForeignTokenError(OAuth2Error):
    """The token belongs to another client and stays valid."""

    error = "unauthorized_client"
    description = "You are not authorized to revoke this token."
    status_code = 403


class RevocationEndpoint(ClientEndpoint[None, AccessToken | None], AuthlibRevocationEndpoint):
    """POST /oauth/revoke."""

    #: The rows of the tokens are locked by now, and a deletion locks the application before them.
    RECORDS_USE = False
    MAY_LACK_CLIENT = True

    def takes_no_client(self, request: ProtocolRequest) -> bool:
        """Return whether the token was issued for a password and has no client.

        Its holder may revoke it. Of other tokens nobody learns anything without a client.
        """
        if not names_no_client(request):
            return False
        token = self._find(request.value("token") or "")
        return token is not None and token.application_id is None

    def check(self, asked: ClientRequest[None]) -> AccessToken | None:
        """Return the token, which must be the client's own; an unknown one is no error (2.2)."""
        token = self._find(asked.request.required("token"))
        own_id = asked.client.application.id if asked.client else None
        if token is not None and token.application_id != own_id:
            raise ForeignTokenError
        return token

    def perform(
        self, asked: ClientRequest[None], checked: AccessToken | None
    ) -> Mapping[str, object]:
        """Revoke the pair of the token."""
        if checked is not None:
            self._revoke_pair(checked, asked.client.application if asked.client else None)
        return {}

    def _find(self, text: str) -> AccessToken | None:
        """Find the token as an access or refresh token; the hint is not needed (section 2.1)."""
        keyring = self.server.context.keyring
        return self.server.context.session.scalar(
            select(AccessToken).where(
                or_(
                    AccessToken.digest.in_(
                        keyring.credential_digests(text, CredentialType.ACCESS_TOKEN)
                    ),
                    AccessToken.refresh_digest.in_(
                        keyring.credential_digests(text, CredentialType.REFRESH_TOKEN)
                    ),
                )
            )
        )

    def _revoke_pair(self, token: AccessToken, holder: Named | None) -> None:
        if token.revoked_at is None and self._end(token):
            self.server.context.record_event(
                EventKind.TOKEN_REVOKED,
                holder,
                user_id=token.user_id,
                details={"by": "application", "scopes": token.scopes},
            )

    def _end(self, token: AccessToken) -> bool:
        """Revoke a pair with its grant, which has no other valid pair (section 2.1).

        An exchanged token ends alone: the tokens that it was exchanged for go on.
        """
        context, family = self.server.context, token.authorization_id
        session, now = context.session, context.now
        if family is None or token.is_exchanged:
            return revoke_pair(token.id, session=session, now=now)
        return revoke_family(family, session=session, now=now)
