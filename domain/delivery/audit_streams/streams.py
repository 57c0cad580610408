"""Destinations for audit events, each of which receives all events in the order of their IDs.

An event is removed from the queue only after its delivery. If the worker crashes before that, the
event is sent again with the same ID.

An event gets its ID when it is written, so an event that is committed later may have a smaller ID.
Such an event is sent when it becomes visible. No event is skipped, since the queue stores no
position.

An event that the receiver repeatedly rejects is set aside. It stays visible in the queue, but later
events are sent first. It is sent again when the destination recovers, or when an administrator
resumes the destination.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import orjson
from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.orm import Session

from domain.access.actor import Actor
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.audit.events import EventKind
from domain.audit.log import build_event_view, format_kind_title
from domain.core.clock import format_api_time, format_message_time
from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.types.base import get_column_values
from domain.delivery.audit_streams.types import AuditStream
from domain.delivery.destination_actions import DestinationNotice, DestinationNoticeSettings
from domain.delivery.mail.outbox import queue_emails
from domain.delivery.outgoing.attempts import ClaimedDelivery, DeliveryAttempt, DeliveryFailure
from domain.delivery.outgoing.destinations import (
    FAILING_AFTER,
    CommitCallback,
    DestinationDetails,
    DestinationManager,
    DestinationQueue,
    DestinationState,
    FailedAttempt,
)
from domain.delivery.outgoing.signing import OutgoingMessage, generate_message_id
from models import AuditEvent, AuditStreamEntry, User
from models import AuditStream as AuditStreamRow

#: Maximum number of streams. Each stream adds a row for every event.
MAX_STREAMS = 20
#: Number of attempts before an event is set aside, which takes about nine minutes.
MAX_EVENT_ATTEMPTS = 10
#: Maximum number of consecutive events that are set aside. If the receiver rejects more events, the
#: cause is assumed to be the receiver, and all events wait until it recovers.
MAX_SET_ASIDE_EVENTS = 3
#: Maximum number of events that wait for one destination. The oldest events are dropped first.
MAX_QUEUED_EVENTS = 1_000_000
#: Maximum number of attempts for an event that was set aside. Such an event is retried each time
#: the destination recovers.
_MAX_SET_ASIDE_ATTEMPTS = 2 * MAX_EVENT_ATTEMPTS


def build_event_message(message_id: str, shown: Mapping[str, object]) -> OutgoingMessage:
    """Return a message that contains an event in its API representation."""
    body = {"type": shown["event_name"], "timestamp": shown["created_at"], "data": shown}
    return OutgoingMessage(id=f"evt_{message_id}", body=orjson.dumps(body))


def build_test_message(actor: Actor, *, now: datetime) -> OutgoingMessage:
    """Return a message that tests whether a destination can be reached."""
    kind, message_id = EventKind.AUDIT_STREAM_TESTED.value, generate_message_id()
    shown = {
        "id": message_id,
        "author_id": -1 if actor.id is None else actor.id,
        "entity_id": None,
        "entity_type": "Instance",
        "event_name": kind,
        "details": {
            "author_name": actor.name,
            "custom_message": format_kind_title(kind),
        },
        "created_at": format_api_time(now),
    }
    return build_event_message(message_id, shown)


#: Queue entry, its audit event and the name of the affected user. The event is None if it is
#: streamed without being stored, or if it was pruned.
_QueuedEvent = tuple[AuditStreamEntry, AuditEvent | None, str | None]


class AuditStreamManager(DestinationManager[AuditStreamRow, AuditStream, DestinationDetails]):
    """The behavior that is specific to destinations of the audit log."""

    noun = "audit stream"
    message_noun = "audit event"
    max_destinations = MAX_STREAMS
    too_many = f"There can be at most {MAX_STREAMS} destinations. Delete a destination first."
    not_found = "Destination not found."
    row = AuditStreamRow
    queue = DestinationQueue(
        entry=AuditStreamEntry,
        destination=AuditStreamEntry.stream_id,
        queued_at=AuditStreamEntry.created_at,
        is_waiting=AuditStreamEntry.set_aside_at.is_(None),
    )
    more_columns = (
        select(func.count(AuditStreamEntry.id))
        .where(
            AuditStreamEntry.stream_id == AuditStreamRow.id,
            AuditStreamEntry.set_aside_at.is_not(None),
        )
        .scalar_subquery(),
    )

    def build_view(self, row: AuditStreamRow, *more: Any, **shared: Any) -> AuditStream:
        """Return the API resource for the row of a destination."""
        (set_aside,) = more
        return AuditStream(**get_column_values(row, AuditStream) | shared, set_aside=set_aside)

    def get_next_message(
        self, row: AuditStreamRow, *, session: Session, now: datetime
    ) -> tuple[int, OutgoingMessage] | None:
        """Return the oldest queued event as a message, with the ID of its queue entry.

        Return None if no event is queued.
        """
        entries = (
            select(AuditStreamEntry, AuditEvent, User.username)
            .outerjoin(AuditEvent, AuditEvent.id == AuditStreamEntry.event_id)
            .outerjoin(User, User.id == AuditEvent.user_id)
            .where(AuditStreamEntry.stream_id == row.id, self.queue.is_waiting)
            .order_by(AuditStreamEntry.id)
            .limit(1)
        )
        while found := session.execute(entries).first():
            entry, event, username = cast("_QueuedEvent", found)
            shown = (
                entry.payload
                if event is None
                else build_event_view(event, username).convert_to_json_value()
            )
            if shown is not None:
                return entry.id, build_event_message(entry.message_id, shown)
            # The stored event was pruned because of its age before it could be sent.
            session.delete(entry)
            row.dropped, row.last_dropped_at = row.dropped + 1, now
            session.flush()
        return None

    def record_accepted_message(
        self,
        row: AuditStreamRow | None,
        delivery: ClaimedDelivery,
        attempt: DeliveryAttempt,
        *,
        session: Session,
        now: datetime,
    ) -> None:
        """Remove a delivered event from the queue.

        If the destination has recovered, retry the events that were set aside.
        """
        del attempt, now
        session.execute(
            build_bulk_delete(AuditStreamEntry).where(AuditStreamEntry.id == delivery.entry_id)
        )
        if row is not None and row.failing_since is not None:
            again = AuditStreamEntry.tries < _MAX_SET_ASIDE_ATTEMPTS
            _requeue_set_aside_events(row.id, session, again)

    def record_rejected_message(
        self, row: AuditStreamRow, refusal: FailedAttempt, *, session: Session, now: datetime
    ) -> DeliveryFailure:
        """Count the failure, and set aside an event that the receiver repeatedly rejects."""
        delivery, failure = refusal.delivery, refusal.failure
        entry = delivery and session.get(AuditStreamEntry, delivery.entry_id, with_for_update=True)
        if not entry:
            return failure
        entry.tries += 1
        if entry.tries < MAX_EVENT_ATTEMPTS or not refusal.attempt.is_message_rejected:
            return failure
        if _count_set_aside_events(failure.failing_since, row.id, session) >= MAX_SET_ASIDE_EVENTS:
            return failure
        entry.set_aside_at = now
        # The next event has not been attempted yet.
        row.tries, row.next_try_at = 0, None
        return replace(failure, sets_aside=True)

    def retry_set_aside_messages(self, row: AuditStreamRow, session: Session) -> None:
        """Retry the events that were set aside, and reset their attempt counts."""
        session.flush()
        _requeue_set_aside_events(row.id, session, true(), tries=0)


AUDIT_STREAM_KIND = AuditStreamManager()


def _requeue_set_aside_events(
    stream_id: int, session: Session, condition: ColumnElement[bool], **values: int
) -> None:
    session.execute(
        build_bulk_update(AuditStreamEntry)
        .where(
            AuditStreamEntry.stream_id == stream_id,
            AuditStreamEntry.set_aside_at.is_not(None),
            condition,
        )
        .values(set_aside_at=None, **values)
    )


def _count_set_aside_events(moment: datetime, stream_id: int, session: Session) -> int:
    mine = AuditStreamEntry.stream_id == stream_id
    since = AuditStreamEntry.set_aside_at >= moment
    return session.scalar(select(func.count()).where(mine, since)) or 0


def drop_old_stream_events(
    *,
    session: Session,
    before: datetime,
    now: datetime,
    commit_batch: CommitCallback,
    maximum: int = MAX_QUEUED_EVENTS,
) -> int:
    """Drop queued events that are too old or exceed the maximum.

    Return the number of dropped events. Events that were queued before `before` are too old. If a
    destination has more than `maximum` queued events, its oldest events are dropped. The number of
    dropped events is also stored with each destination, so that no event disappears silently.
    """

    def drop_events(stream_id: int, condition: ColumnElement[bool]) -> int:
        def record_dropped_count(count: int) -> None:
            session.execute(
                build_bulk_update(AuditStreamRow)
                .where(AuditStreamRow.id == stream_id)
                .values(dropped=AuditStreamRow.dropped + count, last_dropped_at=now)
            )

        return AUDIT_STREAM_KIND.delete_entries(
            condition, session=session, commit_batch=commit_batch, noted=record_dropped_count
        )

    is_old = AuditStreamEntry.created_at < before
    total = 0
    for stream_id in session.scalars(select(AuditStreamRow.id)).all():
        total += drop_events(stream_id, (AuditStreamEntry.stream_id == stream_id) & is_old)
    for stream_id, condition in AUDIT_STREAM_KIND.find_surplus_entries(
        maximum, true(), session=session
    ):
        total += drop_events(stream_id, condition)
    return total


def delete_orphaned_events(*, session: Session, commit_batch: CommitCallback) -> int:
    """Remove the events for deleted destinations, and return the number of removed events."""
    orphans = AUDIT_STREAM_KIND.build_orphan_condition()
    return AUDIT_STREAM_KIND.delete_entries(orphans, session=session, commit_batch=commit_batch)


def queue_stream_notices(
    notice_settings: DestinationNoticeSettings, *, session: Session, now: datetime
) -> int:
    """Queue the notices that are due, and return the number of new emails.

    A notice is due when a destination has been failing for a day, and for each day on which events
    were dropped.
    """
    notices = [
        each
        for stream in AUDIT_STREAM_KIND.list_all_destinations(
            session=session, keyring=notice_settings.keyring, now=now
        )
        for each in _build_notices(stream, notice_settings, now)
    ]
    administrators = session.scalars(select(User).where(User.is_admin, IS_ACTIVE_HUMAN)).all()
    messages = [
        notice.build_email(each, notice_settings) for notice in notices for each in administrators
    ]
    return queue_emails(messages, session=session, keyring=notice_settings.keyring, now=now)


def _build_notices(
    stream: AuditStream, notice_settings: DestinationNoticeSettings, now: datetime
) -> Iterator[DestinationNotice]:
    path = f"admin/audit_streams/{stream.id}"
    if stream.state is DestinationState.FAILING and stream.failing_since is not None:
        since = format_message_time(stream.failing_since)
        yield DestinationNotice(
            key=f"audit stream {stream.id} failing since {stream.failing_since.isoformat()}",
            subject="Audit events cannot be delivered",
            lines=(
                f"No audit events could be delivered to {stream.redacted_url}",
                f"since {since}. Last error: {stream.last_error}.",
                f"Waiting events: {stream.backlog}. They are sent when the destination accepts",
                f"events again, and discarded {notice_settings.days} days after they occurred.",
            ),
            path=path,
            role="an administrator",
        )
    dropped_at = stream.last_dropped_at
    if dropped_at is not None and now - dropped_at < FAILING_AFTER:
        yield DestinationNotice(
            key=f"audit stream {stream.id} dropped on {dropped_at.date().isoformat()}",
            subject="Audit events were discarded",
            lines=(
                f"Events for {stream.redacted_url} could not be delivered in time and were",
                f"discarded: {stream.dropped} so far. Stored events remain in the audit log.",
            ),
            path=path,
            role="an administrator",
        )
