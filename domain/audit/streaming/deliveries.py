"""Hands the events of a destination to one worker at a time, in their order.

A worker claims a destination for a while, and renews the claim before each event. The number of the
claim rises each time, so what a worker says that lost its claim while it was held up changes
nothing. An event is removed when it was delivered and not before: after a crash in between it is
sent once more, with the same id.

Ids are given when an event is written, so one that is committed later may have a smaller id. It is
sent when it appears; nothing is skipped, since no position is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from domain.audit.log import view_of
from domain.audit.streaming.destinations import secrets_of
from domain.audit.streaming.messages import Message, message_of
from domain.audit.streaming.retries import pause_after
from domain.keyring import Keyring
from models import AuditEvent, AuditStream, AuditStreamEntry, User

#: Longer than a request may take (`web/outgoing/client.py`), so that a claim outlives it.
CLAIM_LIFETIME = timedelta(seconds=25)


#: An entry, its event unless that is streamed only or was pruned, and whom that concerns.
_Waiting = tuple[AuditStreamEntry, AuditEvent | None, str | None]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to deliver to a destination."""

    stream_id: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The next event of a destination, and what it takes to send it."""

    entry_id: int
    url: str = field(repr=False)
    message: Message
    secrets: Sequence[str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A failed attempt."""

    failures: int
    failing_since: datetime
    next_try_at: datetime


def claim_due_streams(*, session: Session, now: datetime) -> Sequence[Claim]:
    """Claim every destination that has something to be sent, and that nobody else works on."""
    has_entries = exists().where(AuditStreamEntry.stream_id == AuditStream.id)
    # In one order, so that two workers do not wait for each other.
    due = select(AuditStream.id).where(*_is_due(now), has_entries).order_by(AuditStream.id)
    claims = [_claim(stream_id, session=session, now=now) for stream_id in session.scalars(due)]
    return [each for each in claims if each is not None]


def has_due_streams(*, session: Session, now: datetime) -> bool:
    """Return whether there is something to claim; it reads a few rows and writes nothing."""
    has_entries = exists().where(AuditStreamEntry.stream_id == AuditStream.id)
    due = select(AuditStream.id).where(*_is_due(now), has_entries)
    return session.scalar(due.limit(1)) is not None


def _is_due(now: datetime) -> tuple[ColumnElement[bool], ...]:
    is_free = or_(
        AuditStream.claimed_until.is_(None),
        AuditStream.claimed_until < now,
        # Made by a host whose clock was wrong.
        AuditStream.claimed_until > now + 10 * CLAIM_LIFETIME,
    )
    may_try = or_(AuditStream.next_try_at.is_(None), AuditStream.next_try_at <= now)
    return AuditStream.paused_at.is_(None), is_free, may_try


def _claim(stream_id: int, *, session: Session, now: datetime) -> Claim | None:
    number = session.scalar(
        update(AuditStream)
        # Postgres looks at the conditions again if another worker was quicker.
        .where(AuditStream.id == stream_id, *_is_due(now))
        .values(claim=AuditStream.claim + 1, claimed_until=now + CLAIM_LIFETIME)
        .returning(AuditStream.claim)
        .execution_options(synchronize_session=False)
    )
    return None if number is None else Claim(stream_id=stream_id, number=number)


def next_delivery(
    claim: Claim, *, session: Session, keyring: Keyring, now: datetime
) -> Delivery | None:
    """Renew a claim and return the next event, or give the claim up and return None.

    There is none if all was sent, or if the destination was paused, removed, or claimed by another.
    """
    stream = session.scalar(
        select(AuditStream)
        .where(*_is_ours(claim), AuditStream.paused_at.is_(None))
        .with_for_update()
    )
    if stream is None:
        release(claim, session=session)
        return None
    found = _oldest(stream, session=session, now=now)
    if found is None:
        release(claim, session=session)
        return None
    stream.claimed_until = now + CLAIM_LIFETIME
    entry_id, message = found
    return Delivery(
        entry_id=entry_id,
        url=stream.url,
        message=message,
        secrets=secrets_of(stream, keyring=keyring, now=now),
    )


def _oldest(stream: AuditStream, *, session: Session, now: datetime) -> tuple[int, Message] | None:
    entries = (
        select(AuditStreamEntry, AuditEvent, User.username)
        .outerjoin(AuditEvent, AuditEvent.id == AuditStreamEntry.event_id)
        .outerjoin(User, User.id == AuditEvent.user_id)
        .where(AuditStreamEntry.stream_id == stream.id)
        .order_by(AuditStreamEntry.id)
        .limit(1)
    )
    while row := session.execute(entries).first():
        entry, event, username = cast("_Waiting", row)
        shown = entry.payload if event is None else view_of(event, username).as_json()
        if shown is not None:
            return entry.id, message_of(entry.message_id, shown)
        # The stored event was pruned for its age before it could be sent.
        session.delete(entry)
        stream.dropped, stream.last_dropped_at = stream.dropped + 1, now
        session.flush()
    return None


def release(claim: Claim, *, session: Session) -> None:
    """Give up a claim, so that others need not wait for its end."""
    session.execute(
        update(AuditStream)
        .where(*_is_ours(claim))
        .values(claimed_until=None)
        .execution_options(synchronize_session=False)
    )


def record_delivered(claim: Claim, delivery: Delivery, *, session: Session, now: datetime) -> None:
    """Remove an event that was delivered, even if the claim was lost meanwhile."""
    session.execute(
        delete(AuditStreamEntry)
        .where(AuditStreamEntry.id == delivery.entry_id)
        .execution_options(synchronize_session=False)
    )
    session.execute(
        update(AuditStream)
        .where(*_is_ours(claim))
        .values(
            last_delivered_at=now, tries=0, failing_since=None, last_error=None, next_try_at=None
        )
        .execution_options(synchronize_session=False)
    )


def record_failure(
    claim: Claim,
    problem: str,
    *,
    share: float,
    asked_seconds: int | None = None,
    session: Session,
    now: datetime,
) -> Failure | None:
    """Schedule the next attempt, and give up the claim; return None if it was lost.

    `problem` is shown to administrators; `share` from 0 to 1 varies the pause.
    """
    tries = session.scalar(select(AuditStream.tries).where(*_is_ours(claim)).with_for_update())
    if tries is None:
        return None
    next_try_at = now + pause_after(tries + 1, share=share, asked_seconds=asked_seconds)
    failing_since = session.scalars(
        update(AuditStream)
        .where(*_is_ours(claim))
        .values(
            tries=tries + 1,
            failing_since=func.coalesce(AuditStream.failing_since, now),
            last_failed_at=now,
            last_error=problem,
            next_try_at=next_try_at,
            claimed_until=None,
        )
        .returning(AuditStream.failing_since)
        .execution_options(synchronize_session=False)
    ).one()
    return Failure(failures=tries + 1, failing_since=failing_since or now, next_try_at=next_try_at)


def _is_ours(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return AuditStream.id == claim.stream_id, AuditStream.claim == claim.number
