"""Who acts, by what and from where, and in which transaction."""

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
    EventPlace,
    EventSource,
    store_event,
)
from domain.audit.events import Actor as Somebody
from domain.audit.streamed_events import stream_event

Policy = TypeVar("Policy")


class Means(StrEnum):
    """By what somebody acts."""

    #: A page, signed in or not.
    PAGE = "page"
    #: A token of the API or of Git.
    TOKEN = "token"  # noqa: S105 - a name
    #: The command line of the operator.
    COMMAND = "command"
    #: The background worker, by itself.
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who acts. A face makes one; only actions look at it."""

    means: Means
    #: Of the account; None for the operator, and for who is not signed in.
    id: int | None = None
    name: str = ""
    is_admin: bool = False
    #: The scopes of the token; None where no token limits the actor.
    scopes: frozenset[str] | None = None
    #: Whether an application acts for the account.
    is_application: bool = False
    #: The token of a request to the API: a `Bearer`, for actions on tokens.
    token: object = field(default=None, repr=False)
    #: What the audit log stores about it.
    source: EventSource = field(default_factory=EventSource)

    @property
    def is_trusted(self) -> bool:
        """Whether the actor is the operator, who needs no role."""
        return self.means is Means.COMMAND


OPERATOR = Actor(means=Means.COMMAND, is_admin=True)


class WorkSettings(Protocol):
    """The settings that actions read; `web/settings/table.py` explains them."""

    @property
    def base_url(self) -> str:
        """The URL of the installation, without a slash at its end."""

    @property
    def instance_path(self) -> Path:
        """The folder of the installation's own files."""

    @property
    def tier(self) -> str:
        """The feature tier."""

    @property
    def instance_name(self) -> str:
        """The name of the installation in messages."""

    @property
    def mail_url(self) -> str:
        """Where mail is sent; empty if none is."""

    @property
    def outgoing_private_addresses(self) -> str:
        """Networks of private addresses that outgoing requests may reach."""

    @property
    def longest_silence_days(self) -> int:
        """How many days a silence can last."""


@dataclass(frozen=True)
class Seal:
    """Signs values that leave the service and come back, such as those of links."""

    #: Takes a JSON value and what it is for.
    sign: Callable[[Any, str], str]


class Policies(Protocol):
    """Finds what a deployment has decided, by its type."""

    def __call__(self, kind: type[Policy]) -> Policy:
        """Return the policy of a type, such as `Reading`."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A unit of work: one transaction, who acts in it, and when.

    It is the first argument of each action. If the action returns, the face that made it commits;
    if the action raises an error, nothing stays that the action has not committed itself.
    """

    actor: Actor
    session: Session
    now: datetime
    settings: WorkSettings
    policy: Policies

    def acting_as(self, user_id: int, name: str) -> "Work":
        """Return this unit of work with the user as actor who has just shown who they are."""
        source = replace(self.actor.source, actor=Somebody(id=user_id, name=name))
        return replace(self, actor=replace(self.actor, id=user_id, name=name, source=source))

    def record(
        self,
        kind: EventKind,
        *,
        subject: str = "",
        details: Mapping[str, object] | None = None,
        user_id: int | None = None,
        place: EventPlace | None = None,
    ) -> None:
        """Add an audit event to the transaction; none of its texts may contain a secret.

        Events of commands have no actor, and `by: command` in their details.
        """
        by = {"by": "command"} if self.actor.means is Means.COMMAND else {}
        event = Event(
            kind=kind,
            subject=subject,
            details={**(details or {}), **by},
            user_id=user_id,
            place=place,
        )
        keep = stream_event if kind in STREAMED_ONLY else store_event
        keep(event, self.actor.source, session=self.session, now=self.now)
