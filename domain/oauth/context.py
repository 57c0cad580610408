"""The policy and the collaborators of the authorization server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy.orm import Session

from domain.accounts.factors.requirement import SecondFactorRule
from domain.accounts.signing_in.actions import SignInLimits
from domain.accounts.signing_in.sessions import RequestSource
from domain.audit.events import Actor, Event, EventKind, EventSource, store_event
from domain.core.database.statements import KeptConnection, Run
from domain.core.keyring import Keyring
from domain.oauth.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class DevicePolicy:
    """The policy for devices (RFC 8628)."""

    is_offered: bool
    code_lifetime: timedelta
    #: Seconds between two polls, to begin with.
    poll_interval: int
    #: Wrong user codes within the window: of one user, from one IP address, of all users.
    guesses_per_user: int
    guesses_per_address: int
    guesses_in_all: int
    guess_window: timedelta


@dataclass(frozen=True, kw_only=True)
class PasswordPolicy:
    """The policy for the password grant (RFC 6749 section 4.3)."""

    is_offered: bool
    works_without_client: bool
    limits: SignInLimits
    second_factor: SecondFactorRule


@dataclass(frozen=True, kw_only=True)
class PushPolicy:
    """The policy for pushed authorization requests (RFC 9126)."""

    #: For so long the browser may come with it for the first time.
    lifetime: timedelta
    #: No other authorization request is taken.
    is_required: bool


@dataclass(frozen=True, kw_only=True)
class RegistrationPolicy:
    """The policy for dynamic client registration (RFC 7591)."""

    is_offered: bool
    #: Without anybody's token, too.
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class OAuthPolicy:
    """The policy of the instance; lifetimes count from the time of issue."""

    #: The base URL without a trailing slash: `iss` of RFC 9207 and RFC 8414.
    issuer: str
    access_token_lifetime: timedelta
    id_token_lifetime: timedelta
    #: At most 10 minutes (RFC 6749 section 4.1.2).
    code_lifetime: timedelta
    require_https_redirect_uris: bool
    #: For so long a used refresh token gets the same new pair again; not at all if it is zero.
    refresh_replay: timedelta
    devices: DevicePolicy
    passwords: PasswordPolicy
    pushed_requests: PushPolicy
    registration: RegistrationPolicy
    #: Networks of private addresses that requests to applications may reach.
    private_addresses: str = ""


@dataclass(frozen=True, kw_only=True)
class RefusedRequest:
    """A refused request that named a known application; nothing proves that it was its own."""

    application_id: int
    #: A `grant_type`, known here or not, or the name of the endpoint.
    request: str
    #: The code of RFC 6749 section 4.1.2.1 or 5.2.
    error: str
    #: The sentence of the response.
    description: str
    reason: Reason
    #: The IP address to keep; None where it would be that of a person's browser.
    address: str | None
    #: What was sent in the place of a registered redirect URI, without what can be a secret.
    redirect_uri: str | None


class Named(Protocol):
    """An application, as an audit event names it."""

    @property
    def name(self) -> str:
        """Its name."""


@dataclass(frozen=True, kw_only=True)
class OAuthContext:
    """The collaborators of a request."""

    #: For rare operations: its transaction ends with the request.
    session: Session
    #: For frequent operations: each statement is its own transaction.
    connection: KeptConnection
    #: Whether the session has opened its transaction.
    has_begun: Callable[[], bool]
    keyring: Keyring
    now: datetime
    policy: OAuthPolicy
    #: Where the request comes from.
    source: RequestSource
    #: Returns what the audit log stores about the request.
    event_source: Callable[[], EventSource]
    #: Stores some of the refused requests for the owners of the applications.
    record_refusal: Callable[[RefusedRequest, "OAuthContext"], None]

    @property
    def run(self) -> Run:
        """A function that runs a write: in the session's transaction if it has begun."""
        return self.session.execute if self.has_begun() else self.connection.all

    def record_event(
        self,
        kind: EventKind,
        application: Named | None,
        *,
        user_id: int | None,
        details: Mapping[str, object],
        actor: Actor | None = None,
    ) -> None:
        """Add an audit event about a client to the transaction, or about a token without one."""
        event = Event(
            kind=kind,
            user_id=user_id,
            subject=application.name if application else "password grant",
            details=details,
            actor=actor,
        )
        store_event(event, self.event_source(), session=self.session, now=self.now)


class Server(Protocol):
    """What grants and endpoints know of the authorization server."""

    #: The parameters that a request may contain once.
    PARAMETERS: frozenset[str]
    #: The collaborators of its request.
    context: OAuthContext

    def get_authorization_grant(self, request: Any) -> Any:
        """Return the grant with an authorization endpoint."""
