"""Client authentication (RFC 6749 section 2.3)."""

import base64
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote_plus

from authlib.oauth2.rfc6749 import (
    ClientMixin,
    InvalidClientError,
    InvalidRequestError,
    UnauthorizedClientError,
)
from sqlalchemy.exc import DBAPIError

from domain.access.scopes import ALWAYS_ALLOWED_SCOPES, sort_scopes
from domain.oauth.clients import secrets as client_secrets
from domain.oauth.clients.assertions import (
    ASSERTION_TYPE,
    InvalidAssertionError,
    consume_assertion,
    parse_asserted_client_id,
)
from domain.oauth.clients.credential_lookup import (
    CredentialLookup,
    CredentialT,
    LookupWithWrite,
    find_client_with_credential,
)
from domain.oauth.clients.credential_rows import ClientRow
from domain.oauth.clients.secrets import is_recent_use
from domain.oauth.context import OAuthContext
from domain.oauth.protocol import ProtocolRequest
from domain.oauth.rejection_reasons import (
    ALL_SCOPES_REMOVED,
    GRANT_NOT_PERMITTED,
    MISSING_SECRET,
    SECRET_OF_PUBLIC_APPLICATION,
    WRONG_ASSERTION,
    WRONG_SECRET,
    RejectedClientError,
    RejectedGrantError,
    Rejection,
    RejectionReason,
)
from models import Application

AUTHENTICATION_FAILED = (
    "Client authentication failed: unknown client, wrong secret, or no authentication included."
)


GRANT_NOT_ALLOWED = Rejection(
    sentence="An administrator must allow this grant type for the application.",
    reason=GRANT_NOT_PERMITTED,
)
_DEFAULT_SCOPE = "read_user"

CLIENT_ID_MISSING = (
    "client_id is missing: send it in the body, or as the username of Basic authentication."
)


class ClientAuthMethod(StrEnum):
    """A client authentication method. Its value is the name in RFC 7591."""

    BASIC = "client_secret_basic"
    POST = "client_secret_post"
    PRIVATE_KEY = "private_key_jwt"
    NONE = "none"


@dataclass(frozen=True)
class Client(ClientMixin):
    """An application with the client interface that Authlib expects."""

    application: Application | ClientRow

    def get_client_id(self) -> str:
        """Return the client_id of the application."""
        return self.application.uid

    def get_default_redirect_uri(self) -> None:
        """Return None, since every request must contain its redirect URI."""

    @property
    def default_scope(self) -> str | None:
        """The default scope of a request (RFC 6749 section 3.3), or None if it is ambiguous.

        The default is `read_user` if the application is registered for it, or else its only scope.
        """
        registered = self.application.scopes.split()
        if _DEFAULT_SCOPE in registered:
            return _DEFAULT_SCOPE
        return registered[0] if len(registered) == 1 else None

    def get_allowed_scope(self, scope: str) -> str:
        """Return the requested scopes that the application may request."""
        allowed = {*self.application.scopes.split(), *ALWAYS_ALLOWED_SCOPES}
        return " ".join(sort_scopes(set(scope.split()) & allowed))

    def get_granted_scope(self, scope: str) -> str:
        """Return the granted scopes that the application is still registered for.

        Raise invalid_grant if all scopes of the grant were removed from the application.
        """
        left = self.get_allowed_scope(scope)
        if (
            not set(left.split()) - ALWAYS_ALLOWED_SCOPES
            and set(scope.split()) - ALWAYS_ALLOWED_SCOPES
        ):
            raise RejectedGrantError(ALL_SCOPES_REMOVED)
        return left

    def check_response_type(self, response_type: str) -> bool:
        """Return whether the response type is `code`, the only supported type."""
        return response_type == "code"

    def require_grant_type(self, grant_type: str) -> None:
        """Check that the application may use a grant.

        All grants are allowed unless the client registered itself for certain grants (RFC 7591
        section 2). Raise unauthorized_client if the grant is not one of these grants.
        """
        registered = (self.application.client_metadata or {}).get("grant_types")
        if isinstance(registered, list) and grant_type not in registered:
            raise UnauthorizedClientError("The application is not registered for this grant type.")

    def require_allowed_grant(self, grant_type: str) -> None:
        """Check that an administrator has allowed a grant for the application.

        Raise unauthorized_client if the grant is not allowed.
        """
        if grant_type not in self.application.allowed_grants.split():
            raise RejectedClientError(GRANT_NOT_ALLOWED)


@dataclass(frozen=True)
class PresentedClientCredentials:
    """The client credentials of a request."""

    client_id: str | None
    secret: str | None
    method: ClientAuthMethod
    #: JWT sent instead of a secret (RFC 7523); None for the other methods.
    assertion: str | None = None


def parse_client_credentials(request: ProtocolRequest) -> PresentedClientCredentials:
    """Return the client credentials in the header or the form.

    Raise invalid_request if both contain credentials.
    """
    header = request.headers.get("Authorization")
    basic = _parse_basic_credentials(header) if header else None
    client_id, secret = request.get_parameter("client_id"), request.get_parameter("client_secret")
    assertion = request.get_parameter("client_assertion")
    if assertion is not None:
        if basic is not None or secret is not None:
            raise InvalidRequestError("Send client_assertion and no other client credentials.")
        if request.get_parameter("client_assertion_type") != ASSERTION_TYPE:
            raise InvalidRequestError(f"client_assertion_type must be {ASSERTION_TYPE}.")
        named = client_id or parse_asserted_client_id(assertion)
        return PresentedClientCredentials(named, None, ClientAuthMethod.PRIVATE_KEY, assertion)
    if basic is None:
        method = ClientAuthMethod.POST if secret else ClientAuthMethod.NONE
        return PresentedClientCredentials(client_id, secret, method)
    basic_id, basic_secret = basic
    if secret and basic_secret:
        raise InvalidRequestError(
            "Send client credentials in the Authorization header or in the body, not in both."
        )
    if client_id is not None and client_id != basic_id:
        raise InvalidRequestError(
            "The client_id in the body does not match the Authorization header."
        )
    if basic_secret:
        return PresentedClientCredentials(basic_id, basic_secret, ClientAuthMethod.BASIC)
    # Some public clients send Basic authentication with an empty password, which counts as no
    # authentication.
    return PresentedClientCredentials(
        basic_id, secret, ClientAuthMethod.POST if secret else ClientAuthMethod.NONE
    )


def has_no_client_credentials(request: ProtocolRequest) -> bool:
    """Return whether a request contains no client credentials."""
    presented = parse_client_credentials(request)
    return presented.client_id is None and presented.secret is None and not presented.assertion


def _parse_basic_credentials(header: str) -> tuple[str, str] | None:
    """Return the username and password of a Basic header, form-decoded (section 2.3.1).

    Return None for other schemes. Raise invalid_client if the header is malformed.
    """
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:  # The header is not base64, or its content is not UTF-8.
        raise _build_error(was_basic=True) from None
    user, colon, password = text.partition(":")
    if not colon:
        raise _build_error(was_basic=True)
    return unquote_plus(user), unquote_plus(password)


def authenticate_client(
    request: ProtocolRequest,
    context: OAuthContext,
    lookup: CredentialLookup[CredentialT] | None,
    lookup_with_write: LookupWithWrite | None = None,
) -> tuple[Client, CredentialT | None, Any]:
    """Return the authenticated client, the credential and the result of the write.

    The credential is None if there is no lookup or no match. Raise invalid_client (401) if the
    client cannot be authenticated.
    """
    presented = parse_client_credentials(request)
    was_basic = (request.headers.get("Authorization") or "").lower().startswith("basic")
    if not presented.client_id:
        raise ClientAuthenticationError(was_basic=was_basic, sentence=CLIENT_ID_MISSING)
    if "\x00" in presented.client_id:
        raise _build_error(was_basic=was_basic)
    text = None if lookup is None else request.get_parameter(lookup.parameter)
    if presented.assertion is not None:
        lookup_with_write = None  # The client is authenticated only after the lookup.
    elif lookup_with_write is not None:
        # A secret hashed with an older key does not match here. The later checks accept it and
        # renew its hash.
        digest = context.keyring.compute_digest(presented.secret) if presented.secret else None
        lookup_with_write = lookup_with_write._replace(
            values={**lookup_with_write.values, "presented_secret": digest}
        )
    found = find_client_with_credential(
        presented.client_id, text, lookup, context, lookup_with_write
    )
    if not found.clients:
        raise _build_error(was_basic=was_basic)
    client = found.clients[0]
    request.named_application_id = client.id
    if presented.assertion is not None:
        _check_assertion(presented.assertion, client, context)
    elif not _is_client_authenticated(found.clients, presented, context):
        raise ClientAuthenticationError(
            was_basic=was_basic, reason=_find_failure_reason(client, presented)
        )
    return Client(client), found.credential, found.written


def _check_assertion(assertion: str, client: ClientRow, context: OAuthContext) -> None:
    try:
        consume_assertion(assertion, client.id, client.uid, context)
    except InvalidAssertionError as error:
        sentence = str(error) or AUTHENTICATION_FAILED
        raise ClientAuthenticationError(
            was_basic=False, sentence=sentence, reason=WRONG_ASSERTION
        ) from error


def find_named_application_id(request: ProtocolRequest, context: OAuthContext) -> int | None:
    """Return the ID of the application that a request names, without authenticating the request.

    Return None if the request names no known application.
    """
    try:
        uid = parse_client_credentials(request).client_id
    except (ClientAuthenticationError, InvalidRequestError):
        return None
    if not uid or "\x00" in uid:
        return None
    found = find_client_with_credential(uid, None, None, context).clients
    return found[0].id if found else None


def _find_failure_reason(
    client: ClientRow, presented_client: PresentedClientCredentials
) -> RejectionReason:
    """Return the reason why a known client was not authenticated.

    The reason is not shown to the client.
    """
    if presented_client.secret is None:
        return MISSING_SECRET
    return WRONG_SECRET if client.confidential else SECRET_OF_PUBLIC_APPLICATION


def _is_client_authenticated(
    rows: Sequence[ClientRow], presented_client: PresentedClientCredentials, context: OAuthContext
) -> bool:
    """Return whether the client is authenticated.

    If the client sent a secret, the secret must be valid.
    """
    if presented_client.secret is None:
        return not rows[0].confidential
    # All secrets are compared, so that the response time does not reveal which secret matched.
    keyring, secret = context.keyring, presented_client.secret
    matching = [row for row in rows if keyring.matches_any_digest(secret, [row.secret_digest])]
    if not matching:
        return False
    match = matching[0]
    # The request must not fail if the last use cannot be stored.
    with suppress(DBAPIError):
        if not is_recent_use(match.secret_last_used_at, context.now):
            client_secrets.record_secret_use(
                match.id, match.secret_id, run=context.run_write, now=context.now
            )
        newest = keyring.has_older and keyring.rehash_if_outdated(
            secret, match.secret_digest or b""
        )
        if newest:
            client_secrets.rehash_secret(match, newest, run=context.run_write, now=context.now)
    return True


class ClientAuthenticationError(InvalidClientError):
    """The invalid_client error.

    If the client used Basic authentication, the response contains a challenge (section 5.2).
    """

    status_code = 401

    def __init__(
        self,
        *,
        was_basic: bool,
        sentence: str = AUTHENTICATION_FAILED,
        reason: RejectionReason | None = None,
    ) -> None:
        """Store whether a challenge is needed, and the reason, which only the owner may see."""
        super().__init__(sentence)
        self._was_basic = was_basic
        self.reason = reason

    def get_headers(self) -> list[tuple[str, str]]:
        """Return the response headers, with a challenge if the client used Basic authentication."""
        headers = [("Content-Type", "application/json")]
        if self._was_basic:
            headers.append(("WWW-Authenticate", 'Basic realm="Gatebell", charset="UTF-8"'))
        return headers


def _build_error(*, was_basic: bool) -> ClientAuthenticationError:
    return ClientAuthenticationError(was_basic=was_basic)
