"""Refreshing (RFC 6749 section 6) with rotation and reuse detection (RFC 9700 section 4.14)."""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidScopeError, grants
from sqlalchemy import select

from domain.accounts.users import ACTIVE
from domain.keyring import Kind
from domain.oauth.clients import Client
from domain.oauth.context import OAuthContext
from domain.oauth.pkce import check_verifier
from domain.oauth.scopes import UnknownScopeError, parse_scopes
from domain.oauth.tokens import (
    Grant,
    hold_family,
    issue_pair,
    note_use,
    revoke_family,
    revoke_pair,
)
from domain.oauth.wire import NO_STORE, ProtocolRequest
from models import AccessToken, Authorization, User

INVALID_REFRESH_TOKEN = (
    "The refresh token is invalid, expired, used, revoked, or was issued to another client."  # noqa: S105
)


class RefreshTokenGrant(grants.RefreshTokenGrant):
    """Replaces a pair by a new one; the old one dies at once."""

    request: ProtocolRequest

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
            self._punish_reuse(token, client)
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        self._check_origin(authorization)
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

    def _punish_reuse(self, token: AccessToken, client: Client) -> None:
        """End the whole family where the client cannot prove that the token is its own."""
        if client.application.confidential or token.authorization_id is None:
            return
        context = self._context
        revoke_family(token.authorization_id, session=context.session, now=context.now)

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
        """Kill the old pair first, then issue: of parallel refreshes one wins."""
        context = self._context
        token = self.request.refresh_token
        if not hold_family(token.authorization_id, session=context.session):
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        if not revoke_pair(token.id, session=context.session, now=context.now):
            raise InvalidGrantError(INVALID_REFRESH_TOKEN)
        note_use(self.request.client.application, now=context.now)
        grant = Grant(
            user_id=token.user_id,
            application_id=token.application_id,
            authorization_id=token.authorization_id,
            scopes=self.request.scope,
        )
        return 200, issue_pair(grant, context), NO_STORE
