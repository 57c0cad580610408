"""Policies of the authorization server, and the context of its requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy.orm import Session

from domain.accounts.factors.requirement import SecondFactorRule
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.sign_in.sessions import RequestSource
from domain.audit.events import Event, EventActor, EventKind, EventSource, store_event
from domain.core.database.statements import RunStatement, StatementConnection
from domain.core.keyring import Keyring
from domain.oauth.rejection_reasons import RejectionReason


@dataclass(frozen=True, kw_only=True)
class DeviceGrantPolicy:
    """The policy for the device authorization grant (RFC 8628)."""

    is_offered: bool
    code_lifetime: timedelta
    #: Initial number of seconds between two polls.
    poll_interval: int
    #: Maximum number of wrong user codes in the window: per user, per IP address, and in total.
    guesses_per_user: int
    guesses_per_address: int
    guesses_in_all: int
    guess_window: timedelta


@dataclass(frozen=True, kw_only=True)
class PasswordGrantPolicy:
    """The policy for the password grant (RFC 6749 section 4.3)."""

    is_offered: bool
    works_without_client: bool
    limits: SignInLimits
    second_factor: SecondFactorRule


@dataclass(frozen=True, kw_only=True)
class PushedRequestPolicy:
    """The policy for pushed authorization requests (RFC 9126)."""

    #: Time within which the browser must present the request for the first time.
    lifetime: timedelta
    #: True if all authorization requests must be pushed.
    is_required: bool


@dataclass(frozen=True, kw_only=True)
class RegistrationPolicy:
    """The policy for dynamic client registration (RFC 7591)."""

    is_offered: bool
    #: True if clients can register without a token.
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class OAuthPolicy:
    """The settings of the authorization server, such as lifetimes and policies for grants.

    Lifetimes are counted from the time of issue.
    """

    #: Base URL without a trailing slash; `iss` in RFC 9207 and `issuer` in RFC 8414.
    issuer: str
    access_token_lifetime: timedelta
    id_token_lifetime: timedelta
    #: Lifetime of authorization codes, at most 10 minutes (RFC 6749 section 4.1.2).
    code_lifetime: timedelta
    require_https_redirect_uris: bool
    #: Replay window, in which a repeated refresh request returns the same token pair. Zero disables
    #: the window.
    refresh_replay: timedelta
    devices: DeviceGrantPolicy
    passwords: PasswordGrantPolicy
    pushed_requests: PushedRequestPolicy
    registration: RegistrationPolicy
    #: Networks of private addresses that requests to applications may reach.
    private_addresses: str = ""


@dataclass(frozen=True, kw_only=True)
class NewRejectedRequest:
    """A rejected request that names a known application.

    The application might not have sent the request itself.
    """

    application_id: int
    #: The `grant_type`, even if unknown, or the name of the endpoint.
    request: str
    #: Error code of RFC 6749 section 4.1.2.1 or 5.2.
    error: str
    #: Error description in the response.
    description: str
    reason: RejectionReason
    #: IP address to store; None for a request from a user's browser.
    address: str | None
    #: The unregistered redirect URI that was sent, without parts that may be secret.
    redirect_uri: str | None


class NamedApplication(Protocol):
    """An object with the name of an application, for audit events."""

    @property
    def name(self) -> str:
        """The name of the application."""


@dataclass(frozen=True, kw_only=True)
class OAuthContext:
    """The context of a request: database access, keys, time, policy and source."""

    #: Session for rare operations; its transaction ends with the request.
    session: Session
    #: Connection for frequent operations; each statement is its own transaction.
    connection: StatementConnection
    #: Function that returns whether the session has begun its transaction.
    has_begun: Callable[[], bool]
    keyring: Keyring
    now: datetime
    policy: OAuthPolicy
    #: IP address and User-Agent header of the request.
    source: RequestSource
    #: Function that returns the source of the request for the audit log.
    event_source: Callable[[], EventSource]
    #: Function that stores some of the rejected requests for the owners of the applications.
    record_refusal: Callable[[NewRejectedRequest, "OAuthContext"], None]

    @property
    def run_write(self) -> RunStatement:
        """The function that runs write statements, in the transaction if one has begun."""
        return self.session.execute if self.has_begun() else self.connection.execute_statement

    def record_event(
        self,
        kind: EventKind,
        application: NamedApplication | None,
        *,
        user_id: int | None,
        details: Mapping[str, object],
        actor: EventActor | None = None,
    ) -> None:
        """Add an audit event to the transaction of the session.

        `application` is None for tokens of the password grant without a client.
        """
        event = Event(
            kind=kind,
            user_id=user_id,
            subject=application.name if application else "password grant",
            details=details,
            actor=actor,
        )
        store_event(event, self.event_source(), session=self.session, now=self.now)


class OAuthServer(Protocol):
    """The interface of the authorization server that grants and endpoints use."""

    #: Parameters that a request may contain only once.
    PARAMETERS: frozenset[str]
    #: Context of the current request.
    context: OAuthContext

    def get_authorization_grant(self, request: Any) -> Any:
        """Return the grant that handles an authorization request."""
