"""Token introspection (RFC 7662) by applications, and GET /oauth/token/info by the token itself."""

from collections.abc import Mapping
from datetime import datetime

from authlib.oauth2.rfc7662 import IntrospectionEndpoint as AuthlibIntrospectionEndpoint

from domain.accounts.users import ACTIVE
from domain.keyring import CredentialType
from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.clients.authentication import Client, ClientRefusedError
from domain.oauth.clients.credential_lookup import (
    ASKED_ACCESS_TOKEN,
    ASKED_REFRESH_TOKEN,
    CredentialLookup,
)
from domain.oauth.clients.found_rows import FoundPair
from domain.oauth.openid.id_tokens import subject
from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.tokens.issuing import token_type_of

#: Section 2.2: nothing else is said of a token that is not live or not the asker's.
INACTIVE = {"active": False}


class IntrospectionEndpoint(
    ClientEndpoint[FoundPair, FoundPair | None], AuthlibIntrospectionEndpoint
):
    """POST /oauth/introspect."""

    #: Resource servers ask once for each request that they get.
    RECORDS_USE = False

    def lookup(self, request: ProtocolRequest) -> CredentialLookup[FoundPair]:
        """Return the lookup of an access or a refresh token.

        The prefix of a token says which it is, so the hint of section 2.1 is not needed.
        """
        return ASKED_REFRESH_TOKEN if _is_refresh_token(request) else ASKED_ACCESS_TOKEN

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Refuse public clients, which anybody could impersonate to scan tokens (section 4)."""
        if not client.application.confidential:
            raise ClientRefusedError(was_basic="Authorization" in request.headers)

    def check(self, asked: ClientRequest[FoundPair]) -> FoundPair | None:
        """Return the token if it is live and the client's own; an unknown one is no error."""
        found, own_id = asked.found, asked.get_client().application.id
        if found is None or found.token_application_id != own_id or not _is_live(found):
            return None
        return found

    def perform(
        self, asked: ClientRequest[FoundPair], checked: FoundPair | None
    ) -> Mapping[str, object]:
        """Return the metadata of the token (section 2.2)."""
        if checked is None:
            return INACTIVE
        if _is_refresh_token(asked.request):
            # It has no end, and no token_type: it is of no use as a bearer token.
            return self._describe(asked, checked, {"scope": checked.grant_scopes})
        expires_at = checked.token_expires_at
        if expires_at is not None and expires_at <= self.server.context.now:
            return INACTIVE
        return self._describe(asked, checked, _of_access(checked))

    def _describe(
        self, asked: ClientRequest[FoundPair], token: FoundPair, more: dict[str, object]
    ) -> dict[str, object]:
        return {
            "active": True,
            "scope": token.token_scopes,
            "client_id": asked.get_client().get_client_id(),
            "username": token.username,
            **more,
            "iat": _seconds(token.token_created_at),
            "sub": subject(token.token_user_id),
            "iss": self.server.context.policy.issuer,
        }


def _is_refresh_token(request: ProtocolRequest) -> bool:
    return (request.value("token") or "").startswith(CredentialType.REFRESH_TOKEN)


def _is_live(token: FoundPair) -> bool:
    """Return whether the pair is not revoked and its user is active."""
    is_revoked = token.token_revoked_at is not None or token.grant_revoked_at is not None
    return token.user_state == ACTIVE and not is_revoked


def _of_access(token: FoundPair) -> dict[str, object]:
    thumbprint, expires_at = token.token_key_thumbprint, token.token_expires_at
    ends = {} if expires_at is None else {"exp": _seconds(expires_at)}
    bound = {} if thumbprint is None else {"cnf": {"jkt": thumbprint}}
    return {"token_type": token_type_of(thumbprint), **bound, **ends}


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def token_info(bearer: Bearer, *, now: datetime) -> dict[str, object]:
    """Return the token info object; `expires_in` is the remaining lifetime in seconds.

    `scopes` and `expires_in_seconds` are the older names, kept for older clients.
    """
    left = bearer.seconds_left(now)
    return {
        "resource_owner_id": bearer.profile.id,
        "scope": list(bearer.scopes),
        "expires_in": left,
        "application": {"uid": bearer.application_uid},
        "created_at": int(bearer.created_at.timestamp()),
        "scopes": list(bearer.scopes),
        "expires_in_seconds": left,
    }
