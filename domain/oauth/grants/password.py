"""The resource owner password credentials grant (RFC 6749 section 4.3).

OAuth 2.1 removes this grant, but existing scripts still use it. It works without a client if the
instance allows that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, OAuth2Error, grants

from domain.access.scopes import (
    ADMIN_MODE,
    ALWAYS_ALLOWED_SCOPES,
    REGISTRABLE_SCOPES,
    filter_grantable_scopes,
    sort_scopes,
)
from domain.accounts.sign_in.sessions import PASSWORD_METHODS
from domain.accounts.users import UserView, authenticate_by_password_only
from domain.audit.events import EventActor, EventKind
from domain.core.errors import TooManyAttemptsError
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.allowed_groups import is_in_allowed_groups
from domain.oauth.clients.authentication import Client, has_no_client_credentials
from domain.oauth.openid.id_tokens import GrantAuthentication
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    NOT_IN_ALLOWED_GROUPS,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import (
    check_scopes_allowed,
    parse_allowed_scopes,
    parse_known_scopes,
)
from domain.oauth.tokens import Grant, can_refresh, create_authorization, issue_token_pair

#: Common error for a wrong name, a wrong password, a locked account and an account with a second
#: factor. The response must not reveal the cause.
WRONG_PASSWORD = Rejection(
    sentence=(
        "The username or password is wrong, or this account cannot sign in with a password only. "
        "Use a personal access token instead."
    ),
    reason=RejectionReason(
        name="wrong_password",
        title="Wrong username or password",
        advice=(
            "Accounts with two-factor authentication cannot use the password grant. Use the "
            "authorization code or device grant."
        ),
    ),
)
DEFAULT_GRANT_SCOPE = "api"
#: Scopes available without a client: the scopes that any application could register.
_CLIENTLESS_SCOPES = frozenset(REGISTRABLE_SCOPES) - {ADMIN_MODE} | ALWAYS_ALLOWED_SCOPES
#: Members of the token response. `scope` and `created_at` are omitted, as in the examples of
#: RFC 6749.
_RESPONSE_MEMBERS = ("access_token", "token_type", "expires_in", "refresh_token", "id_token")


class PasswordParameters(ClientParameters):
    """Request parameters of the password grant (RFC 6749 section 4.3.2)."""

    grant_type: Literal["password"]
    username: str
    password: str
    scope: str = ""


class TooManyFailedAttemptsError(OAuth2Error):
    """Error for a request after too many failed attempts.

    No passwords are checked during the waiting time.
    """

    error = "temporarily_unavailable"
    status_code = 429

    def __init__(self, cause: TooManyAttemptsError) -> None:
        """Store the message and the waiting time in seconds."""
        super().__init__(str(cause))
        self._retry_after = cause.retry_after

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the response headers, with Retry-After."""
        return [("Retry-After", str(self._retry_after))]


@dataclass(frozen=True, kw_only=True)
class CheckedPasswordGrantRequest:
    """The authenticated user, and the scopes of the token."""

    user: UserView
    #: Scopes of the token, separated by spaces, in the order of `SCOPES`.
    scopes: str


class PasswordGrant(
    TokenGrant[None, CheckedPasswordGrantRequest], grants.ResourceOwnerPasswordCredentialsGrant
):
    """The password grant, which issues access tokens in exchange for a username and a password."""

    CREDENTIAL = "password"
    REQUEST = PasswordParameters
    REASONS = (WRONG_PASSWORD.reason,)
    SWITCH = attrgetter("passwords.is_offered")
    MAY_LACK_CLIENT = True

    def is_client_optional(self, request: ProtocolRequest) -> bool:
        """Return whether the request names no client and the instance allows that."""
        may_be_nobody = self.server.context.policy.passwords.works_without_client
        return may_be_nobody and has_no_client_credentials(request)

    def validate_request(self, client_request: ClientRequest[None]) -> CheckedPasswordGrantRequest:
        """Check the scope, then the username and password.

        A failed password check counts as a failed sign-in attempt.
        """
        scopes = self._get_scopes(
            client_request.request.get_parameter("scope"), client_request.client
        )
        user = self._authenticate_owner(client_request.request)
        if client_request.client is not None:
            self._check_group_membership(client_request.client, user.id)
        granted = filter_grantable_scopes(scopes, may_administer=user.is_admin)
        if not granted:
            raise InvalidScopeError("The user has not granted the scope.")
        return CheckedPasswordGrantRequest(user=user, scopes=granted)

    def _check_group_membership(self, client: Client, user_id: int) -> None:
        if not is_in_allowed_groups(
            client.application.allowed_group_ids, user_id, self.server.context
        ):
            raise RejectedGrantError(NOT_IN_ALLOWED_GROUPS)

    def _get_scopes(self, text: str | None, client: Client | None) -> str:
        """Return the requested or the default scopes (section 3.3).

        The default scope is `api`. For a client that is not registered for `api`, the default is
        all of its scopes.
        """
        if text is None:
            return _get_default_scopes(client)
        if client is not None:
            return parse_allowed_scopes(text, client)
        known, sentence = (
            parse_known_scopes(text),
            "A token without an application cannot have the scope",
        )
        check_scopes_allowed(known, _CLIENTLESS_SCOPES, sentence)
        # Tokens without an application cannot be refreshed.
        scopes = sort_scopes(set(known) - {"offline_access"})
        if not scopes:
            raise InvalidScopeError("The request has no scope.")
        return " ".join(scopes)

    def _authenticate_owner(self, request: ProtocolRequest) -> UserView:
        """Return the user with this username and password.

        Failures count as failed sign-in attempts.
        """
        context = self.server.context
        attempt = context.policy.passwords.limits.build_attempt(
            request.require_parameter("username"),
            request.require_parameter("password"),
            address=context.source.address,
        )
        try:
            user = authenticate_by_password_only(
                attempt,
                context.policy.passwords.second_factor,
                session=context.session,
                keyring=context.keyring,
                now=context.now,
            )
        except TooManyAttemptsError as error:
            raise TooManyFailedAttemptsError(error) from error
        if user is None:
            raise RejectedGrantError(WRONG_PASSWORD)
        return user

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: CheckedPasswordGrantRequest
    ) -> Mapping[str, object]:
        """Issue a token.

        An authorization is stored only if the token can be refreshed.
        """
        grant = self._build_grant(client_request, checked_input)
        self._record_issued_token(client_request.client, checked_input)
        issued = issue_token_pair(grant, self.server.context)
        return {name: issued[name] for name in _RESPONSE_MEMBERS if name in issued}

    def _record_issued_token(
        self, client: Client | None, checked_input: CheckedPasswordGrantRequest
    ) -> None:
        """Record that a token was issued with the password grant, without a consent page."""
        user, application = checked_input.user, client.application if client else None
        self.server.context.record_event(
            EventKind.TOKEN_ISSUED,
            application,
            user_id=user.id,
            actor=EventActor(id=user.id, name=user.username),
            details={
                "grant_type": "password",
                "application_id": application.uid if application else None,
                "scopes": checked_input.scopes,
            },
        )

    def _build_grant(
        self, client_request: ClientRequest[None], checked_input: CheckedPasswordGrantRequest
    ) -> Grant:
        context, user_id, scopes = self.server.context, checked_input.user.id, checked_input.scopes
        if client_request.client is None:
            return Grant(
                user_id=user_id,
                application_id=None,
                application_uid=None,
                authorization_id=None,
                scopes=scopes,
                key_thumbprint=client_request.key_thumbprint,
                is_renewable=False,
            )
        application = client_request.client.application
        is_renewable = can_refresh(application, scopes)
        family = (
            create_authorization(application.id, user_id, scopes, context) if is_renewable else None
        )
        return Grant(
            user_id=user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=family,
            scopes=scopes,
            key_thumbprint=client_request.key_thumbprint,
            is_renewable=is_renewable,
            authentication=GrantAuthentication(
                auth_time=context.now, methods=" ".join(PASSWORD_METHODS)
            ),
        )


def _get_default_scopes(client: Client | None) -> str:
    if client is None or client.get_allowed_scope(DEFAULT_GRANT_SCOPE):
        return DEFAULT_GRANT_SCOPE
    return str(client.application.scopes)
