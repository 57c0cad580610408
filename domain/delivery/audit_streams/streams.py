"""Destinations of the audit log, which get every event in one order.

An event is removed when it was delivered and not before: after a crash in between it is sent once
more, with the same id.

Ids are given when an event is written, so one that is committed later may have a smaller id. It is
sent when it appears; nothing is skipped, since no position is kept.

An event that the receiver itself refuses, attempt after attempt, is set aside: it stays in the
queue, visibly, and later ones go before it. It gets its turn again when the destination recovers,
and when an administrator says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import orjson
from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.orm import Session

from domain.access.actor import Actor
from domain.accounts.users import IN_USE
from domain.audit.events import EventKind
from domain.audit.log import in_words, view_of
from domain.core.clock import date_and_time, written
from domain.core.database.rows import delete_rows, update_rows
from domain.core.types.base import columns_of
from domain.delivery.audit_streams.types import AuditStream
from domain.delivery.destination_actions import Notice, NoticeSettings
from domain.delivery.mail.outbox import queue_messages
from domain.delivery.outgoing import claims
from domain.delivery.outgoing.claims import Attempt, Claim, Delivery, Failure
from domain.delivery.outgoing.destinations import (
    FAILING_AFTER,
    Between,
    DestinationDetails,
    DestinationKind,
    DestinationState,
    Queue,
    Refusal,
)
from domain.delivery.outgoing.signing import Message, new_message_id
from models import AuditEvent, AuditStreamEntry, User
from models import AuditStream as AuditStreamRow

#: Each one costs a row for every event.
MOST_STREAMS = 20
#: Attempts before an event is set aside: about nine minutes.
MOST_TRIES = 10
#: Of events in a row. A receiver that refuses more of them is at fault itself, and is waited for.
MOST_SET_ASIDE = 3
#: The most events that wait for one destination; the oldest are given up first.
MOST_ENTRIES = 1_000_000
#: An event that was set aside is tried once more after each recovery, until this many attempts.
_LAST_TRY = 2 * MOST_TRIES


def message_of(message_id: str, shown: Mapping[str, object]) -> Message:
    """Return the message for an event, given as the API shows it."""
    body = {"type": shown["event_name"], "timestamp": shown["created_at"], "data": shown}
    return Message(id=f"evt_{message_id}", body=orjson.dumps(body))


def message_of_test(actor: Actor, *, now: datetime) -> Message:
    """Return a message that only shows that a destination is reached."""
    kind, message_id = EventKind.AUDIT_STREAM_TESTED.value, new_message_id()
    shown = {
        "id": message_id,
        "author_id": -1 if actor.id is None else actor.id,
        "entity_id": None,
        "entity_type": "Instance",
        "event_name": kind,
        "details": {
            "author_name": actor.name,
            "custom_message": in_words(kind),
        },
        "created_at": written(now),
    }
    return message_of(message_id, shown)


#: An entry, its event unless that is streamed only or was pruned, and whom that concerns.
_Waiting = tuple[AuditStreamEntry, AuditEvent | None, str | None]


class AuditStreams(DestinationKind[AuditStreamRow, AuditStream, DestinationDetails]):
    """What destinations of the audit log do otherwise than others."""

    noun = "audit stream"
    message_noun = "audit event"
    most = MOST_STREAMS
    too_many = f"There are {MOST_STREAMS} destinations already. Delete one first."
    not_found = "Destination not found."
    row = AuditStreamRow
    queue = Queue(
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

    def view(self, row: AuditStreamRow, *more: Any, **shared: Any) -> AuditStream:
        """Return the view of a row."""
        (set_aside,) = more
        return AuditStream(**columns_of(row, AuditStream) | shared, set_aside=set_aside)

    def first(
        self, row: AuditStreamRow, *, session: Session, now: datetime
    ) -> tuple[int, Message] | None:
        """Return the oldest event."""
        entries = (
            select(AuditStreamEntry, AuditEvent, User.username)
            .outerjoin(AuditEvent, AuditEvent.id == AuditStreamEntry.event_id)
            .outerjoin(User, User.id == AuditEvent.user_id)
            .where(AuditStreamEntry.stream_id == row.id, self.queue.is_waiting)
            .order_by(AuditStreamEntry.id)
            .limit(1)
        )
        while found := session.execute(entries).first():
            entry, event, username = cast("_Waiting", found)
            shown = entry.payload if event is None else view_of(event, username).as_json()
            if shown is not None:
                return entry.id, message_of(entry.message_id, shown)
            # The stored event was pruned for its age before it could be sent.
            session.delete(entry)
            row.dropped, row.last_dropped_at = row.dropped + 1, now
            session.flush()
        return None

    def taken(
        self, claim: Claim, delivery: Delivery, attempt: Attempt, *, session: Session, now: datetime
    ) -> None:
        """Remove the event; after a failure, try again what was set aside."""
        del attempt, now
        session.execute(
            delete_rows(AuditStreamEntry).where(AuditStreamEntry.id == delivery.entry_id)
        )
        has_failed = select(AuditStreamRow.id).where(
            *claims.is_ours(AuditStreamRow, claim), AuditStreamRow.failing_since.is_not(None)
        )
        if session.scalar(has_failed) is not None:
            again = AuditStreamEntry.tries < _LAST_TRY
            _take_back(claim.destination_id, session, again)

    def refused(
        self, claim: Claim, refusal: Refusal, *, session: Session, now: datetime
    ) -> Failure:
        """Set an event aside that the receiver refuses, attempt after attempt."""
        delivery, failure = refusal.delivery, refusal.failure
        entry = delivery and session.get(AuditStreamEntry, delivery.entry_id, with_for_update=True)
        if not entry:
            return failure
        entry.tries += 1
        if entry.tries < MOST_TRIES or not refusal.attempt.refuses_message:
            return failure
        if _set_aside_since(failure.failing_since, claim, session) >= MOST_SET_ASIDE:
            return failure
        entry.set_aside_at = now
        # The next event has not been tried.
        session.execute(
            update_rows(AuditStreamRow)
            .where(*claims.is_ours(AuditStreamRow, claim))
            .values(tries=0, next_try_at=None)
        )
        return replace(failure, sets_aside=True)

    def begin_again(self, row: AuditStreamRow, session: Session) -> None:
        """Try the events that were set aside from the beginning."""
        session.flush()
        _take_back(row.id, session, true(), tries=0)


AUDIT_STREAMS = AuditStreams()


def _take_back(
    stream_id: int, session: Session, condition: ColumnElement[bool], **values: int
) -> None:
    session.execute(
        update_rows(AuditStreamEntry)
        .where(
            AuditStreamEntry.stream_id == stream_id,
            AuditStreamEntry.set_aside_at.is_not(None),
            condition,
        )
        .values(set_aside_at=None, **values)
    )


def _set_aside_since(moment: datetime, claim: Claim, session: Session) -> int:
    mine = AuditStreamEntry.stream_id == claim.destination_id
    since = AuditStreamEntry.set_aside_at >= moment
    return session.scalar(select(func.count()).where(mine, since)) or 0


def drop_old_entries(
    *, session: Session, before: datetime, now: datetime, between: Between, most: int = MOST_ENTRIES
) -> int:
    """Give up events that happened before a moment, and the oldest of too many; count them.

    The count of each destination is stored with it, so that nothing disappears silently.
    """

    def drop(stream_id: int, condition: ColumnElement[bool]) -> int:
        def note(count: int) -> None:
            session.execute(
                update_rows(AuditStreamRow)
                .where(AuditStreamRow.id == stream_id)
                .values(dropped=AuditStreamRow.dropped + count, last_dropped_at=now)
            )

        return AUDIT_STREAMS.remove_entries(condition, session=session, between=between, noted=note)

    is_old = AuditStreamEntry.created_at < before
    total = 0
    for stream_id in session.scalars(select(AuditStreamRow.id)).all():
        total += drop(stream_id, (AuditStreamEntry.stream_id == stream_id) & is_old)
    for stream_id, condition in AUDIT_STREAMS.surplus(most, true(), session=session):
        total += drop(stream_id, condition)
    return total


def remove_orphans(*, session: Session, between: Between) -> int:
    """Remove the events of destinations that were removed; return how many there were."""
    orphans = AUDIT_STREAMS.orphans()
    return AUDIT_STREAMS.remove_entries(orphans, session=session, between=between)


def queue_stream_notices(sign: NoticeSettings, *, session: Session, now: datetime) -> int:
    """Store the messages that are due and not stored yet, and return their number.

    One when a destination has failed for a day, and one for each day on which events were given up.
    """
    notices = [
        each
        for stream in AUDIT_STREAMS.list_all(session=session, keyring=sign.keyring, now=now)
        for each in _notices(stream, sign, now)
    ]
    administrators = session.scalars(select(User).where(User.is_admin, IN_USE)).all()
    messages = [notice.to(each, sign) for notice in notices for each in administrators]
    return queue_messages(messages, session=session, keyring=sign.keyring, now=now)


def _notices(stream: AuditStream, sign: NoticeSettings, now: datetime) -> Iterator[Notice]:
    path = f"admin/audit_streams/{stream.id}"
    if stream.state is DestinationState.FAILING and stream.failing_since is not None:
        since = date_and_time(stream.failing_since)
        yield Notice(
            key=f"audit stream {stream.id} failing since {stream.failing_since.isoformat()}",
            subject="Audit events cannot be delivered",
            lines=(
                f"No audit event could be delivered to {stream.shown_url}",
                f"since {since}. Last error: {stream.last_error}.",
                f"{stream.backlog} events are waiting. They are sent when the destination accepts",
                f"them again, and given up {sign.days} days after they happened.",
            ),
            path=path,
            role="an administrator",
        )
    dropped_at = stream.last_dropped_at
    if dropped_at is not None and now - dropped_at < FAILING_AFTER:
        yield Notice(
            key=f"audit stream {stream.id} dropped on {dropped_at.date().isoformat()}",
            subject="Audit events were given up",
            lines=(
                f"Events for {stream.shown_url} waited too long and will not be sent:",
                f"{stream.dropped} so far. Stored events remain in the audit log.",
            ),
            path=path,
            role="an administrator",
        )
