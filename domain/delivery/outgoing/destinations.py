"""Destinations: URLs specified by users, each with a secret, a state and a queue of messages.

This module creates, changes, pauses and prunes destinations of all kinds, and delivers to them. The
tables and the specific behavior of each kind are in `domain/delivery/audit_streams/streams.py` and
`domain/delivery/webhooks/endpoints.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from sys import maxsize
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, SQLColumnExpression, exists, func, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete
from domain.core.due_time_sql import NOW, Moment
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.outgoing.attempts import (
    DESTINATION_BACKOFF,
    DESTINATION_CLAIM_LIFETIME,
    ClaimedDelivery,
    DeliveryAttempt,
    DeliveryFailure,
    RetryPolicy,
)
from domain.delivery.outgoing.signing import (
    OutgoingMessage,
    generate_signing_secret,
    get_previous_secret_expiry,
    list_signing_secrets,
    replace_signing_secret,
)
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.delivery.queue import Claim, ExclusiveQueue
from models.destination import Destination

#: Time without a delivery after which a destination is considered failing and notices are sent.
FAILING_AFTER = timedelta(days=1)
#: Placeholder in the `url` column of a row whose URL is encrypted. Hosts with older releases cannot
#: send to it, so messages wait for a newer host. Pages show it if the key was replaced.
ENCRYPTED_URL = "https://encrypted.invalid/"
#: Number of threads that are reserved for destinations without a recent failure.
_RESERVED_THREADS = 16
#: Number of entries that are removed or changed in one transaction.
_BATCH_SIZE = 500


class DestinationState(StrEnum):
    """The state of a destination. Its value is shown to users."""

    ACTIVE = "active"
    RETRYING = "retrying"
    FAILING = "failing"
    PAUSED = "paused"


def get_destination_state(row: Destination, *, now: datetime) -> DestinationState:
    """Return whether a destination is active, retrying, failing or paused."""
    if row.paused_at is not None:
        return DestinationState.PAUSED
    if row.failing_since is None:
        return DestinationState.ACTIVE
    is_failing = now - row.failing_since >= FAILING_AFTER
    return DestinationState.FAILING if is_failing else DestinationState.RETRYING


def decrypt_destination_url(row: Destination, keyring: Keyring) -> str:
    """Return the URL of a destination.

    Raise UndecryptableError if it cannot be decrypted.
    """
    return row.url if row.url_ciphertext is None else keyring.decrypt(row.url_ciphertext)


def _get_visible_url(row: Destination, keyring: Keyring) -> str:
    try:
        return decrypt_destination_url(row, keyring)
    except UndecryptableError:
        return ENCRYPTED_URL


def build_url_columns(url: str, keyring: Keyring) -> dict[str, str]:
    """Return the values of the columns that store a URL in encrypted form."""
    return {"url": ENCRYPTED_URL, "url_ciphertext": keyring.encrypt(url)}


CommitCallback = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class DestinationDetails:
    """The properties of a destination that users choose."""

    url: str = field(repr=False)


RowT = TypeVar("RowT", bound=Destination)
ViewT = TypeVar("ViewT")
DetailsT = TypeVar("DetailsT", bound=DestinationDetails)


@dataclass(frozen=True, kw_only=True)
class DestinationWithSecret(Generic[ViewT]):
    """A destination with its new secret, which is shown once."""

    destination: ViewT
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DestinationQueue:
    """The table that queues the messages for destinations of one kind."""

    entry: type[Any]
    #: Columns for the destination of a message, and for the time at which it was queued.
    destination: SQLColumnExpression[int]
    queued_at: SQLColumnExpression[datetime]
    is_waiting: ColumnElement[bool]


@dataclass(frozen=True, kw_only=True)
class FailedAttempt:
    """A failed attempt, and the rules for the next attempt."""

    #: Delivery that failed, or None if the secrets of the destination cannot be decrypted.
    delivery: ClaimedDelivery | None
    attempt: DeliveryAttempt
    failure: DeliveryFailure
    retries: RetryPolicy


class DestinationManager(ABC, Generic[RowT, ViewT, DetailsT]):
    """The base class for managing one kind of destination, such as webhooks or audit streams."""

    #: Noun for a destination in log lines and commands. The plural ends in -s.
    noun: ClassVar[str]
    #: Noun for a message in log lines.
    message_noun: ClassVar[str]
    #: Maximum number of destinations per owner.
    max_destinations: ClassVar[int]
    #: Error messages for too many destinations, and for a destination that does not exist.
    too_many: ClassVar[str]
    not_found: ClassVar[str]
    #: Number of failures after which the pauses of a destination no longer increase.
    max_counted_failures: ClassVar[int] = maxsize
    #: Number of seconds after which a destination releases its thread to other destinations.
    time_slice_seconds: ClassVar[float] = float("inf")
    #: Table of the destinations, column with their owners (None if the instance owns them), and
    #: queue of their messages.
    row: type[RowT]
    owner_column: ClassVar[str | None] = None
    queue: ClassVar[DestinationQueue]
    #: Columns that `build_view` needs in addition to the columns that all kinds have.
    more_columns: Sequence[ColumnElement[Any]] = ()

    @property
    def claims(self) -> ExclusiveQueue[RowT]:
        """Queue of the destinations that are not paused."""
        return ExclusiveQueue(
            row=self.row,
            due_at=self.row.next_try_at,
            is_due_without_time=True,
            condition=self.row.paused_at.is_(None),
            claim_lifetime=DESTINATION_CLAIM_LIFETIME,
            backoff=DESTINATION_BACKOFF,
        )

    @abstractmethod
    def build_view(self, row: RowT, *more: Any, **shared: Any) -> ViewT:
        """Return the API resource for a row, with `shared` for fields without columns."""

    @abstractmethod
    def get_next_message(
        self, row: RowT, *, session: Session, now: datetime
    ) -> tuple[int, OutgoingMessage] | None:
        """Return the next message for a destination with its queue entry's ID, or None."""

    @abstractmethod
    def record_accepted_message(
        self,
        row: RowT | None,
        delivery: ClaimedDelivery,
        attempt: DeliveryAttempt,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        """Record that a message was accepted. The row is None if the claim was lost."""

    @abstractmethod
    def record_rejected_message(
        self, row: RowT, refusal: FailedAttempt, *, session: Session, now: datetime
    ) -> DeliveryFailure:
        """Record that a message was not accepted."""

    def build_detail_columns(self, details: DetailsT) -> Mapping[str, object]:
        """Return the columns that store the details other than the URL.

        Raise InvalidError for an invalid value.
        """
        del details
        return {}

    def build_sendable_condition(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition for messages that are due."""
        del now
        return self.queue.is_waiting

    def lock_owner(self, owner: int | None, session: Session) -> None:
        """Serialize changes to an owner's destinations. The default implementation does nothing."""

    def update_alert_subscription(self, owner: int | None, session: Session) -> None:
        """Process a change to an owner's destinations. The default implementation does nothing."""

    def retry_set_aside_messages(self, row: RowT, session: Session) -> None:
        """Retry the messages that were set aside. The default implementation does nothing."""

    def create_destination(
        self,
        details: DetailsT,
        *,
        owner: int | None = None,
        session: Session,
        keyring: Keyring,
        now: datetime,
    ) -> DestinationWithSecret[ViewT]:
        """Create a destination, which receives all later messages.

        Raise InvalidError if the URL is invalid, or ConflictError if the maximum number is reached.
        """
        parse_outgoing_url(details.url)
        values = dict(self.build_detail_columns(details))
        self.lock_owner(owner, session)
        count = (
            select(func.count()).select_from(self.row).where(*self._build_owner_conditions(owner))
        )
        if (session.scalar(count) or 0) >= self.max_destinations:
            raise ConflictError(self.too_many)
        if self.owner_column is not None:
            values[self.owner_column] = owner
        secret = generate_signing_secret()
        sealed = keyring.encrypt(secret)
        values |= build_url_columns(details.url, keyring)
        row = self.row(secret_ciphertext=sealed, created_at=now, **values)
        session.add(row)
        self._flush_destinations(owner, session)
        made = self.get_destination(row.id, owner=owner, session=session, keyring=keyring, now=now)
        return DestinationWithSecret(destination=made, secret=secret)

    def list_all_destinations(
        self, *, owner: int | None = None, session: Session, keyring: Keyring, now: datetime
    ) -> Sequence[ViewT]:
        """Return the destinations of an owner, oldest first."""
        return self.find_destinations(
            *self._build_owner_conditions(owner), session=session, keyring=keyring, now=now
        )

    def find_destinations(
        self, *conditions: ColumnElement[bool], session: Session, keyring: Keyring, now: datetime
    ) -> Sequence[ViewT]:
        """Return the destinations that meet the conditions, oldest first."""
        mine = self.queue.destination == self.row.id, self.queue.is_waiting
        backlog = select(func.count(self.queue.entry.id)).where(*mine).scalar_subquery()
        oldest = select(func.min(self.queue.queued_at)).where(*mine).scalar_subquery()
        statement = select(self.row, backlog, oldest, *self.more_columns).where(*conditions)
        rows = session.execute(statement.order_by(self.row.id)).all()
        return [self._build_view(*row, keyring=keyring, now=now) for row in rows]

    def _build_view(
        self,
        row: RowT,
        backlog: int,
        oldest: datetime | None,
        *more: Any,
        keyring: Keyring,
        now: datetime,
    ) -> ViewT:
        return self.build_view(
            row,
            *more,
            url=_get_visible_url(row, keyring),
            state=get_destination_state(row, now=now),
            previous_secret_expires_at=get_previous_secret_expiry(row, now=now),
            backlog=backlog,
            oldest_event_at=oldest,
            failures=row.tries,
        )

    def get_destination(
        self,
        destination_id: int,
        *,
        owner: int | None = None,
        session: Session,
        keyring: Keyring,
        now: datetime,
    ) -> ViewT:
        """Return a destination of an owner.

        Raise NotFoundError if the owner has no destination with this ID.
        """
        is_it = self.row.id == destination_id
        found = self.find_destinations(
            is_it, *self._build_owner_conditions(owner), session=session, keyring=keyring, now=now
        )
        if not found:
            raise NotFoundError(self.not_found)
        return found[0]

    def _build_owner_conditions(self, owner: int | None) -> tuple[ColumnElement[bool], ...]:
        if self.owner_column is None:
            return ()
        return (getattr(self.row, self.owner_column) == owner,)

    def _flush_destinations(self, owner: int | None, session: Session) -> None:
        session.flush()
        self.update_alert_subscription(owner, session)

    def _lock_row(self, destination_id: int, owner: int | None, session: Session) -> RowT:
        is_it = self.row.id == destination_id
        row = session.scalar(
            select(self.row)
            .where(is_it, *self._build_owner_conditions(owner))
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        if row is None:
            raise NotFoundError(self.not_found)
        # Workers that pause a destination also acquire the destination's lock before this lock.
        self.lock_owner(owner, session)
        return row

    def change_destination(
        self,
        destination_id: int,
        details: DetailsT,
        *,
        owner: int | None = None,
        session: Session,
        keyring: Keyring,
    ) -> bool:
        """Change a destination, and return whether anything changed.

        Queued messages are sent to the new URL.
        """
        parse_outgoing_url(details.url)
        row = self._lock_row(destination_id, owner, session)
        values, is_moved = (
            {**self.build_detail_columns(details)},
            _get_visible_url(row, keyring) != details.url,
        )
        if not is_moved and all(getattr(row, name) == value for name, value in values.items()):
            return False
        if is_moved:
            values |= build_url_columns(details.url, keyring)
            row.next_try_at = None
            self.retry_set_aside_messages(row, session)
        for name, value in values.items():
            setattr(row, name, value)
        self._flush_destinations(owner, session)
        return True

    def pause_destination(
        self, destination_id: int, *, owner: int | None = None, session: Session, now: datetime
    ) -> None:
        """Pause a destination."""
        row = self._lock_row(destination_id, owner, session)
        if row.paused_at is None:
            self.mark_paused(row, now)
            self._flush_destinations(owner, session)

    def mark_paused(self, row: RowT, now: datetime) -> None:
        """Mark the row of a destination as paused by a user."""
        row.paused_at = now

    def resume_destination(
        self, destination_id: int, *, owner: int | None = None, session: Session
    ) -> None:
        """Resume a destination, and send its queued messages immediately."""
        row = self._lock_row(destination_id, owner, session)
        self.mark_resumed(row)
        self.retry_set_aside_messages(row, session)
        self._flush_destinations(owner, session)

    def mark_resumed(self, row: RowT) -> None:
        """Mark the row of a destination as not paused."""
        row.paused_at = row.next_try_at = None

    def rotate_secret(
        self,
        destination_id: int,
        *,
        owner: int | None = None,
        previous_until: datetime,
        session: Session,
        keyring: Keyring,
        now: datetime,
    ) -> DestinationWithSecret[ViewT]:
        """Create a new secret.

        Messages are also signed with the old secret until `previous_until`, which may be now. An
        even older secret expires immediately, so there are never more than two secrets.
        """
        row = self._lock_row(destination_id, owner, session)
        secret = replace_signing_secret(
            row, previous_until=previous_until, keyring=keyring, now=now
        )
        session.flush()
        made = self.get_destination(
            destination_id, owner=owner, session=session, keyring=keyring, now=now
        )
        return DestinationWithSecret(destination=made, secret=secret)

    def list_secrets(
        self, destination_id: int, *, session: Session, keyring: Keyring, now: datetime
    ) -> Sequence[str]:
        """Return the signing secrets of a destination, newest first."""
        return list_signing_secrets(
            session.get_one(self.row, destination_id), keyring=keyring, now=now
        )

    def delete_destination(
        self, destination_id: int, *, owner: int | None = None, session: Session
    ) -> None:
        """Delete a destination, whose queued messages are never sent (`build_orphan_condition`)."""
        session.delete(self._lock_row(destination_id, owner, session))
        self._flush_destinations(owner, session)

    @property
    def due_condition(self) -> ColumnElement[bool]:
        """SQL condition that is true if any destination can be claimed at a time."""
        due = self.claims.build_due_condition(NOW)
        return self._select_destinations_with_messages(NOW).where(due).exists()

    def claim_due_destinations(
        self, *, maximum: int, session: Session, now: datetime
    ) -> Sequence[Claim]:
        """Claim destinations that have queued messages, working destinations first.

        Some threads are reserved for them, because requests to failing destinations can take long.
        """
        found = self._select_destinations_with_messages(now)
        last = func.coalesce(self.row.last_delivered_at, self.row.created_at)
        working = found.where(self.row.tries == 0).order_by(last).limit(maximum)
        first = self.claims.claim_destinations(working, session=session, now=now)
        left = max(maximum - len(first) - _RESERVED_THREADS, 0)
        failing = found.where(self.row.tries > 0).order_by(self.row.next_try_at).limit(left)
        return [*first, *self.claims.claim_destinations(failing, session=session, now=now)]

    def _select_destinations_with_messages(self, now: Moment) -> Select[int]:
        can_send = self.build_sendable_condition(now)
        has_entries = exists().where(self.queue.destination == self.row.id, can_send)
        return select(self.row.id).where(has_entries)

    def take_next_delivery(
        self, claim: Claim, *, session: Session, keyring: Keyring, now: datetime
    ) -> ClaimedDelivery | None:
        """Renew a claim and return the next message, or release the claim and return None.

        There is no next message if all messages were sent, or if the destination was paused,
        deleted or claimed by another worker.
        """
        row = self.claims.lock_destination(claim, session=session)
        if row is None:
            return None
        found = None
        if row.paused_at is None:
            found = self.get_next_message(row, session=session, now=now)
        if found is None:
            row.claimed_until = None
            return None
        self.claims.renew_claim(row, now=now)
        entry_id, message = found
        return ClaimedDelivery(
            entry_id=entry_id,
            url=decrypt_destination_url(row, keyring),
            message=message,
            secrets=list_signing_secrets(row, keyring=keyring, now=now),
        )

    def record_delivery(
        self,
        claim: Claim,
        delivery: ClaimedDelivery,
        attempt: DeliveryAttempt,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        """Record that a message was accepted, even if the claim was lost in the meantime."""
        row = self.claims.lock_destination(claim, session=session)
        self.record_accepted_message(row, delivery, attempt, session=session, now=now)
        if row is not None:
            self.claims.record_success(row)
            row.last_delivered_at, row.next_try_at = now, None

    def record_failure(
        self,
        claim: Claim,
        delivery: ClaimedDelivery | None,
        attempt: DeliveryAttempt,
        retries: RetryPolicy,
        *,
        session: Session,
        now: datetime,
    ) -> DeliveryFailure | None:
        """Schedule the next attempt and release the claim, or return None if the claim was lost.

        The problem in `attempt` is shown to users. The delivery is None if the secrets of the
        destination cannot be decrypted.
        """
        row = self.claims.lock_destination(claim, session=session)
        if row is None:
            return None
        pause = retries.compute_delay(attempt, min(row.tries + 1, self.max_counted_failures))
        self.claims.record_failure(row, attempt.problem, pause=pause, now=now)
        failure = DeliveryFailure(
            failures=row.tries, failing_since=row.failing_since or now, next_try_at=now + pause
        )
        refusal = FailedAttempt(
            delivery=delivery, attempt=attempt, failure=failure, retries=retries
        )
        return self.record_rejected_message(row, refusal, session=session, now=now)

    def find_surplus_entries(
        self, maximum: int, condition: ColumnElement[bool], *, session: Session
    ) -> Sequence[tuple[int, ColumnElement[bool]]]:
        """Find the oldest queue entries in excess of `maximum` for each destination.

        Return the ID of each destination with too many entries, and a condition that selects the
        surplus entries. Only entries that meet `condition` are counted.
        """
        found = []
        for destination_id in session.scalars(select(self.row.id)).all():
            mine = (self.queue.destination == destination_id) & condition
            newest = session.scalar(
                select(self.queue.entry.id)
                .where(mine)
                .order_by(self.queue.entry.id.desc())
                .offset(maximum)
                .limit(1)
            )
            if newest is not None:
                found.append((destination_id, mine & (self.queue.entry.id <= newest)))
        return found

    def build_orphan_condition(self) -> ColumnElement[bool]:
        """Return the condition that selects the queue entries for deleted destinations."""
        return ~exists().where(self.row.id == self.queue.destination)

    def delete_entries(
        self,
        condition: ColumnElement[bool],
        *,
        session: Session,
        commit_batch: CommitCallback,
        noted: Callable[[int], None] = lambda _count: None,
    ) -> int:
        """Delete queue entries in batches, oldest first, and return the number of deleted entries.

        After each batch, `noted` is called with the size of the batch, and then `commit_batch`.
        """
        oldest = (
            select(self.queue.entry.id)
            .where(condition)
            .order_by(self.queue.entry.id)
            .limit(_BATCH_SIZE)
        )
        total = 0
        while ids := session.scalars(oldest).all():
            session.execute(build_bulk_delete(self.queue.entry).where(self.queue.entry.id.in_(ids)))
            noted(len(ids))
            commit_batch()
            total += len(ids)
        return total

    def encrypt_plaintext_urls(self, *, session: Session, keyring: Keyring) -> int:
        """Encrypt URLs that older releases stored in plain text, and return the number of URLs."""
        rows = session.scalars(
            select(self.row).where(self.row.url_ciphertext.is_(None)).with_for_update()
        ).all()
        for row in rows:
            row.url_ciphertext, row.url = keyring.encrypt(row.url), ENCRYPTED_URL
        session.flush()
        return len(rows)
