"""Actions on destinations of all kinds, with their audit events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from domain.access.actor import UnitOfWork
from domain.accounts import message_limits as claimed
from domain.audit.events import EventKind
from domain.core.clock import format_api_time
from domain.core.database.locks import commit_to_release_locks
from domain.core.keyring import Keyring
from domain.core.types.pagination import ListPage
from domain.delivery.destination_types import Destination, DestinationQuery, SecretRotationBody
from domain.delivery.mail.outbox import MessageSettings, NewEmail
from domain.delivery.outgoing.attempts import DeliveryAttempt
from domain.delivery.outgoing.destinations import (
    DestinationDetails,
    DestinationManager,
    DestinationWithSecret,
)
from domain.delivery.outgoing.ip_address_policy import check_outgoing_url_allowed
from domain.delivery.outgoing.signing import OutgoingMessage
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.projects.bots import Maintainer
from domain.projects.views import ProjectView
from models import User

ViewT = TypeVar("ViewT", bound=Destination)
DetailsT = TypeVar("DetailsT", bound=DestinationDetails)


class MessageSender(Protocol):
    """A function that sends a message once, and returns the result."""

    def __call__(
        self, url: str, message: OutgoingMessage, secrets: Sequence[str], /
    ) -> DeliveryAttempt:
        """Send a message that is signed with each of the secrets."""
        ...


@dataclass(frozen=True)
class ImmediateSender:
    """The function that actions use to send messages immediately instead of queuing them."""

    send: MessageSender


@dataclass(frozen=True, kw_only=True)
class DestinationEventKinds:
    """The kinds of audit events that record changes to destinations."""

    created: EventKind
    changed: EventKind
    secret_rotated: EventKind
    removed: EventKind


@dataclass(frozen=True)
class DestinationActions(Generic[ViewT, DetailsT]):
    """Actions on destinations of one kind, which belong to a project or to the instance."""

    kind: DestinationManager[Any, ViewT, DetailsT]
    events: DestinationEventKinds

    def list_destinations(
        self, work: UnitOfWork, query: DestinationQuery, project: ProjectView | None = None
    ) -> ListPage[ViewT]:
        """Return a page of the destinations of a project or of the instance."""
        found = self.kind.list_all_destinations(
            owner=_get_owner_id(project),
            session=work.session,
            keyring=work.policy(Keyring),
            now=work.now,
        )
        shown = found[query.offset : query.offset + query.page_size]
        return ListPage(items=shown, total=len(found))

    def get_destination(
        self, work: UnitOfWork, number: int, project: ProjectView | None = None
    ) -> ViewT:
        """Return a destination of a project or of the instance.

        Raise NotFoundError if there is no destination with this ID.
        """
        return self.kind.get_destination(
            number,
            owner=_get_owner_id(project),
            session=work.session,
            keyring=work.policy(Keyring),
            now=work.now,
        )

    def create_destination(
        self,
        work: UnitOfWork,
        details: DetailsT,
        project: ProjectView | None = None,
        *,
        is_paused: bool = False,
    ) -> DestinationWithSecret[ViewT]:
        """Create a destination, which receives all later messages."""
        _check_url(work, details.url)
        if project is None:
            # Record the event before the destination exists. Otherwise, a new audit stream would
            # start with this event.
            self._record_change(work, self.events.created, details.url, None, 0)
            work.session.flush()
        made = self.kind.create_destination(
            details,
            owner=_get_owner_id(project),
            session=work.session,
            keyring=work.policy(Keyring),
            now=work.now,
        )
        number = made.destination.id
        if project is not None:
            self._record_change(work, self.events.created, details.url, project, number)
        if is_paused:
            paused = self.pause_destination(work, number, project)
            return DestinationWithSecret(destination=paused, secret=made.secret)
        return made

    def change_destination(
        self, work: UnitOfWork, number: int, details: DetailsT, project: ProjectView | None = None
    ) -> ViewT:
        """Change a destination, and return it.

        The change is recorded in the audit log. Raise InvalidError if the new URL is not allowed.
        """
        before = self.get_destination(work, number, project)
        if details.url != before.url:
            _check_url(work, details.url)
        owner, keyring = _get_owner_id(project), work.policy(Keyring)
        if self.kind.change_destination(
            number, details, owner=owner, session=work.session, keyring=keyring
        ):
            before_url = before.redacted_url
            self._record_change(
                work, self.events.changed, details.url, project, number, before=before_url
            )
        return self.get_destination(work, number, project)

    def pause_destination(
        self, work: UnitOfWork, number: int, project: ProjectView | None = None
    ) -> ViewT:
        """Pause deliveries to a destination, and return the destination."""
        before = self.get_destination(work, number, project)
        if before.paused_at is None:
            self._record_change(
                work, self.events.changed, before.url, project, number, change="paused"
            )
        self.kind.pause_destination(
            number, owner=_get_owner_id(project), session=work.session, now=work.now
        )
        return self.get_destination(work, number, project)

    def resume_destination(
        self, work: UnitOfWork, number: int, project: ProjectView | None = None
    ) -> ViewT:
        """Resume deliveries to a destination, and return the destination.

        Queued messages are sent immediately.
        """
        before = self.get_destination(work, number, project)
        if before.paused_at is not None:
            self._record_change(
                work, self.events.changed, before.url, project, number, change="resumed"
            )
        self.kind.resume_destination(number, owner=_get_owner_id(project), session=work.session)
        return self.get_destination(work, number, project)

    def rotate_secret(
        self,
        work: UnitOfWork,
        number: int,
        rotation: SecretRotationBody,
        project: ProjectView | None = None,
    ) -> DestinationWithSecret[ViewT]:
        """Create a new signing secret for a destination.

        Messages are also signed with the old secret until the time that `rotation` specifies.
        """
        until = rotation.compute_expiry(work.now)
        made = self.kind.rotate_secret(
            number,
            owner=_get_owner_id(project),
            previous_until=until,
            session=work.session,
            keyring=work.policy(Keyring),
            now=work.now,
        )
        url, ends = made.destination.url, format_api_time(max(until, work.now))
        self._record_change(
            work, self.events.secret_rotated, url, project, number, old_secret_ends=ends
        )
        return made

    def delete_destination(
        self, work: UnitOfWork, number: int, project: ProjectView | None = None
    ) -> ViewT:
        """Delete a destination and return it.

        Queued messages are never sent.
        """
        before = self.get_destination(work, number, project)
        self._record_change(
            work, self.events.removed, before.url, project, number, undelivered=before.backlog
        )
        self.kind.delete_destination(number, owner=_get_owner_id(project), session=work.session)
        return before

    def send_message(
        self,
        work: UnitOfWork,
        number: int,
        message: OutgoingMessage,
        project: ProjectView | None = None,
    ) -> DeliveryAttempt:
        """Send a message immediately, ahead of queued messages, and return the result."""
        url, keyring = self.get_destination(work, number, project).url, work.policy(Keyring)
        sender_id = None if work.actor.is_trusted else work.actor.id
        about = claimed.LimitedMessage(recipient=url, sender_id=sender_id)
        claimed.count_message(work, claimed.TEST_REQUEST_LIMIT, about)
        secrets = self.kind.list_secrets(
            number, session=work.session, keyring=keyring, now=work.now
        )
        commit_to_release_locks(work.session)  # The following request may be slow.
        return work.policy(ImmediateSender).send(url, message, secrets)

    def _record_change(
        self,
        work: UnitOfWork,
        kind: EventKind,
        url: str,
        project: ProjectView | None,
        number: int,
        **details: object,
    ) -> None:
        of_project = {"project": project.path, f"{self.kind.noun}_id": number} if project else {}
        work.record_audit_event(
            kind, subject=parse_outgoing_url(url).redacted, details={**of_project, **details}
        )


def _check_url(work: UnitOfWork, url: str) -> None:
    """Check that a URL is valid and does not contain a blocked IP address.

    Raise InvalidError otherwise.
    """
    networks = work.settings.outgoing_private_addresses
    check_outgoing_url_allowed(parse_outgoing_url(url), networks)


def _get_owner_id(project: ProjectView | None) -> int | None:
    return None if project is None else project.id


@dataclass(frozen=True, kw_only=True)
class DestinationNoticeSettings(MessageSettings):
    """The settings that appear in messages about destinations."""

    #: Number of days after which audit events are dropped, or after which a webhook is paused.
    days: int


@dataclass(frozen=True, kw_only=True)
class DestinationNotice:
    """An email notice about a destination."""

    key: str
    subject: str
    lines: Sequence[str]
    #: Path of the destination's page, relative to the base URL of the instance.
    path: str
    #: Role that makes the person a recipient of the notice, such as `an administrator`.
    role: str

    def build_email(
        self, person: Maintainer | User, notice_settings: DestinationNoticeSettings
    ) -> NewEmail:
        """Return the email for one recipient of the notice."""
        lines = "\n".join(self.lines)
        return NewEmail(
            key=f"{self.key}, to {person.id}",
            recipient=person.email,
            subject=self.subject,
            text=(
                f"Hello {person.name},\n\n{lines}\n\n"
                f"See {notice_settings.base_url}/{self.path}\n\n"
                f"-- \n{notice_settings.instance_name}, {notice_settings.base_url}\n"
                f"You receive this message because you are {self.role}.\n"
            ),
        )
