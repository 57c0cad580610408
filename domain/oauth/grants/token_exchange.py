"""The token exchange grant (RFC 8693), which issues access tokens with fewer permissions.

An application exchanges one of its own access tokens for a new token, which it can pass to a worker
or service that needs fewer scopes. The new token:

- has only scopes that the subject token has
- does not expire later than the subject token
- belongs to the same authorization and is revoked with it
- cannot be refreshed

Delegation is not supported: a request with an `actor_token` is rejected (sections 4.1 and 4.4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, OAuth2Error, grants
from pydantic import Field

from domain.access.scopes import ADMIN_MODE
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.credential_lookup import SUBJECT_TOKEN_LOOKUP
from domain.oauth.clients.credential_rows import TokenPairRow
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    INVALID_PROOF,
    MALFORMED_REQUEST,
    RejectedClientError,
    RejectedParameterError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import check_scopes_allowed, parse_allowed_scopes
from domain.oauth.tokens import Grant, issue_token_pair, lock_subject_token

#: Token type identifier of access tokens (section 3).
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name
#: Scopes that exchanged tokens never have, since they grant administrator rights or refresh tokens.
_EXCLUDED_SCOPES = frozenset({ADMIN_MODE, "offline_access"})

_ENDED_TOKEN_REASON = RejectionReason(
    name="ended_subject_token",
    title="Expired or revoked subject token",
    advice="Refresh the tokens first, and exchange the new access token.",
)
#: One error for unknown tokens, tokens of other clients and tokens of inactive users. The thief of
#: a token must not be able to distinguish these cases.
UNKNOWN_SUBJECT_TOKEN = Rejection(
    sentence="The subject_token is unknown, or was issued to another client.",
    reason=RejectionReason(
        name="unknown_subject_token",
        title="Unknown subject token",
        advice=(
            "An application can only exchange access tokens that were issued to it. Personal, "
            "project and group access tokens cannot be exchanged."
        ),
    ),
)
EXPIRED_SUBJECT_TOKEN = Rejection(
    sentence="The subject_token has expired.", reason=_ENDED_TOKEN_REASON
)
REVOKED_SUBJECT_TOKEN = Rejection(
    sentence="The subject_token was revoked.", reason=_ENDED_TOKEN_REASON
)
SUBJECT_TOKEN_WITHOUT_AUTHORIZATION = Rejection(
    sentence="The subject_token was issued for a password and belongs to no authorization.",
    reason=RejectionReason(
        name="subject_token_of_password",
        title="Subject token without an authorization",
        advice=(
            "Turn “Refresh tokens for devices and password sign-in” on, or use another grant. "
            "Exchanged tokens must be revoked together with an authorization."
        ),
    ),
)
MISSING_SUBJECT_PROOF = Rejection(
    sentence="The subject_token is bound to a key: send a DPoP proof of this key.",
    reason=INVALID_PROOF,
)
UNSUPPORTED_ACTOR_TOKEN = Rejection(
    sentence="Delegation is not supported. Omit actor_token and actor_token_type.",
    reason=RejectionReason(
        name="actor_token",
        title="Actor token",
        advice="Omit actor_token and actor_token_type. The application itself is the actor.",
    ),
)
WRONG_SUBJECT_TOKEN_TYPE = Rejection(
    sentence=f"subject_token_type must be {ACCESS_TOKEN_TYPE}.", reason=MALFORMED_REQUEST
)
WRONG_REQUESTED_TOKEN_TYPE = Rejection(
    sentence=f"requested_token_type must be {ACCESS_TOKEN_TYPE}.", reason=MALFORMED_REQUEST
)
PUBLIC_EXCHANGE = Rejection(
    sentence="Only confidential applications can exchange tokens.",
    reason=RejectionReason(
        name="public_exchange",
        title="Token exchange by a public application",
        advice="Turn “Confidential” on, and authenticate with the client secret.",
    ),
)


class TokenExchangeParameters(ClientParameters):
    """Request parameters of the token exchange grant (RFC 8693 section 2.1)."""

    grant_type: Literal["urn:ietf:params:oauth:grant-type:token-exchange"]
    subject_token: str = Field(description="Access token that was issued to the application.")
    subject_token_type: Literal["urn:ietf:params:oauth:token-type:access_token"]
    requested_token_type: Literal["", "urn:ietf:params:oauth:token-type:access_token"] = ""
    scope: str = Field(
        default="",
        description="Subset of the subject token's scopes. Omit it to get all permitted scopes.",
    )
    resource: str = Field(default="", description="Optional. URL of this instance.")
    audience: str = Field(default="", description="Optional. Issuer of this instance.")
    actor_token: Literal[""] = Field(default="", description="Actor tokens are not supported.")
    actor_token_type: Literal[""] = Field(default="", description="Actor tokens are not supported.")


class InvalidTargetError(OAuth2Error):
    """The invalid_target error for a token requested for another service (section 2.2.2)."""

    error = "invalid_target"
    description = "Tokens can only be issued for this instance."


@dataclass(frozen=True, kw_only=True)
class CheckedExchangeRequest:
    """The subject token, and the properties of the new token."""

    subject: TokenPairRow
    authorization_id: int
    #: Scopes of the new token, separated by spaces, in the order of `SCOPES`.
    scopes: str


class TokenExchangeGrant(TokenGrant[TokenPairRow, CheckedExchangeRequest], grants.BaseGrant):
    """The token exchange grant, for confidential applications that administrators permit."""

    GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
    CREDENTIAL = "subject token"
    REQUEST = TokenExchangeParameters
    REPEATABLE = frozenset({"resource", "audience"})
    REASONS = (
        _ENDED_TOKEN_REASON,
        UNKNOWN_SUBJECT_TOKEN.reason,
        SUBJECT_TOKEN_WITHOUT_AUTHORIZATION.reason,
        UNSUPPORTED_ACTOR_TOKEN.reason,
        PUBLIC_EXCHANGE.reason,
    )
    PERMISSION = "Token exchange"
    PERMISSION_HELP = (
        "The application can exchange its access tokens for tokens with fewer scopes, for example "
        "for its workers and services. Only for confidential applications."
    )
    LOOKUP = SUBJECT_TOKEN_LOOKUP

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject clients without permission, and public clients.

        Anyone with a leaked token could impersonate a public client.
        """
        super().check_client_permission(client, request)
        if not client.application.confidential:
            raise RejectedClientError(PUBLIC_EXCHANGE)

    def validate_request(
        self, client_request: ClientRequest[TokenPairRow]
    ) -> CheckedExchangeRequest:
        """Check the parameters, the subject token, its key, the target and the scope.

        The error for an unacceptable subject token is invalid_request, not invalid_grant (section
        2.2.2).
        """
        request, client = client_request.request, client_request.get_client()
        self._check_token_types(request)
        found = client_request.found
        is_own = found is not None and found.token_application_id == client.application.id
        if found is None or not is_own or found.user_state != ACTIVE:
            raise RejectedParameterError(UNKNOWN_SUBJECT_TOKEN)
        if found.token_revoked_at is not None or found.grant_revoked_at is not None:
            raise RejectedParameterError(REVOKED_SUBJECT_TOKEN)
        if found.token_expires_at is not None and found.token_expires_at <= self.server.context.now:
            raise RejectedParameterError(EXPIRED_SUBJECT_TOKEN)
        if found.token_authorization_id is None:
            raise RejectedParameterError(SUBJECT_TOKEN_WITHOUT_AUTHORIZATION)
        if found.token_key_thumbprint not in {None, client_request.key_thumbprint}:
            # Otherwise an attacker with a stolen token could bind the new token to their own key
            # (RFC 9449).
            raise RejectedParameterError(MISSING_SUBJECT_PROOF)
        self._check_target(request)
        return CheckedExchangeRequest(
            subject=found,
            authorization_id=found.token_authorization_id,
            scopes=_narrow_scopes(
                request.get_parameter("scope"), found.token_scopes.split(), client
            ),
        )

    def _check_token_types(self, request: ProtocolRequest) -> None:
        if request.require_parameter("subject_token_type") != ACCESS_TOKEN_TYPE:
            raise RejectedParameterError(WRONG_SUBJECT_TOKEN_TYPE)
        if request.get_parameter("requested_token_type") not in {None, ACCESS_TOKEN_TYPE}:
            raise RejectedParameterError(WRONG_REQUESTED_TOKEN_TYPE)
        if request.get_parameter("actor_token") or request.get_parameter("actor_token_type"):
            raise RejectedParameterError(UNSUPPORTED_ACTOR_TOKEN)

    def _check_target(self, request: ProtocolRequest) -> None:
        """Reject targets other than this instance, where the tokens would not be valid."""
        issuer, given = self.server.context.policy.issuer, request.payload.datalist
        for url in given["resource"]:
            if "#" in url or not f"{url}/".startswith(f"{issuer}/"):
                raise InvalidTargetError
        if any(name != issuer for name in given["audience"]):
            raise InvalidTargetError

    def execute_request(
        self, client_request: ClientRequest[TokenPairRow], checked_input: CheckedExchangeRequest
    ) -> Mapping[str, object]:
        """Store the new token if the subject token and its authorization are still active.

        Raise RejectedParameterError otherwise.
        """
        context, subject = self.server.context, checked_input.subject
        if not lock_subject_token(subject.token_id, checked_input.authorization_id, context):
            raise RejectedParameterError(REVOKED_SUBJECT_TOKEN)
        grant = self._build_grant(client_request, checked_input)
        self._record_exchange(client_request.get_client(), checked_input)
        return {**issue_token_pair(grant, context), "issued_token_type": ACCESS_TOKEN_TYPE}

    def _build_grant(
        self, client_request: ClientRequest[TokenPairRow], checked_input: CheckedExchangeRequest
    ) -> Grant:
        application, ends_at = (
            client_request.get_client().application,
            checked_input.subject.token_expires_at,
        )
        context = self.server.context
        lifetime = context.policy.access_token_lifetime
        if ends_at is not None:
            lifetime = min(lifetime, ends_at - context.now)
        return Grant(
            user_id=checked_input.subject.token_user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=checked_input.authorization_id,
            scopes=checked_input.scopes,
            key_thumbprint=client_request.key_thumbprint,
            is_renewable=False,
            is_exchanged=True,
            lifetime=lifetime,
        )

    def _record_exchange(self, client: Client, checked_input: CheckedExchangeRequest) -> None:
        """Record the exchange in the audit log for the user, who did not see a consent page."""
        self.server.context.record_event(
            EventKind.TOKEN_EXCHANGED,
            client.application,
            user_id=checked_input.subject.token_user_id,
            details={"application_id": client.application.uid, "scopes": checked_input.scopes},
        )


def _narrow_scopes(text: str | None, held: Sequence[str], client: Client) -> str:
    """Return the scopes of the new token.

    The default is all permitted scopes of the subject token.
    """
    offered = [scope for scope in held if scope not in _EXCLUDED_SCOPES]
    if text is None:
        scopes = client.get_allowed_scope(" ".join(offered))
    else:
        scopes = parse_allowed_scopes(text, client)
        check_scopes_allowed(scopes.split(), offered, "The subject_token cannot pass on the scope")
    if not scopes:
        raise InvalidScopeError("The subject_token has no scope that can be passed on.")
    return scopes
