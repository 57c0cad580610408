"""The client credentials grant (RFC 6749 section 4.4), which issues tokens to applications.

The token acts for the service account of the application. Maintainers of groups and projects assign
roles to the service account. There is no refresh token (section 4.4.3) and no ID token: the
application requests a new access token instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from authlib.oauth2.rfc6749 import InvalidScopeError, grants

from domain.access.scopes import SCOPES, sort_scopes
from domain.oauth.client_requests import ClientParameters, ClientRequest, TokenGrant
from domain.oauth.clients.authentication import Client
from domain.oauth.clients.service_accounts import find_service_account_row
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    RejectedClientError,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from domain.oauth.requested_scopes import check_scopes_allowed, parse_allowed_scopes
from domain.oauth.tokens import Grant, issue_token_pair

#: Scopes that only make sense for a person's sign-in.
_PERSONAL_SIGN_IN_SCOPES = frozenset({"openid", "profile", "email", "offline_access"})
SERVICE_ACCOUNT_SCOPES = (
    frozenset(
        scope.name
        for scope in SCOPES
        if scope.is_for_applications and not scope.is_for_administrators
    )
    - _PERSONAL_SIGN_IN_SCOPES
)

_NO_SERVICE_ACCOUNT_REASON = RejectionReason(
    name="no_service_account",
    title="No service account",
    advice=(
        "Turn “Service account” on, and ask maintainers of projects or groups to add the account "
        "as a member. For a script of a single project, use a project access token."
    ),
)
NO_SERVICE_ACCOUNT = Rejection(
    sentence=(
        "This application has no service account. Turn the service account on, or use a project "
        "or group access token."
    ),
    reason=_NO_SERVICE_ACCOUNT_REASON,
)
PUBLIC_APPLICATION = Rejection(
    sentence=(
        "Only confidential applications can use the client credentials grant. For a program of a "
        "single user, use the device grant or a personal access token."
    ),
    reason=_NO_SERVICE_ACCOUNT_REASON,
)
LOCKED_SERVICE_ACCOUNT = Rejection(
    sentence="The service account or the owner of the application is locked.",
    reason=RejectionReason(
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
class CheckedClientCredentialsRequest:
    """The service account of a client, and the scopes of its token."""

    user_id: int
    #: Scopes of the token, separated by spaces, in the order of `SCOPES`.
    scopes: str


class ClientCredentialsGrant(
    TokenGrant[None, CheckedClientCredentialsRequest], grants.ClientCredentialsGrant
):
    """The client credentials grant, for the service accounts of confidential applications."""

    CREDENTIAL = "service account"
    REQUEST = ClientCredentials
    REASONS = (_NO_SERVICE_ACCOUNT_REASON, LOCKED_SERVICE_ACCOUNT.reason)

    def check_client_permission(self, client: Client, request: ProtocolRequest) -> None:
        """Reject public clients (section 4.4) and clients that are registered for other grants."""
        super().check_client_permission(client, request)
        if not client.application.confidential:
            raise RejectedClientError(PUBLIC_APPLICATION)

    def validate_request(
        self, client_request: ClientRequest[None]
    ) -> CheckedClientCredentialsRequest:
        """Return the service account and the checked scope."""
        client = client_request.get_client()
        found = find_service_account_row(
            client.application.id, connection=self.server.context.connection
        )
        if found is None:
            raise RejectedClientError(NO_SERVICE_ACCOUNT)
        if not found.is_usable:
            raise RejectedGrantError(LOCKED_SERVICE_ACCOUNT)
        return CheckedClientCredentialsRequest(
            user_id=found.user_id,
            scopes=_check_scopes(client_request.request.get_parameter("scope"), client),
        )

    def execute_request(
        self, client_request: ClientRequest[None], checked_input: CheckedClientCredentialsRequest
    ) -> Mapping[str, object]:
        """Store an access token and return the token response (section 4.4.3)."""
        application = client_request.get_client().application
        grant = Grant(
            user_id=checked_input.user_id,
            application_id=application.id,
            application_uid=application.uid,
            authorization_id=None,
            scopes=checked_input.scopes,
            key_thumbprint=client_request.key_thumbprint,
            is_renewable=False,
        )
        return issue_token_pair(grant, self.server.context)


def _check_scopes(text: str | None, client: Client) -> str:
    """Return the requested scopes (section 3.3).

    The default is all scopes of the client that a service account can have.
    """
    if text is None:
        text = " ".join(
            sort_scopes(set(client.application.scopes.split()) & SERVICE_ACCOUNT_SCOPES)
        )
    scopes = parse_allowed_scopes(text, client) if text else ""
    check_scopes_allowed(
        scopes.split(), SERVICE_ACCOUNT_SCOPES, "A service account cannot have the scope"
    )
    if not scopes:
        raise InvalidScopeError("The application has no scope that a service account can have.")
    return scopes
