"""Token introspection (RFC 7662): an application asks about tokens of its own."""

from datetime import datetime
from typing import Any

from authlib.oauth2.rfc7662 import IntrospectionEndpoint as AuthlibIntrospectionEndpoint

from domain.accounts.users import ACTIVE
from domain.database.statements import HotRow
from domain.keyring import Kind
from domain.oauth.clients.authentication import ClientRefusedError
from domain.oauth.clients.credential_lookup import ASKED_ACCESS_TOKEN, ASKED_REFRESH_TOKEN
from domain.oauth.context import PartOfServer
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.openid.id_tokens import subject
from domain.oauth.tokens.issuing import token_type_of

#: Section 2.2: nothing else is said of a token that is not live or not the asker's.
INACTIVE = {"active": False}


class IntrospectionEndpoint(PartOfServer, AuthlibIntrospectionEndpoint):
    """POST /oauth/introspect."""

    def create_endpoint_response(self, request: ProtocolRequest) -> Any:
        """Authenticate the client, then say what its token is good for (section 2.2)."""
        request.refuse_repeated_parameters()
        # A token tells by its prefix what it is, so the hint (section 2.1) saves nothing.
        is_refresh = (request.value("token") or "").startswith(Kind.REFRESH_TOKEN)
        lookup = ASKED_REFRESH_TOKEN if is_refresh else ASKED_ACCESS_TOKEN
        client, found = self.server.authenticate_with(request, lookup)
        if not client.application.confidential:
            # Anybody can say that they are a public client, and would try tokens here (section 4).
            raise ClientRefusedError(was_basic="Authorization" in request.headers)
        request.required("token")
        if found is None or not _is_live(found):
            return 200, INACTIVE, NO_STORE
        if is_refresh:
            # It has no end, and no token_type: it is of no use as a bearer token.
            return 200, self._describe(found, {"scope": found.grant_scopes}), NO_STORE
        if found.token_expires_at is not None and found.token_expires_at <= self._context.now:
            return 200, INACTIVE, NO_STORE
        return 200, self._describe(found, _of_access(found)), NO_STORE

    def _describe(self, token: HotRow, more: dict[str, Any]) -> dict[str, Any]:
        return {
            "active": True,
            "scope": token.token_scopes,
            "client_id": token.uid,
            "username": token.username,
            **more,
            "iat": _seconds(token.token_created_at),
            "sub": subject(token.token_user_id),
            "iss": self._context.policy.issuer,
        }


def _is_live(token: HotRow) -> bool:
    """Tell whether the pair is its asker's, and neither dead nor of somebody who is locked."""
    is_revoked = token.token_revoked_at is not None or token.grant_revoked_at is not None
    is_own = token.token_application_id == token.id
    return is_own and token.user_state == ACTIVE and not is_revoked


def _of_access(token: HotRow) -> dict[str, Any]:
    thumbprint, expires_at = token.token_key_thumbprint, token.token_expires_at
    ends = {} if expires_at is None else {"exp": _seconds(expires_at)}
    bound = {} if thumbprint is None else {"cnf": {"jkt": thumbprint}}
    return {"token_type": token_type_of(thumbprint), **bound, **ends}


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
