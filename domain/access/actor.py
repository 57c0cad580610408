"""The actor, access method and request source of an action, and the unit of work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy.orm import Session

from domain.audit.events import (
    STREAMED_ONLY,
    Event,
    EventKind,
    EventNamespace,
    EventSource,
    store_event,
)
from domain.audit.events import EventActor as Somebody
from domain.audit.streamed_events import queue_streamed_event

Policy = TypeVar("Policy")


class AccessMethod(StrEnum):
    """The interface through which an actor performs an action."""

    #: A web page. The visitor might not be signed in.
    PAGE = "page"
    #: A token for the API or Git.
    TOKEN = "token"  # noqa: S105 - a name
    #: The operator's command line.
    COMMAND = "command"
    #: A job of the background worker.
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """The user or operator on whose behalf a request, command or job runs."""

    means: AccessMethod
    #: ID of the account; None for the operator and for visitors who are not signed in.
    id: int | None = None
    name: str = ""
    is_admin: bool = False
    #: Scopes of the token; None if the actor does not use a token.
    scopes: frozenset[str] | None = None
    #: True if an application acts for the account.
    is_application: bool = False
    #: Token (a `Bearer`) that authenticates the API request; actions that manage tokens use it.
    token: object = field(default=None, repr=False)
    #: Source of the request for the audit log.
    source: EventSource = field(default_factory=EventSource)

    @property
    def is_trusted(self) -> bool:
        """True for the operator, who needs no role."""
        return self.means is AccessMethod.COMMAND


OPERATOR = Actor(means=AccessMethod.COMMAND, is_admin=True)


class ActionSettings(Protocol):
    """The settings that actions read.

    `web/settings/definitions.py` describes them.
    """

    @property
    def base_url(self) -> str:
        """The URL of the installation, without a trailing slash."""

    @property
    def instance_path(self) -> Path:
        """The folder of the installation's own files."""

    @property
    def tier(self) -> str:
        """The feature tier of the installation."""

    @property
    def instance_name(self) -> str:
        """The name of the installation in messages."""

    @property
    def mail_url(self) -> str:
        """The URL of the mail server, or an empty string if email is disabled."""

    @property
    def outgoing_private_addresses(self) -> str:
        """The networks of private addresses that outgoing requests may reach."""

    @property
    def outgoing_contact_hosts(self) -> str:
        """The hosts with private addresses that messages to contacts may reach."""

    @property
    def longest_silence_days(self) -> int:
        """The maximum number of days that a silence can last."""


@dataclass(frozen=True)
class LinkSigner:
    """A signer of values that clients send back, such as link parameters."""

    #: Function that signs a JSON value for a purpose.
    sign: Callable[[Any, str], str]


class PolicyLookup(Protocol):
    """A function that returns a policy of the deployment by its type."""

    def __call__(self, kind: type[Policy]) -> Policy:
        """Return the policy of a type, such as `Keyring`."""


@dataclass(frozen=True, kw_only=True)
class UnitOfWork:
    """A unit of work: a transaction with its actor and time.

    The unit of work is the first argument of each action. When the action returns, its caller
    commits. If the action raises an error, only changes that the action itself committed persist.
    """

    actor: Actor
    session: Session
    now: datetime
    settings: ActionSettings
    policy: PolicyLookup

    def with_actor(self, user_id: int, name: str) -> "UnitOfWork":
        """Return a copy of this unit of work whose actor is a newly authenticated user."""
        source = replace(self.actor.source, actor=Somebody(id=user_id, name=name))
        return replace(self, actor=replace(self.actor, id=user_id, name=name, source=source))

    def record_audit_event(
        self,
        kind: EventKind,
        *,
        subject: str = "",
        details: Mapping[str, object] | None = None,
        user_id: int | None = None,
        event_namespace: EventNamespace | None = None,
    ) -> None:
        """Add an audit event to the transaction.

        The event must not contain secrets. Events from commands have no actor, and their details
        contain `by: command`.
        """
        by = {"by": "command"} if self.actor.means is AccessMethod.COMMAND else {}
        event = Event(
            kind=kind,
            subject=subject,
            details={**(details or {}), **by},
            user_id=user_id,
            place=event_namespace,
        )
        keep = queue_streamed_event if kind in STREAMED_ONLY else store_event
        keep(event, self.actor.source, session=self.session, now=self.now)
