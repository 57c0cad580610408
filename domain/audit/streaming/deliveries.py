"""Hands the events of a destination to one worker at a time, in their order.

An event is removed when it was delivered and not before: after a crash in between it is sent once
more, with the same id.

Ids are given when an event is written, so one that is committed later may have a smaller id. It is
sent when it appears; nothing is skipped, since no position is kept.

An event that the receiver itself refuses, attempt after attempt, is set aside: it stays in the
queue, visibly, and later ones go before it. It gets its turn again when the destination recovers,
and when an administrator says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast

from sqlalchemy import ColumnElement, Select, delete, exists, func, select, true, update
from sqlalchemy.orm import Session

from domain.audit.log import view_of
from domain.audit.streaming.messages import message_of
from domain.keyring import Keyring
from domain.outgoing import claims
from domain.outgoing.claims import CLAIM_LIFETIME, Attempt, Claim, Delivery, Failure
from domain.outgoing.retries import pause_after
from domain.outgoing.signing import Message
from domain.outgoing.signing_secrets import secrets_of
from models import AuditEvent, AuditStream, AuditStreamEntry, User

#: Attempts before an event is set aside: about nine minutes.
MOST_TRIES = 10
#: Of events in a row. A receiver that refuses more of them is at fault itself, and is waited for.
MOST_SET_ASIDE = 3
#: An event that was set aside is tried once more after each recovery, until this many attempts.
_LAST_TRY = 2 * MOST_TRIES
#: An entry, its event unless that is streamed only or was pruned, and whom that concerns.
_Waiting = tuple[AuditStreamEntry, AuditEvent | None, str | None]


def claim_due_streams(*, session: Session, now: datetime) -> Sequence[Claim]:
    """Claim every destination that has something to be sent, and that nobody else works on."""
    return claims.claim_all(AuditStream, _due(now), session=session, now=now)


def has_due_streams(*, session: Session, now: datetime) -> bool:
    """Return whether there is something to claim; it reads a few rows and writes nothing."""
    return session.scalar(_due(now).limit(1)) is not None


def _due(now: datetime) -> Select[int]:
    has_entries = exists().where(
        AuditStreamEntry.stream_id == AuditStream.id, AuditStreamEntry.set_aside_at.is_(None)
    )
    return select(AuditStream.id).where(*claims.is_due(AuditStream, now), has_entries)


def next_delivery(
    claim: Claim, *, session: Session, keyring: Keyring, now: datetime
) -> Delivery | None:
    """Renew a claim and return the next event, or give the claim up and return None.

    There is none if all was sent, or if the destination was paused, removed, or claimed by another.
    """
    stream = session.scalar(
        select(AuditStream)
        .where(*claims.is_ours(AuditStream, claim), AuditStream.paused_at.is_(None))
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
        .where(AuditStreamEntry.stream_id == stream.id, AuditStreamEntry.set_aside_at.is_(None))
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
    claims.release(AuditStream, claim, session=session)


def record_delivered(claim: Claim, delivery: Delivery, *, session: Session, now: datetime) -> None:
    """Remove an event that was delivered, even if the claim was lost meanwhile."""
    session.execute(
        delete(AuditStreamEntry)
        .where(AuditStreamEntry.id == delivery.entry_id)
        .execution_options(synchronize_session=False)
    )
    has_failed = select(AuditStream.id).where(
        *claims.is_ours(AuditStream, claim), AuditStream.failing_since.is_not(None)
    )
    if session.scalar(has_failed) is not None:
        again = AuditStreamEntry.tries < _LAST_TRY
        _take_back(claim.destination_id, session, again)
    claims.record_success(AuditStream, claim, session=session, now=now)


def take_back_all(stream_id: int, *, session: Session) -> None:
    """Try the events that were set aside from the beginning."""
    _take_back(stream_id, session, true(), tries=0)


def _take_back(
    stream_id: int, session: Session, condition: ColumnElement[bool], **values: int
) -> None:
    session.execute(
        update(AuditStreamEntry)
        .where(
            AuditStreamEntry.stream_id == stream_id,
            AuditStreamEntry.set_aside_at.is_not(None),
            condition,
        )
        .values(set_aside_at=None, **values)
        .execution_options(synchronize_session=False)
    )


def record_failure(
    claim: Claim,
    delivery: Delivery | None,
    attempt: Attempt,
    *,
    share: float,
    session: Session,
    now: datetime,
) -> Failure | None:
    """Schedule the next attempt, and give up the claim; return None if it was lost.

    The problem is shown to administrators; `share` from 0 to 1 varies the pause. There is no
    delivery if the secrets of the destination cannot be read.
    """
    pause = partial(pause_after, share=share, asked_seconds=attempt.asked_seconds)
    failure = claims.record_failure(
        AuditStream, claim, attempt, pause=pause, session=session, now=now
    )
    entry = delivery and session.get(AuditStreamEntry, delivery.entry_id, with_for_update=True)
    if failure is None or not entry:
        return failure
    entry.tries += 1
    if entry.tries < MOST_TRIES or not attempt.refuses_message:
        return failure
    if _set_aside_since(failure.failing_since, claim, session) >= MOST_SET_ASIDE:
        return failure
    entry.set_aside_at = now
    # The next event has not been tried.
    session.execute(
        update(AuditStream)
        .where(*claims.is_ours(AuditStream, claim))
        .values(tries=0, next_try_at=None)
        .execution_options(synchronize_session=False)
    )
    return replace(failure, sets_aside=True)


def _set_aside_since(moment: datetime, claim: Claim, session: Session) -> int:
    mine = AuditStreamEntry.stream_id == claim.destination_id
    since = AuditStreamEntry.set_aside_at >= moment
    return session.scalar(select(func.count()).where(mine, since)) or 0
