"""Introspection (RFC 7662), revocation (RFC 7009) and RP-Initiated Logout (OpenID Connect).

Applications use the introspection endpoint. Clients that only have an access token use GET
/oauth/token/info. Revoking either token of a pair revokes both tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from authlib.oauth2.rfc6749 import InvalidRequestError, OAuth2Error
from authlib.oauth2.rfc7009 import RevocationEndpoint as AuthlibRevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint as AuthlibIntrospectionEndpoint
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.keyring import CredentialType, Keyring
from domain.oauth.client_requests import ClientEndpoint, ClientRequest
from domain.oauth.clients.applications import find_application_row, is_trusted
from domain.oauth.clients.authentication import (
    Client,
    ClientAuthenticationError,
    has_no_client_credentials,
)
from domain.oauth.clients.credential_lookup import (
    ACCESS_TOKEN_LOOKUP,
    REFRESH_TOKEN_LOOKUP,
    CredentialLookup,
)
from domain.oauth.clients.credential_rows import TokenPairRow
from domain.oauth.clients.redirect_uris import add_query_parameters, is_redirect_uri_registered
from domain.oauth.context import NamedApplication
from domain.oauth.grants.registry import SINGLE_VALUE_PARAMETERS
from domain.oauth.openid.backchannel_logout import compute_session_ids
from domain.oauth.openid.id_tokens import (
    IdTokenAudience,
    InvalidHintError,
    get_subject,
    parse_id_token_hint,
)
from domain.oauth.protocol import OAuthResponse, ProtocolRequest
from domain.oauth.token_authentication.bearer import Bearer
from domain.oauth.tokens import get_token_type, revoke_authorization, revoke_token_pair
from models import AccessToken, Application, Authorization

#: The only response for tokens that are not active or belong to another client (section 2.2).
INACTIVE_TOKEN = {"active": False}


class IntrospectionEndpoint(
    ClientEndpoint[TokenPairRow, TokenPairRow | None], AuthlibIntrospectionEndpoint
):
    """The POST /oauth/introspect endpoint."""

    #: False, since resource servers introspect a token for each request that they receive.
    RECORDS_USE = False

    def build_credential_lookup(self, request: ProtocolRequest) -> CredentialLookup[TokenPairRow]:
        """Return the lookup for an access or refresh token.

        The type is clear from the token's prefix, so `token_type_hint` (section 2.1) is ignored.
        """
        return REFRESH_TOKEN_LOOKUP if _is_refresh_token(request) else ACCESS_TOKEN_LOOKUP

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject public clients, which anyone could impersonate to scan for tokens (section 4)."""
        if not client.application.confidential:
            raise ClientAuthenticationError(was_basic="Authorization" in request.headers)

    def validate_request(self, client_request: ClientRequest[TokenPairRow]) -> TokenPairRow | None:
        """Return the token if it is active and belongs to the client.

        An unknown token is not an error.
        """
        found, own_id = client_request.found, client_request.get_client().application.id
        if found is None or found.token_application_id != own_id or not _is_token_pair_live(found):
            return None
        return found

    def execute_request(
        self, client_request: ClientRequest[TokenPairRow], checked_input: TokenPairRow | None
    ) -> Mapping[str, object]:
        """Return the metadata of the token (section 2.2)."""
        if checked_input is None:
            return INACTIVE_TOKEN
        if _is_refresh_token(client_request.request):
            # Refresh tokens have no expiry and no token_type: they are not valid as bearer tokens.
            scopes = client_request.get_client().get_allowed_scope(checked_input.grant_scopes or "")
            return self._build_token_metadata(client_request, checked_input, {"scope": scopes})
        expires_at = checked_input.token_expires_at
        if expires_at is not None and expires_at <= self.server.context.now:
            return INACTIVE_TOKEN
        return self._build_token_metadata(
            client_request, checked_input, _describe_access_token(checked_input)
        )

    def _build_token_metadata(
        self,
        client_request: ClientRequest[TokenPairRow],
        token: TokenPairRow,
        more: dict[str, object],
    ) -> dict[str, object]:
        return {
            "active": True,
            "scope": token.token_scopes,
            "client_id": client_request.get_client().get_client_id(),
            "username": token.username,
            **more,
            "iat": _to_epoch_seconds(token.token_created_at),
            "sub": get_subject(token.token_user_id),
            "iss": self.server.context.policy.issuer,
        }


def _is_refresh_token(request: ProtocolRequest) -> bool:
    return (request.get_parameter("token") or "").startswith(CredentialType.REFRESH_TOKEN)


def _is_token_pair_live(token: TokenPairRow) -> bool:
    """Return whether the pair is not revoked and its user is active."""
    is_revoked = token.token_revoked_at is not None or token.grant_revoked_at is not None
    return token.user_state == ACTIVE and not is_revoked


def _describe_access_token(token: TokenPairRow) -> dict[str, object]:
    thumbprint, expires_at = token.token_key_thumbprint, token.token_expires_at
    ends = {} if expires_at is None else {"exp": _to_epoch_seconds(expires_at)}
    bound = {} if thumbprint is None else {"cnf": {"jkt": thumbprint}}
    return {"token_type": get_token_type(thumbprint), **bound, **ends}


def _to_epoch_seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def build_token_info(bearer: Bearer, *, now: datetime) -> dict[str, object]:
    """Return the response body of GET /oauth/token/info.

    `expires_in` is the remaining lifetime in seconds. A personal, project or group access token has
    no application, and may have no expiry. `scopes` and `expires_in_seconds` are deprecated names
    that older clients still use.
    """
    left = bearer.get_seconds_left(now)
    return {
        "resource_owner_id": bearer.profile.id,
        "scope": list(bearer.scopes),
        "expires_in": left,
        "application": {"uid": bearer.application_uid},
        "created_at": int(bearer.created_at.timestamp()),
        "scopes": list(bearer.scopes),
        "expires_in_seconds": left,
    }


class LogoutStep(Enum):
    """The next step of a logout request, such as a confirmation page or a redirect."""

    SIGN_OUT = "sign out"
    ASK = "ask"
    REDIRECT = "redirect"
    SHOW_DONE = "show done"


@dataclass(frozen=True, kw_only=True)
class LogoutRequest:
    """A validated logout request."""

    #: ID of the user in the id_token_hint; None if the request has no hint.
    user_id: int | None
    application_name: str | None
    #: Registered redirect URI from the request; None if the request has no redirect URI.
    redirect_uri: str | None
    state: str | None
    #: True if an administrator trusts the application; any user can register other applications.
    is_trusted: bool = False
    #: client_id of the application; None if the request names no application.
    application_uid: str | None = None
    #: Session ID (`sid`) in the id_token_hint; None if the hint has no session ID.
    sid: str | None = None


def parse_logout_request(
    request: ProtocolRequest, *, issuer: str, session: Session
) -> LogoutRequest:
    """Return the validated logout request (sections 2 and 3).

    Raise invalid_request, which is shown on a page, if a parameter is invalid.
    """
    request.check_no_repeated_parameters(SINGLE_VALUE_PARAMETERS)
    hinted = _parse_logout_hint(request.get_parameter("id_token_hint"), issuer, session)
    uid = _resolve_client_id(request.get_parameter("client_id"), hinted)
    application = find_application_row(uid, session=session) if uid else None
    if uid and application is None:
        raise InvalidRequestError("No application with this client_id is registered.")
    return LogoutRequest(
        user_id=hinted.user_id if hinted else None,
        application_name=application.name if application else None,
        application_uid=application.uid if application else None,
        sid=hinted.sid if hinted else None,
        is_trusted=application is not None and is_trusted(application),
        redirect_uri=_check_post_logout_uri(
            request.get_parameter("post_logout_redirect_uri"), application
        ),
        state=request.get_parameter("state"),
    )


def _parse_logout_hint(hint: str | None, issuer: str, session: Session) -> IdTokenAudience | None:
    if hint is None:
        return None
    try:
        return parse_id_token_hint(hint, issuer=issuer, session=session)
    except InvalidHintError:
        raise InvalidRequestError("The id_token_hint is not an ID token of this service.") from None


def _resolve_client_id(client_id: str | None, hinted: IdTokenAudience | None) -> str | None:
    if client_id is not None and "\x00" in client_id:
        raise InvalidRequestError("No application with this client_id is registered.")
    if hinted and client_id not in {None, hinted.application_uid}:
        raise InvalidRequestError("The id_token_hint was issued to another application.")
    return hinted.application_uid if hinted else client_id


def _check_post_logout_uri(uri: str | None, application: Application | None) -> str | None:
    """Return the post-logout redirect URI, which must be registered."""
    if uri is None:
        return None
    if application is None:
        raise InvalidRequestError("post_logout_redirect_uri requires client_id or id_token_hint.")
    if not is_redirect_uri_registered(uri, application.redirect_uris):
        raise InvalidRequestError(
            "The post_logout_redirect_uri is not registered for this application."
        )
    return uri


@dataclass(frozen=True, kw_only=True)
class BrowserSession:
    """The signed-in user of a browser, and the ID of the sign-in."""

    user_id: int
    sign_in_id: int


def find_next_logout_step(
    logout_request: LogoutRequest,
    browser: BrowserSession | None,
    *,
    session: Session,
    keyring: Keyring,
) -> LogoutStep:
    """Return the next step of a logout.

    `browser` is the browser's sign-in, or None if no user is signed in.

    The user is signed out without confirmation only if the `id_token_hint` was issued for this
    sign-in (section 2). Other hints are not sufficient: any page could redirect the browser here,
    and every application has ID tokens of its users. For the same reason, the browser is redirected
    back only with a hint or after a click.

    If no user is signed in, a hint proves nothing about this browser, so the browser is redirected
    only to trusted applications.
    """
    if browser is not None:
        is_own = _is_hint_for_session(logout_request, browser, session=session, keyring=keyring)
        return LogoutStep.SIGN_OUT if is_own else LogoutStep.ASK
    is_hinted = logout_request.user_id is not None and logout_request.redirect_uri is not None
    return LogoutStep.REDIRECT if is_hinted and logout_request.is_trusted else LogoutStep.SHOW_DONE


def _is_hint_for_session(
    logout_request: LogoutRequest, browser: BrowserSession, *, session: Session, keyring: Keyring
) -> bool:
    """Return whether the hint was issued for this sign-in and the access was not revoked.

    A user who revokes the application's access clears the session ID of the grant. An application
    that revokes its own tokens keeps the session ID, and can still sign the user out.
    """
    if (
        logout_request.sid is None
        or logout_request.application_uid is None
        or logout_request.user_id != browser.user_id
    ):
        return False
    if logout_request.sid not in compute_session_ids(
        browser.sign_in_id, logout_request.application_uid, keyring=keyring
    ):
        return False
    found = session.scalar(
        select(Authorization.id)
        .join(Application, Application.id == Authorization.application_id)
        .where(
            Application.uid == logout_request.application_uid,
            Authorization.user_id == browser.user_id,
            Authorization.sid == logout_request.sid,
        )
        .limit(1)
    )
    return found is not None


def build_return_url(logout_request: LogoutRequest) -> str | None:
    """Return the URL to redirect to, with the state of the request (section 3).

    Return None if the request has no redirect URI.
    """
    if logout_request.redirect_uri is None or logout_request.state is None:
        return logout_request.redirect_uri
    return add_query_parameters(logout_request.redirect_uri, [("state", logout_request.state)])


def build_redirect(location: str) -> OAuthResponse:
    """Return a response that redirects the browser to a URL."""
    return OAuthResponse(status=302, headers=(("Location", location),))


class ForeignTokenError(OAuth2Error):
    """Error for a token that belongs to another client.

    The token stays valid.
    """

    error = "unauthorized_client"
    description = "You are not authorized to revoke this token."
    status_code = 403


class RevocationEndpoint(ClientEndpoint[None, AccessToken | None], AuthlibRevocationEndpoint):
    """The POST /oauth/revoke endpoint."""

    #: False to prevent deadlocks: revocations lock the token rows first, but deletions lock the
    #: application first.
    RECORDS_USE = False
    MAY_LACK_CLIENT = True

    def is_client_optional(self, request: ProtocolRequest) -> bool:
        """Return whether the token was issued with the password grant and has no client.

        The holder of such a token may revoke it. For other tokens, a request without a client
        reveals nothing.
        """
        if not has_no_client_credentials(request):
            return False
        token = self._find_token(request.get_parameter("token") or "")
        return token is not None and token.application_id is None

    def validate_request(self, client_request: ClientRequest[None]) -> AccessToken | None:
        """Return the token, which must belong to the client.

        An unknown token is not an error (section 2.2).
        """
        token = self._find_token(client_request.request.require_parameter("token"))
        own_id = client_request.client.application.id if client_request.client else None
        if token is not None and token.application_id != own_id:
            raise ForeignTokenError
        return token

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: AccessToken | None
    ) -> Mapping[str, object]:
        """Revoke the pair that contains the token, unless the token is unknown."""
        if checked_input is not None:
            self._revoke_pair(
                checked_input, client_request.client.application if client_request.client else None
            )
        return {}

    def _find_token(self, text: str) -> AccessToken | None:
        """Return the access or refresh token, regardless of `token_type_hint` (section 2.1)."""
        keyring = self.server.context.keyring
        return self.server.context.session.scalar(
            select(AccessToken).where(
                or_(
                    AccessToken.digest.in_(
                        keyring.compute_digests(text, CredentialType.ACCESS_TOKEN)
                    ),
                    AccessToken.refresh_digest.in_(
                        keyring.compute_digests(text, CredentialType.REFRESH_TOKEN)
                    ),
                )
            )
        )

    def _revoke_pair(self, token: AccessToken, holder: NamedApplication | None) -> None:
        if token.revoked_at is None and self._revoke_token_with_grant(token):
            self.server.context.record_event(
                EventKind.TOKEN_REVOKED,
                holder,
                user_id=token.user_id,
                details={"by": "application", "scopes": token.scopes},
            )

    def _revoke_token_with_grant(self, token: AccessToken) -> bool:
        """Revoke a token pair with its grant (section 2.1), and return whether it was still valid.

        An exchanged token is revoked without its grant, so that the other tokens stay valid.
        """
        context, family = self.server.context, token.authorization_id
        session, now = context.session, context.now
        if family is None or token.is_exchanged:
            return revoke_token_pair(token.id, session=session, now=now)
        return revoke_authorization(family, session=session, now=now)
