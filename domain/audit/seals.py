"""Seals audit events in a hash chain: each seal is a keyed hash that includes the one before.

The worker seals events within a minute after they were written, so that writers do not wait for
each other. With access to the database but not to the key, nobody can change, add or remove an
event or an inner seal undetected (`domain/audit/verification.py`).
"""

import hmac
import json
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.keyring import Keyring
from domain.randomness import random_hex
from models import AuditEvent, AuditKey, AuditSeal

#: The most events of a seal; they are of one day, because they are removed together.
_MOST_EVENTS = 500
_THE_KEY = 1


def audit_key(*, session: Session, keyring: Keyring, now: datetime) -> bytes:
    """Return the key of the seals (32 bytes); the first call creates it.

    Raises UndecipherableError where SECRET_KEY is not the one that it was encrypted with.
    """
    ciphertext = select(AuditKey.ciphertext).where(AuditKey.id == _THE_KEY)
    kept = session.scalar(ciphertext)
    if kept is None:
        made = keyring.encrypt(random_hex(32))
        values = {"id": _THE_KEY, "ciphertext": made, "created_at": now}
        insert = insert_into(AuditKey, session=session).values(values)
        session.execute(insert.on_conflict_do_nothing())
        kept = session.scalars(ciphertext).one()
    return bytes.fromhex(keyring.decrypt(kept))


def seal_events(
    *, session: Session, key: bytes, now: datetime, between: Callable[[], None]
) -> list[AuditSeal]:
    """Seal every event that is not sealed yet; return the new seals.

    `between` is called after each seal; the caller commits there. Of two concurrent calls, one does
    nothing.
    """
    made: list[AuditSeal] = []
    while events := _unsealed(session):
        last = last_seal(session=session)
        try:
            made.append(_seal(events, after=last, session=session, key=key, now=now))
        except IntegrityError:  # Another worker was quicker, and has sealed these.
            session.rollback()
            break
        between()
    return made


def last_seal(*, session: Session) -> AuditSeal | None:
    """Return the last seal of the chain, or None."""
    return session.scalar(select(AuditSeal).order_by(AuditSeal.id.desc()).limit(1))


def _unsealed(session: Session) -> list[AuditEvent]:
    oldest = select(AuditEvent).where(AuditEvent.seal_id.is_(None)).order_by(AuditEvent.id)
    events = session.scalars(oldest.limit(_MOST_EVENTS)).all()
    return [each for each in events if each.created_at.date() == events[0].created_at.date()]


def _seal(
    events: Sequence[AuditEvent],
    *,
    after: AuditSeal | None,
    session: Session,
    key: bytes,
    now: datetime,
) -> AuditSeal:
    digests = [event_digest(each, key=key) for each in events]
    seal = AuditSeal(
        id=after.id + 1 if after else 1,
        sealed_at=now,
        newest_at=max(each.created_at for each in events),
        event_count=len(events),
        events_digest=digest_of_events(digests, key=key),
    )
    seal.mac = seal_mac(seal, previous=after.mac if after else b"", key=key)
    session.add(seal)
    session.flush()  # Fails if another process has taken the number.
    for event, digest in zip(events, digests, strict=True):
        event.seal_id, event.digest = seal.id, digest
    session.flush()
    return seal


def prune_events(
    *, session: Session, key: bytes, before: datetime, between: Callable[[], None]
) -> int:
    """Remove the events of seals that are older than a moment; return how many were removed.

    A seal stays, marked as pruned, until all seals before it are old enough as well.
    """
    total = 0
    old = select(AuditSeal).where(AuditSeal.newest_at < before, AuditSeal.pruned_mac.is_(None))
    while seal := session.scalar(old.order_by(AuditSeal.id).limit(1)):
        session.execute(delete(AuditEvent).where(AuditEvent.seal_id == seal.id))
        seal.pruned_mac = pruned_mac(seal, key=key)
        total += seal.event_count
        _shorten(session)
        between()
    return total


def _shorten(session: Session) -> None:
    """Delete pruned seals from the beginning of the chain, except the last of them."""
    session.flush()
    first_kept = (
        select(func.min(AuditSeal.id)).where(AuditSeal.pruned_mac.is_(None)).scalar_subquery()
    )
    last = select(func.max(AuditSeal.id)).scalar_subquery()
    beginning = func.coalesce(first_kept - 1, last)
    session.execute(
        delete(AuditSeal)
        .where(AuditSeal.id < beginning)
        .execution_options(synchronize_session=False)
    )


def seal_erased(event: AuditEvent, *, key: bytes) -> None:
    """Store the digest of an event from which a person was erased, beside its former digest."""
    if event.digest is not None:
        event.erased_digest = event_digest(event, key=key, former=event.digest)


def event_digest(event: AuditEvent, *, key: bytes, former: bytes = b"") -> bytes:
    """Return the keyed hash of an event; `former` is its digest before an erasure."""
    return _mac(
        key,
        "event",
        event.id,
        event.created_at.isoformat(timespec="microseconds"),
        event.kind,
        event.actor_id,
        event.actor_name,
        event.user_id,
        event.subject,
        event.details,
        event.address,
        event.user_agent,
        event.request_id,
        former.hex(),
    )


def digest_of_events(digests: Sequence[bytes], *, key: bytes) -> bytes:
    """Return the keyed hash of the digests of a seal's events, in the order of their ids."""
    return _mac(key, "events", [each.hex() for each in digests])


def seal_mac(seal: AuditSeal, *, previous: bytes, key: bytes) -> bytes:
    """Return the keyed hash of a seal and of the one before it (empty for the first)."""
    return _mac(
        key,
        "seal",
        seal.id,
        seal.sealed_at.isoformat(timespec="microseconds"),
        seal.newest_at.isoformat(timespec="microseconds"),
        seal.event_count,
        seal.events_digest.hex(),
        previous.hex(),
    )


def pruned_mac(seal: AuditSeal, *, key: bytes) -> bytes:
    """Return the keyed hash that marks a seal as pruned for its age."""
    return _mac(key, "pruned", seal.id, seal.mac.hex())


def _mac(key: bytes, *parts: object) -> bytes:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256")
