"""Token refresh (RFC 6749 section 6) with rotation and reuse detection (RFC 9700 section 4.14)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, grants
from pydantic import Field
from sqlalchemy import ColumnElement, select

from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.allowed_groups import is_in_allowed_groups
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import (
    ACTIVE_STATE,
    REFRESH_GRANT_LOOKUP,
    LookupWithWrite,
    build_registered_scopes_condition,
)
from domain.oauth.clients.credential_rows import TokenPairRow
from domain.oauth.openid.id_tokens import GrantAuthentication
from domain.oauth.pkce import check_verifier
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    INVALID_PROOF,
    NOT_IN_ALLOWED_GROUPS,
    REDIRECT_URI_MISMATCH,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import check_scopes_allowed, parse_known_scopes
from domain.oauth.tokens import (
    REFRESH_TOKEN_REDEMPTION,
    Grant,
    RedemptionLookup,
    build_consume_pair_update,
    build_replayed_response,
    build_token_response,
    find_refresh_replay,
    generate_refreshed_pair,
    redeem_credential,
    revoke_authorization,
)
from models import AccessToken

_REUSED_TOKEN_REASON = RejectionReason(
    name="reused_refresh_token",
    title="Refresh token used twice",
    advice=(
        "Each refresh returns a new refresh token: store it, and let only one process or tab "
        "refresh at a time."
    ),
)
#: One error for unknown tokens, tokens of other clients and tokens of inactive users. An attacker
#: with a stolen token must not be able to distinguish these cases.
UNKNOWN_REFRESH_TOKEN = Rejection(
    sentence="The refresh token is unknown, or was issued to another client.",
    reason=RejectionReason(
        name="unknown_refresh_token",
        title="Unknown refresh token",
        advice=(
            "The token is truncated, was issued to another client_id, or expired long ago. Send "
            "the user through authorization again."
        ),
    ),
)
REVOKED_REFRESH_TOKEN = Rejection(
    sentence="The refresh token was revoked.",
    reason=RejectionReason(
        name="revoked_refresh_token",
        title="Revoked refresh token",
        advice=(
            "The user or an administrator revoked the access. Send the user through "
            "authorization again."
        ),
    ),
)
USED_REFRESH_TOKEN = Rejection(
    sentence="The refresh token has already been used.", reason=_REUSED_TOKEN_REASON
)
EXPIRED_REFRESH_TOKEN = Rejection(
    sentence="The refresh token has expired. Send the user through authorization again.",
    reason=RejectionReason(
        name="expired_refresh_token",
        title="Expired refresh token",
        advice="The application limits the lifetime of refresh tokens. See the application's page.",
    ),
)
MISSING_REFRESH_PROOF = Rejection(
    sentence="The refresh token is bound to a key: send a DPoP proof.", reason=INVALID_PROOF
)
WRONG_REDIRECT_URI = Rejection(
    sentence="The redirect_uri does not match the authorization request.",
    reason=REDIRECT_URI_MISMATCH,
)
REUSED_REFRESH_TOKEN = Rejection(
    sentence=(
        "The refresh token has already been used, so all tokens of the same authorization are "
        "revoked."
    ),
    reason=_REUSED_TOKEN_REASON,
)


#: Parameters that are compared with the authorization, or that narrow the scope.
_OPTIONAL_PARAMETERS = ("scope", "redirect_uri", "code_verifier")


def _list_refresh_acceptance_conditions(found: Any) -> Sequence[ColumnElement[bool]]:
    """Return the SQL conditions for refreshing a token pair in a single statement.

    The conditions do not cover requests with a DPoP proof or optional parameters.
    """
    return (
        found.token_application_id == found.id,
        found.user_state == ACTIVE_STATE,
        found.token_key_thumbprint.is_(None),
        found.refresh_idle_days.is_(None),
        found.refresh_longest_days.is_(None),
        found.allowed_group_ids.is_(None),
        build_registered_scopes_condition(found.grant_scopes, found),
    )


REFRESH_REDEMPTION_LOOKUP = RedemptionLookup(
    REFRESH_GRANT_LOOKUP,
    lambda value: build_consume_pair_update(value("token_id"), value("token_authorization_id")),
    _list_refresh_acceptance_conditions,
    authorization_id="token_authorization_id",
    application_id="token_application_id",
    user_id="token_user_id",
    scopes="grant_scopes",
    keeps_admin_mode="token_keeps_admin_mode",
)


class RefreshParameters(ClientParameters):
    """Request parameters of the refresh token grant (RFC 6749 section 6)."""

    grant_type: Literal["refresh_token"]
    refresh_token: str
    scope: str = Field(
        default="",
        description="Subset of the granted scopes. Omit it to request all granted scopes.",
    )
    redirect_uri: str = Field(
        default="",
        description=(
            "Optional. If given, it must match the redirect URI of the authorization request."
        ),
    )
    code_verifier: str = Field(
        default="",
        description=(
            "Optional. If given, it must match the redirect URI of the authorization request."
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CheckedRefreshRequest:
    """The token pair to refresh, and the scope of the new pair."""

    found: TokenPairRow
    #: Time of the sign-in on which the grant is based.
    auth_time: datetime
    #: Scopes of the new pair, separated by spaces, in the order of `SCOPES`.
    scopes: str


class RefreshTokenGrant(TokenGrant[TokenPairRow, CheckedRefreshRequest], grants.RefreshTokenGrant):
    """The refresh token grant, which replaces a token pair and immediately revokes the old pair."""

    CREDENTIAL = "refresh token"
    REQUEST = RefreshParameters
    REASONS = (
        UNKNOWN_REFRESH_TOKEN.reason,
        REVOKED_REFRESH_TOKEN.reason,
        USED_REFRESH_TOKEN.reason,
        EXPIRED_REFRESH_TOKEN.reason,
    )
    REMEDIES = (
        (
            "Use a refresh token once. A retry within a few seconds (REFRESH_REPLAY_SECONDS) "
            "returns the same new tokens. Later reuse by a public application revokes all tokens "
            "of the authorization."
        ),
    )
    IS_REGISTRABLE = True
    LOOKUP = REFRESH_GRANT_LOOKUP

    def get_lookup_with_write(self, request: ProtocolRequest) -> LookupWithWrite | None:
        """Return the lookup that also replaces the pair, unless there are optional parameters."""
        presented, context = request.get_parameter("refresh_token"), self.server.context
        if presented is None or any(request.get_parameter(name) for name in _OPTIONAL_PARAMETERS):
            return None
        return REFRESH_REDEMPTION_LOOKUP.build_pair_lookup(
            generate_refreshed_pair(presented, context), context
        )

    def validate_request(
        self, client_request: ClientRequest[TokenPairRow]
    ) -> CheckedRefreshRequest:
        """Check the token, its key, the other parameters and the scope."""
        found, client = (
            client_request.get_credential(UNKNOWN_REFRESH_TOKEN),
            client_request.get_client(),
        )
        is_own = found.token_application_id == client.application.id
        if not is_own or found.user_state != ACTIVE:
            raise RejectedGrantError(UNKNOWN_REFRESH_TOKEN)
        if found.token_revoked_at is not None:
            self._check_not_reused(found, client_request)
        self._check_key_binding(found, client_request)
        self._check_authorization_parameters(found, client_request.request)
        granted, auth_time = found.grant_scopes, found.grant_auth_time
        if granted is None or auth_time is None:  # There is no authorization to continue.
            raise RejectedGrantError(UNKNOWN_REFRESH_TOKEN)
        self._check_refresh_limits(found, client)
        scopes = client.get_granted_scope(
            self._narrow_scope(client_request.request.get_parameter("scope"), granted)
        )
        return CheckedRefreshRequest(found=found, auth_time=auth_time, scopes=scopes)

    def _check_refresh_limits(self, token_pair: TokenPairRow, client: Client) -> None:
        """Reject tokens that the application's allowed groups or age limits no longer permit."""
        context, application = self.server.context, client.application
        for days, since in (
            (application.refresh_idle_days, token_pair.token_created_at),
            (application.refresh_longest_days, token_pair.grant_created_at),
        ):
            if days is not None and since is not None and since + timedelta(days) <= context.now:
                raise RejectedGrantError(EXPIRED_REFRESH_TOKEN)
        if not is_in_allowed_groups(
            application.allowed_group_ids, token_pair.token_user_id, context
        ):
            raise RejectedGrantError(NOT_IN_ALLOWED_GROUPS)

    def _check_not_reused(
        self, token_pair: TokenPairRow, client_request: ClientRequest[TokenPairRow]
    ) -> None:
        """Reject a revoked refresh token, unless the previous response may be repeated.

        If the client is public, all tokens of the authorization are also revoked, since the client
        cannot prove that the token was issued to it.
        """
        context, client = self.server.context, client_request.get_client()
        presented = client_request.request.require_parameter("refresh_token")
        if find_refresh_replay(presented, token_pair.token_refreshed_at, context) is not None:
            return
        family = None if client.application.confidential else token_pair.token_authorization_id
        if family is not None:
            revoke_authorization(family, session=context.session, now=context.now)
        self._record_reuse(token_pair, client)
        if token_pair.token_refreshed_at is None:
            raise RejectedGrantError(REVOKED_REFRESH_TOKEN)
        raise RejectedGrantError(REUSED_REFRESH_TOKEN if family is not None else USED_REFRESH_TOKEN)

    def _record_reuse(self, token_pair: TokenPairRow, client: Client) -> None:
        """Record a possible theft of a refresh token in the audit log."""
        self.server.context.record_event(
            EventKind.REFRESH_REUSED,
            client.application,
            user_id=token_pair.token_user_id,
            details={"application_id": client.application.uid, "scopes": token_pair.token_scopes},
        )

    def _check_key_binding(
        self, token_pair: TokenPairRow, client_request: ClientRequest[TokenPairRow]
    ) -> None:
        """Reject a bound token if the proof is missing, or if a public client uses another key.

        The refresh token of a confidential client is already bound by the client's secret. The key
        may therefore change (RFC 9449 section 5). Without any proof, a bound token would become a
        bearer token.
        """
        bound_to, proved = token_pair.token_key_thumbprint, client_request.key_thumbprint
        may_change = client_request.get_client().application.confidential and proved is not None
        if bound_to is not None and bound_to != proved and not may_change:
            raise RejectedGrantError(MISSING_REFRESH_PROOF)

    def _check_authorization_parameters(
        self, token_pair: TokenPairRow, request: ProtocolRequest
    ) -> None:
        """Check the optional parameters against the original authorization."""
        redirect_uri = request.get_parameter("redirect_uri")
        if redirect_uri is not None and redirect_uri != token_pair.grant_redirect_uri:
            raise RejectedGrantError(WRONG_REDIRECT_URI)
        verifier = request.get_parameter("code_verifier")
        if verifier is not None:
            check_verifier(verifier, token_pair.grant_code_challenge)

    def _narrow_scope(self, text: str | None, granted: str) -> str:
        """Return the requested scope if it is within the granted scope (section 6).

        The narrower scope applies only to the access token. A refresh token always has the scope of
        the grant, like the token that it replaces.
        """
        if text is None:
            return granted
        scopes = parse_known_scopes(text)
        check_scopes_allowed(scopes, granted.split(), "The user has not granted the scope")
        return " ".join(scopes)

    def execute_request(
        self, client_request: ClientRequest[TokenPairRow], checked_input: CheckedRefreshRequest
    ) -> Mapping[str, object]:
        """Replace the old token pair with a new pair.

        Only one of several concurrent requests creates the new pair. If a replay window is
        configured, the other requests receive the same pair. Otherwise, they fail.
        """
        context, found = self.server.context, checked_input.found
        presented = client_request.request.require_parameter("refresh_token")
        grant = self._build_grant(checked_input, client_request)
        if client_request.written:
            return build_token_response(client_request.written, grant, context)
        if found.token_revoked_at is None:
            pair = generate_refreshed_pair(presented, context)
            if redeem_credential(
                REFRESH_TOKEN_REDEMPTION, pair, grant, context, spent_token=found.token_id
            ):
                return build_token_response(pair, grant, context)
        refreshed_at = self._find_refresh_time(found.token_id)
        replay = find_refresh_replay(presented, refreshed_at, context)
        if replay is None or replay.token.key_thumbprint != client_request.key_thumbprint:
            self._record_reuse(found, client_request.get_client())
            raise RejectedGrantError(USED_REFRESH_TOKEN if refreshed_at else REVOKED_REFRESH_TOKEN)
        is_asked = client_request.request.get_parameter("scope") is not None
        if is_asked and not set(replay.token.scopes.split()) <= set(grant.scopes.split()):
            # A replay must not exceed the requested scope.
            raise InvalidScopeError(
                "The refresh token was just used with a wider scope. Use the new refresh token."
            )
        return build_replayed_response(replay, grant, context)

    def _find_refresh_time(self, token_id: int) -> datetime | None:
        """Return the time when a token pair was refreshed, or None."""
        asked = select(AccessToken.refreshed_at).where(AccessToken.id == token_id)
        return self.server.context.session.scalar(asked)

    def _build_grant(
        self, checked_input: CheckedRefreshRequest, client_request: ClientRequest[TokenPairRow]
    ) -> Grant:
        found, application = checked_input.found, client_request.get_client().application
        return Grant(
            user_id=found.token_user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=found.token_authorization_id,
            scopes=checked_input.scopes,
            key_thumbprint=client_request.key_thumbprint,
            keeps_admin_mode=bool(found.token_keeps_admin_mode),
            # The time of the sign-in is repeated, but the nonce is not (OpenID Connect Core 12.2).
            authentication=GrantAuthentication(
                auth_time=checked_input.auth_time,
                methods=found.grant_methods,
                sid=found.grant_sid,
            ),
        )
