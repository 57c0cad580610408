"""The resource owner password credentials grant (RFC 6749 section 4.3).

It stays although OAuth 2.1 drops it, because scripts in the field use it. It works without a
client while the instance allows that.
"""

from typing import Any

from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidScopeError, OAuth2Error, grants

from domain.accounts.users import authenticate_by_password_alone
from domain.audit.events import Actor, Event, EventKind
from domain.errors import TooManyAttemptsError
from domain.oauth.clients.authentication import Client, names_no_client, note_use
from domain.oauth.context import PartOfServer
from domain.oauth.messages import NO_STORE, ProtocolRequest
from domain.oauth.openid.id_tokens import Authentication
from domain.oauth.requested_scopes import allowed_scopes, known_scopes
from domain.oauth.scopes import in_order
from domain.oauth.tokens.issuing import Grant, begin_family, issue_pair, may_refresh
from models import User

#: One sentence for a wrong name, a wrong password, an account that is locked, and one that wants
#: more than a password: which of them it is, is nobody's business.
REFUSED = (
    "The user name or password is wrong, or this account cannot be used with a password alone. "
    "A personal access token may do."
)
DEFAULT_SCOPE = "api"
#: What the answer has: the specification's examples show no scope and no time.
_SHOWN = ("access_token", "token_type", "expires_in", "refresh_token", "id_token")


class TooManyGuessesError(OAuth2Error):
    """Somebody guesses passwords; right ones are not even looked at for a while."""

    error = "temporarily_unavailable"
    status_code = 429

    def __init__(self, cause: TooManyAttemptsError) -> None:
        """Take the sentence and the waiting time, in seconds."""
        super().__init__(str(cause))
        self._retry_after = cause.retry_after

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the headers of the answer."""
        return [("Retry-After", str(self._retry_after))]


class PasswordGrant(PartOfServer, grants.ResourceOwnerPasswordCredentialsGrant):
    """Exchanges a user's name and password for an access token."""

    request: ProtocolRequest

    def validate_token_request(self) -> None:
        """Check the client, if there is one, the scope, and then who it is."""
        self.request.refuse_repeated_parameters()
        client = self._find_client()
        self.request.scope = self._scopes(client)
        self.request.user = self._get_owner()

    def _find_client(self) -> Client | None:
        """Return the client; one that is named has to prove itself, as everywhere."""
        may_be_nobody = self._context.policy.passwords.works_without_client
        if may_be_nobody and names_no_client(self.request):
            return None
        client: Client = self.server.authenticate_client(self.request, ())
        return client

    def _scopes(self, client: Client | None) -> str:
        """Return the asked scopes, or what there is by default (section 3.3).

        That is api; for a client that is not registered for it, all that it is registered for.
        """
        text = self.request.value("scope")
        if text is None:
            return _default_scopes(client)
        if client is not None:
            return allowed_scopes(text, client)
        # Nobody could refresh such a token.
        scopes = in_order(set(known_scopes(text)) - {"offline_access"})
        if not scopes:
            raise InvalidScopeError("The request asks for no scope at all.")
        return " ".join(scopes)

    def _get_owner(self) -> User:
        """Return whose name and password these are, counted together with sign-ins."""
        context = self._context
        knock = context.policy.passwords.limits.knock(
            self.request.required("username"),
            self.request.required("password"),
            address=context.origin.address,
        )
        try:
            user = authenticate_by_password_alone(
                knock, session=context.session, keyring=context.keyring, now=context.now
            )
        except TooManyAttemptsError as error:
            raise TooManyGuessesError(error) from error
        if user is None:
            raise InvalidGrantError(REFUSED)
        return user

    def create_token_response(self) -> Any:
        """Issue a token; a family to revoke is needed only where it can be refreshed."""
        context, client = self._context, self.request.client
        grant = self._grant(client.application if client else None)
        if client is not None:
            note_use(client, context)
        self._note_issue(client)
        issued = issue_pair(grant, context)
        return 200, {name: issued[name] for name in _SHOWN if name in issued}, NO_STORE

    def _note_issue(self, client: Client | None) -> None:
        """Keep that a token came from a password alone: nobody was asked on a page."""
        user, application = self.request.user, client.application if client else None
        self._context.note(
            Event(
                kind=EventKind.TOKEN_ISSUED,
                user_id=user.id,
                subject=application.name if application else "password grant",
                details={
                    "grant_type": "password",
                    "application_id": application.uid if application else None,
                    "scopes": self.request.scope,
                },
                actor=Actor(id=user.id, name=user.username),
            )
        )

    def _grant(self, application: Any) -> Grant:
        context, user_id, scopes = self._context, self.request.user.id, self.request.scope
        authentication = Authentication(auth_time=context.now)
        if application is None:
            return Grant(
                user_id=user_id,
                application_id=None,
                application_uid=None,
                authorization_id=None,
                scopes=scopes,
                is_renewable=False,
            )
        is_renewable = may_refresh(application, scopes)
        family = begin_family(application.id, user_id, scopes, context) if is_renewable else None
        return Grant(
            user_id=user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=family,
            scopes=scopes,
            is_renewable=is_renewable,
            authentication=authentication,
        )


def _default_scopes(client: Client | None) -> str:
    if client is None or client.get_allowed_scope(DEFAULT_SCOPE):
        return DEFAULT_SCOPE
    return str(client.application.scopes)
