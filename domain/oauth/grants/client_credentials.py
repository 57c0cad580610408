"""The client credentials grant (RFC 6749 section 4.4), which issues tokens to applications.

The token acts for the service account of the application, which has the roles that maintainers of
groups and projects gave it. There is no refresh token (section 4.4.3) and no ID token: the
application requests a new access token instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, grants

from domain.access.scopes import SCOPES, in_order
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.service_accounts import find_for_client
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.reasons import Reason, Refusal, RefusedClientError, RefusedGrantError
from domain.oauth.requested_scopes import allowed_scopes, refuse_others
from domain.oauth.tokens import Grant, issue_pair

#: Scopes that only make sense for a person's sign-in.
_OF_PEOPLE = frozenset({"openid", "profile", "email", "offline_access"})
FOR_MACHINES = (
    frozenset(
        scope.name
        for scope in SCOPES
        if scope.is_for_applications and not scope.is_for_administrators
    )
    - _OF_PEOPLE
)

_NO_ACCOUNT = Reason(
    name="no_service_account",
    title="No service account",
    advice=(
        "Turn “Service account” on, and ask maintainers of projects or groups to add the account "
        "as a member. For a script of a single project, use a project access token."
    ),
)
NO_ACCOUNT = Refusal(
    sentence=(
        "This application has no service account. Turn the service account on, or use a project "
        "or group access token."
    ),
    reason=_NO_ACCOUNT,
)
PUBLIC = Refusal(
    sentence=(
        "Only confidential applications can use the client credentials grant. For a program of a "
        "single user, use the device grant or a personal access token."
    ),
    reason=_NO_ACCOUNT,
)
LOCKED = Refusal(
    sentence="The service account or the owner of the application is locked.",
    reason=Reason(
        name="locked_service_account",
        title="Service account locked",
        advice="Ask an administrator to unlock the account or to transfer the application.",
    ),
)


class ClientCredentials(ClientParameters):
    """Request parameters of the client credentials grant (RFC 6749 section 4.4.2)."""

    grant_type: Literal["client_credentials"]
    scope: str = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The service account of a client, and the scopes of its token."""

    user_id: int
    #: Space-separated scopes, in order.
    scopes: str


class ClientCredentialsGrant(TokenGrant[None, Machine], grants.ClientCredentialsGrant):
    """The client credentials grant, for the service accounts of confidential applications."""

    CREDENTIAL = "service account"
    REQUEST = ClientCredentials
    REASONS = (_NO_ACCOUNT, LOCKED.reason)

    def check_client(self, client: Client, request: ProtocolRequest) -> None:
        """Reject public clients (section 4.4) and clients that are registered for other grants."""
        super().check_client(client, request)
        if not client.application.confidential:
            raise RefusedClientError(PUBLIC)

    def check(self, asked: ClientRequest[None]) -> Machine:
        """Return the service account and the checked scope."""
        client = asked.get_client()
        found = find_for_client(client.application.id, connection=self.server.context.connection)
        if found is None:
            raise RefusedClientError(NO_ACCOUNT)
        if not found.is_usable:
            raise RefusedGrantError(LOCKED)
        return Machine(user_id=found.user_id, scopes=_scopes(asked.request.value("scope"), client))

    def perform(self, asked: ClientRequest[None], checked: Machine) -> Mapping[str, object]:
        """Store an access token and return the token response (section 4.4.3)."""
        application = asked.get_client().application
        grant = Grant(
            user_id=checked.user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=None,
            scopes=checked.scopes,
            key_thumbprint=asked.key_thumbprint,
            is_renewable=False,
        )
        return issue_pair(grant, self.server.context)


def _scopes(text: str | None, client: Client) -> str:
    """Return the requested scopes, or all of the client's service account scopes (section 3.3)."""
    if text is None:
        text = " ".join(in_order(set(client.application.scopes.split()) & FOR_MACHINES))
    scopes = allowed_scopes(text, client) if text else ""
    refuse_others(scopes.split(), FOR_MACHINES, "A service account cannot have the scope")
    if not scopes:
        raise InvalidScopeError("The application has no scope for a service account.")
    return scopes
