"""The resource owner password credentials grant (RFC 6749 section 4.3).

OAuth 2.1 removes this grant, but existing scripts still use it. It works without a client if the
instance allows that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, OAuth2Error, grants

from domain.access.scopes import ADMIN_MODE, FREE, REGISTRABLE, grantable, in_order
from domain.accounts.signing_in.sessions import BY_PASSWORD
from domain.accounts.users import UserView, authenticate_by_password_alone
from domain.audit.events import Actor, EventKind
from domain.core.errors import TooManyAttemptsError
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.allowed_groups import is_allowed
from domain.oauth.clients.authentication import Client, names_no_client
from domain.oauth.openid.id_tokens import Authentication
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.reasons import NOT_IN_GROUPS, Reason, Refusal, RefusedGrantError
from domain.oauth.requested_scopes import allowed_scopes, known_scopes, refuse_others
from domain.oauth.tokens import Grant, begin_family, issue_pair, may_refresh

#: The error is the same for a wrong name, a wrong password, a locked account and an account with a
#: second factor. The response must not reveal the cause.
REFUSED = Refusal(
    sentence=(
        "The user name or password is wrong, or this account cannot sign in with a password only. "
        "Use a personal access token instead."
    ),
    reason=Reason(
        name="wrong_password",
        title="Wrong user name or password",
        advice=(
            "Accounts with two-factor authentication cannot use the password grant. Use the "
            "authorization code or device grant."
        ),
    ),
)
DEFAULT_SCOPE = "api"
#: Scopes available without a client: the scopes that any application could register.
_WITHOUT_CLIENT = frozenset(REGISTRABLE) - {ADMIN_MODE} | FREE
#: Members of the response; the examples of RFC 6749 contain neither scope nor time.
_SHOWN = ("access_token", "token_type", "expires_in", "refresh_token", "id_token")


class PasswordExchange(ClientParameters):
    """Request parameters of the password grant (RFC 6749 section 4.3.2)."""

    grant_type: Literal["password"]
    username: str
    password: str
    scope: str = ""


class TooManyGuessesError(OAuth2Error):
    """Error after too many failed attempts; passwords are not checked for a while."""

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
class PasswordCheck:
    """The authenticated user, and the scopes of the token."""

    user: UserView
    #: Space-separated scopes, in order.
    scopes: str


class PasswordGrant(TokenGrant[None, PasswordCheck], grants.ResourceOwnerPasswordCredentialsGrant):
    """The password grant, which issues access tokens for a user name and a password."""

    CREDENTIAL = "password"
    REQUEST = PasswordExchange
    REASONS = (REFUSED.reason,)
    SWITCH = attrgetter("passwords.is_offered")
    MAY_LACK_CLIENT = True

    def takes_no_client(self, request: ProtocolRequest) -> bool:
        """Return whether the request names no client and the instance allows that."""
        may_be_nobody = self.server.context.policy.passwords.works_without_client
        return may_be_nobody and names_no_client(request)

    def check(self, asked: ClientRequest[None]) -> PasswordCheck:
        """Check the scope, then the user name and password, which counts as an attempt."""
        scopes = self._scopes(asked.request.value("scope"), asked.client)
        user = self._get_owner(asked.request)
        if asked.client is not None:
            self._check_groups(asked.client, user.id)
        granted = grantable(scopes, may_administer=user.is_admin)
        if not granted:
            raise InvalidScopeError("The user has not granted the scope.")
        return PasswordCheck(user=user, scopes=granted)

    def _check_groups(self, client: Client, user_id: int) -> None:
        if not is_allowed(client.application.allowed_group_ids, user_id, self.server.context):
            raise RefusedGrantError(NOT_IN_GROUPS)

    def _scopes(self, text: str | None, client: Client | None) -> str:
        """Return the requested or the default scopes (section 3.3).

        The default scope is `api`. For a client that is not registered for `api`, the default is
        all of its scopes.
        """
        if text is None:
            return _default_scopes(client)
        if client is not None:
            return allowed_scopes(text, client)
        known, sentence = known_scopes(text), "A token without an application cannot have the scope"
        refuse_others(known, _WITHOUT_CLIENT, sentence)
        # Tokens without an application cannot be refreshed.
        scopes = in_order(set(known) - {"offline_access"})
        if not scopes:
            raise InvalidScopeError("The request has no scope.")
        return " ".join(scopes)

    def _get_owner(self, request: ProtocolRequest) -> UserView:
        """Return the user with this name and password; failures count as sign-in attempts."""
        context = self.server.context
        attempt = context.policy.passwords.limits.attempt(
            request.required("username"),
            request.required("password"),
            address=context.source.address,
        )
        try:
            user = authenticate_by_password_alone(
                attempt,
                context.policy.passwords.second_factor,
                session=context.session,
                keyring=context.keyring,
                now=context.now,
            )
        except TooManyAttemptsError as error:
            raise TooManyGuessesError(error) from error
        if user is None:
            raise RefusedGrantError(REFUSED)
        return user

    def perform(self, asked: ClientRequest[None], checked: PasswordCheck) -> Mapping[str, object]:
        """Issue a token; an authorization is stored only if the token can be refreshed."""
        grant = self._grant(asked, checked)
        self._record_issue(asked.client, checked)
        issued = issue_pair(grant, self.server.context)
        return {name: issued[name] for name in _SHOWN if name in issued}

    def _record_issue(self, client: Client | None, checked: PasswordCheck) -> None:
        """Record that a token was issued for a password, without a consent page."""
        user, application = checked.user, client.application if client else None
        self.server.context.record_event(
            EventKind.TOKEN_ISSUED,
            application,
            user_id=user.id,
            actor=Actor(id=user.id, name=user.username),
            details={
                "grant_type": "password",
                "application_id": application.uid if application else None,
                "scopes": checked.scopes,
            },
        )

    def _grant(self, asked: ClientRequest[None], checked: PasswordCheck) -> Grant:
        context, user_id, scopes = self.server.context, checked.user.id, checked.scopes
        if asked.client is None:
            return Grant(
                user_id=user_id,
                application_id=None,
                application_uid=None,
                authorization_id=None,
                scopes=scopes,
                key_thumbprint=asked.key_thumbprint,
                is_renewable=False,
            )
        application = asked.client.application
        is_renewable = may_refresh(application, scopes)
        family = begin_family(application.id, user_id, scopes, context) if is_renewable else None
        return Grant(
            user_id=user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=family,
            scopes=scopes,
            key_thumbprint=asked.key_thumbprint,
            is_renewable=is_renewable,
            authentication=Authentication(auth_time=context.now, methods=" ".join(BY_PASSWORD)),
        )


def _default_scopes(client: Client | None) -> str:
    if client is None or client.get_allowed_scope(DEFAULT_SCOPE):
        return DEFAULT_SCOPE
    return str(client.application.scopes)
