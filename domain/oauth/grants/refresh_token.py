"""Refreshing (RFC 6749 section 6) with rotation and reuse detection (RFC 9700 section 4.14)."""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidScopeError, grants
from sqlalchemy import select

from domain.accounts.users import ACTIVE
from domain.audit.events import Event, EventKind
from domain.keyring import Kind
from domain.oauth.clients import Client
from domain.oauth.context import OAuthContext
from domain.oauth.id_tokens import Authentication
from domain.oauth.pkce import check_verifier
from domain.oauth.scopes import UnknownScopeError, parse_scopes
from domain.oauth.successors import find_successor, issue_successor, send_again
from domain.oauth.tokens import Grant, hold_family, note_use, retire_pair, revoke_family
from domain.oauth.wire import NO_STORE, ProtocolRequest
from models import AccessToken, Authorization, User

INVALID_REFRESH_TOKEN = (
    "The refresh token is invalid, expired, used, revoked, or was issued to another client."  # noqa: S105
)


class RefreshTokenGrant(grants.RefreshTokenGrant):
    """Replaces a pair by a new one; the old one dies at once."""

    request: ProtocolRequest
    #: Of the presented token, once that was found.
    _authorization: Authorization | None

    @property
    def _context(self) -> OAuthContext:
        context: OAuthContext = self.server.context
        return context

    def validate_token_request(self) -> None:
        """Check client, token, what came with it, and scope."""
        self.request.refuse_repeated_parameters()
        client = self.server.authenticate_client(self.request, ())
        token, authorization, user = self._find(self.request.required("refresh_token"))
        if token.application_id != client.application.id or user.state != ACTIVE:
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        if token.revoked_at is not None:
            self._refuse_reuse(token, client)
        self._check_key(token, client)
        self._check_origin(authorization)
        self._authorization = authorization
        self.request.scope = self._narrowed_scope(token.scopes)
        self.request.refresh_token = token

    def _find(self, refresh_token: str) -> tuple[AccessToken, Authorization | None, User]:
        context = self._context
        digests = context.keyring.credential_digests(refresh_token, Kind.REFRESH_TOKEN)
        row = context.session.execute(
            select(AccessToken, Authorization, User)
            .join(User, User.id == AccessToken.user_id)
            .outerjoin(Authorization, Authorization.id == AccessToken.authorization_id)
            .where(AccessToken.refresh_digest.in_(digests))
        ).first()
        if row is None:
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        return row[0], row[1], row[2]

    def _refuse_reuse(self, token: AccessToken, client: Client) -> None:
        """Refuse a dead token, unless its answer may be sent once more.

        The whole family ends where the client cannot prove that the token is its own.
        """
        context = self._context
        if find_successor(self.request.required("refresh_token"), token, context) is not None:
            return
        if not client.application.confidential and token.authorization_id is not None:
            revoke_family(token.authorization_id, session=context.session, now=context.now)
        self._note_reuse(token, client)
        raise InvalidGrantError(INVALID_REFRESH_TOKEN)

    def _note_reuse(self, token: AccessToken, client: Client) -> None:
        """Keep what may have been a theft; an ordinary refresh is not kept, there are too many."""
        self._context.note(
            Event(
                kind=EventKind.REFRESH_REUSED,
                user_id=token.user_id,
                subject=client.application.name,
                details={"application_id": client.application.uid, "scopes": token.scopes},
            )
        )

    def _check_key(self, token: AccessToken, client: Client) -> None:
        """Refuse a public client without the key of its pair (RFC 9449 section 5).

        A secret binds the refresh token of a confidential one already; its key may change.
        """
        is_bound = token.key_thumbprint is not None and not client.application.confidential
        if is_bound and token.key_thumbprint != self._context.key_thumbprint:
            raise InvalidGrantError("The refresh token is bound to a key: prove it by DPoP.")

    def _check_origin(self, authorization: Authorization | None) -> None:
        """Compare what is sent along with the original authorization; nothing need be."""
        redirect_uri = self.request.value("redirect_uri")
        original = authorization.redirect_uri if authorization else None
        if redirect_uri is not None and redirect_uri != original:
            raise InvalidGrantError("The redirect_uri is not that of the authorization request.")
        verifier = self.request.value("code_verifier")
        if verifier is not None:
            check_verifier(verifier, authorization.code_challenge if authorization else None)

    def _narrowed_scope(self, granted: str) -> str:
        """Return the asked scope if it is within what was granted (section 6)."""
        text = self.request.value("scope")
        if text is None:
            return granted
        try:
            scopes = parse_scopes(text)
        except UnknownScopeError:
            scopes = ()
        if not scopes or not set(scopes) <= set(granted.split()):
            raise InvalidScopeError("The asked scope goes beyond what the user granted.")
        return " ".join(scopes)

    def create_token_response(self) -> Any:
        """Kill the old pair first, then issue: of parallel refreshes one wins.

        The others get the winner's pair if the instance lets answers be sent again.
        """
        context, token = self._context, self.request.refresh_token
        presented = self.request.required("refresh_token")
        if self._retire(token):
            note_use(self.request.client.application, now=context.now)
            return 200, issue_successor(presented, self._grant(token), context), NO_STORE
        successor = find_successor(presented, token, context)
        if successor is None or successor.token.key_thumbprint != context.key_thumbprint:
            self._note_reuse(token, self.request.client)
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        if self.request.value("scope") and self.request.scope != successor.token.scopes:
            raise InvalidScopeError("The refresh token was used for another scope already.")
        return 200, send_again(successor, self._grant(token), context), NO_STORE

    def _retire(self, token: AccessToken) -> bool:
        """Tell whether this refresh is the first one; if not, read what the first one did."""
        session, now = self._context.session, self._context.now
        if token.revoked_at is not None:
            return False
        if hold_family(token.authorization_id, session=session) and retire_pair(
            token.id, session=session, now=now
        ):
            return True
        session.refresh(token)
        return False

    def _grant(self, token: AccessToken) -> Grant:
        return Grant(
            user_id=token.user_id,
            application_id=token.application_id,
            authorization_id=token.authorization_id,
            scopes=self.request.scope,
            authentication=self._authentication(),
        )

    def _authentication(self) -> Authentication | None:
        """Repeat when the user signed in, without the nonce (OpenID Connect Core section 12.2)."""
        if self._authorization is None:
            return None
        return Authentication(auth_time=self._authorization.auth_time)
