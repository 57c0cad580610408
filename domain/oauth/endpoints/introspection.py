"""Token introspection (RFC 7662): an application asks about tokens of its own."""

from datetime import datetime
from typing import Any

from authlib.oauth2.rfc7662 import IntrospectionEndpoint as AuthlibIntrospectionEndpoint
from sqlalchemy import Row, and_, or_, select

from domain.accounts.users import ACTIVE
from domain.keyring import Kind
from domain.oauth.clients import Client, ClientRefusedError
from domain.oauth.context import OAuthContext
from domain.oauth.id_tokens import subject
from domain.oauth.tokens import token_type_of
from domain.oauth.wire import NO_STORE, ProtocolRequest
from models import AccessToken, Authorization, User

#: Section 2.2: nothing else is said of a token that is not live or not the asker's.
INACTIVE = {"active": False}


class IntrospectionEndpoint(AuthlibIntrospectionEndpoint):
    """POST /oauth/introspect."""

    def create_endpoint_request(self, request: ProtocolRequest) -> ProtocolRequest:
        """Take the request as it is; it was built for this endpoint."""
        return request

    @property
    def _context(self) -> OAuthContext:
        context: OAuthContext = self.server.context
        return context

    def create_endpoint_response(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, then say what its token is good for (section 2.2)."""
        request.refuse_repeated_parameters()
        client = self.server.authenticate_client(request, ())
        if not client.application.confidential:
            # Anybody can say that they are a public client, and would try tokens here (section 4).
            raise ClientRefusedError(was_basic="Authorization" in request.headers)
        return 200, self._describe(request.required("token"), client), NO_STORE

    def _describe(self, text: str, client: Client) -> dict[str, Any]:
        # A token tells by its prefix what it is, so the hint (section 2.1) saves nothing.
        keyring = self._context.keyring
        access = self._find(AccessToken.digest, keyring.credential_digests(text, Kind.ACCESS_TOKEN))
        if access is not None:
            is_live = access.expires_at is None or access.expires_at > self._context.now
            return self._live(access, client, _of_access(access)) if is_live else INACTIVE
        refresh = self._find(
            AccessToken.refresh_digest, keyring.credential_digests(text, Kind.REFRESH_TOKEN)
        )
        # It has no end, and no token_type: it is of no use as a bearer token.
        return self._live(refresh, client, {}) if refresh is not None else INACTIVE

    def _find(self, column: Any, digests: tuple[bytes, ...]) -> Any:
        """Return a token that has not been revoked, with its user, in one statement."""
        if not digests:
            return None
        return self._context.session.execute(
            select(
                AccessToken.application_id,
                AccessToken.user_id,
                AccessToken.scopes,
                AccessToken.created_at,
                AccessToken.expires_at,
                AccessToken.key_thumbprint,
                User.username,
            )
            .join(User, and_(User.id == AccessToken.user_id, User.state == ACTIVE))
            .outerjoin(Authorization, Authorization.id == AccessToken.authorization_id)
            .where(
                column.in_(digests),
                AccessToken.revoked_at.is_(None),
                or_(Authorization.id.is_(None), Authorization.revoked_at.is_(None)),
            )
        ).first()

    def _live(self, token: Row[Any], client: Client, more: dict[str, Any]) -> dict[str, Any]:
        if token.application_id != client.application.id:
            return INACTIVE
        return {
            "active": True,
            "scope": token.scopes,
            "client_id": client.application.uid,
            "username": token.username,
            **more,
            "iat": _seconds(token.created_at),
            "sub": subject(token.user_id),
            "iss": self._context.policy.issuer,
        }


def _of_access(token: Row[Any]) -> dict[str, Any]:
    ends = {} if token.expires_at is None else {"exp": _seconds(token.expires_at)}
    bound = {} if token.key_thumbprint is None else {"cnf": {"jkt": token.key_thumbprint}}
    return {"token_type": token_type_of(token.key_thumbprint), **bound, **ends}


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
