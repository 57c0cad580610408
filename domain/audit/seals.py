"""Seals audit events in a hash chain, and verifies the chain.

Each seal is a keyed hash that includes the previous seal. The worker seals events within one minute
of their creation, so that writers do not wait for each other. Without the key, a user with access
to the database cannot change, add or remove a sealed event without detection. The same is true of
every seal except the newest.
"""

import hmac
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from models import AuditEvent, AuditKey, AuditSeal

#: Maximum number of events in a seal. All of them are from the same day, since they are pruned
#: together.
_MAX_EVENTS_PER_SEAL = 500
_KEY_ID = 1
_BATCH_SIZE = 200


def get_or_create_audit_key(*, session: Session, keyring: Keyring, now: datetime) -> bytes:
    """Return the key of the seals (32 bytes), and create it if it does not exist.

    Raise UndecryptableError if the key was encrypted with another SECRET_KEY.
    """
    ciphertext = select(AuditKey.ciphertext).where(AuditKey.id == _KEY_ID)
    kept = session.scalar(ciphertext)
    if kept is None:
        made = keyring.encrypt(generate_random_hex(32))
        values = {"id": _KEY_ID, "ciphertext": made, "created_at": now}
        insert = build_session_insert(AuditKey, session=session).values(values)
        session.execute(insert.on_conflict_do_nothing())
        kept = session.scalars(ciphertext).one()
    return bytes.fromhex(keyring.decrypt(kept))


def seal_events(
    *, session: Session, key: bytes, now: datetime, commit_batch: Callable[[], None]
) -> list[AuditSeal]:
    """Seal all unsealed events, and return the new seals.

    `commit_batch` is called after each seal, and must commit. If two calls run concurrently, only
    one of them seals events.
    """
    made: list[AuditSeal] = []
    while events := _list_unsealed_events(session):
        last = find_last_seal(session=session)
        try:
            made.append(_create_seal(events, audit_seal=last, session=session, key=key, now=now))
        except IntegrityError:  # Another worker was faster, and has sealed these events.
            session.rollback()
            break
        commit_batch()
    return made


def find_last_seal(*, session: Session) -> AuditSeal | None:
    """Return the last seal of the chain, or None."""
    return session.scalar(select(AuditSeal).order_by(AuditSeal.id.desc()).limit(1))


def _list_unsealed_events(session: Session) -> list[AuditEvent]:
    oldest = select(AuditEvent).where(AuditEvent.seal_id.is_(None)).order_by(AuditEvent.id)
    events = session.scalars(oldest.limit(_MAX_EVENTS_PER_SEAL)).all()
    return [each for each in events if each.created_at.date() == events[0].created_at.date()]


def _create_seal(
    events: Sequence[AuditEvent],
    *,
    audit_seal: AuditSeal | None,
    session: Session,
    key: bytes,
    now: datetime,
) -> AuditSeal:
    digests = [compute_event_digest(each, key=key) for each in events]
    seal = AuditSeal(
        id=audit_seal.id + 1 if audit_seal else 1,
        sealed_at=now,
        newest_at=max(each.created_at for each in events),
        event_count=len(events),
        events_digest=combine_event_digests(digests, key=key),
    )
    seal.mac = compute_seal_mac(seal, previous=audit_seal.mac if audit_seal else b"", key=key)
    session.add(seal)
    session.flush()  # The flush fails if another process has created a seal with this ID.
    for event, digest in zip(events, digests, strict=True):
        event.seal_id, event.digest = seal.id, digest
    session.flush()
    return seal


def prune_events(
    *, session: Session, key: bytes, before: datetime, commit_batch: Callable[[], None]
) -> int:
    """Delete the events in seals older than `before`, and return the number of events.

    A seal is kept, marked as pruned, until all earlier seals are old enough as well.
    """
    total = 0
    old = select(AuditSeal).where(AuditSeal.newest_at < before, AuditSeal.pruned_mac.is_(None))
    while seal := session.scalar(old.order_by(AuditSeal.id).limit(1)):
        session.execute(delete(AuditEvent).where(AuditEvent.seal_id == seal.id))
        seal.pruned_mac = compute_pruned_mac(seal, key=key)
        total += seal.event_count
        _delete_pruned_seals(session)
        commit_batch()
    return total


def _delete_pruned_seals(session: Session) -> None:
    """Delete pruned seals from the beginning of the chain, except the last one."""
    session.flush()
    first_kept = (
        select(func.min(AuditSeal.id)).where(AuditSeal.pruned_mac.is_(None)).scalar_subquery()
    )
    last = select(func.max(AuditSeal.id)).scalar_subquery()
    beginning = func.coalesce(first_kept - 1, last)
    session.execute(build_bulk_delete(AuditSeal).where(AuditSeal.id < beginning))


def store_digest_after_erasure(event: AuditEvent, *, key: bytes) -> None:
    """Store the new digest of an event whose personal data was erased, and keep the original."""
    if event.digest is not None:
        event.erased_digest = compute_event_digest(event, key=key, former=event.digest)


def compute_event_digest(event: AuditEvent, *, key: bytes, former: bytes = b"") -> bytes:
    """Return the keyed hash of an event.

    `former` is the digest before personal data was erased.
    """
    return _compute_mac(
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


def combine_event_digests(digests: Sequence[bytes], *, key: bytes) -> bytes:
    """Return the keyed hash over the digests of a seal's events, ordered by event ID."""
    return _compute_mac(key, "events", [each.hex() for each in digests])


def compute_seal_mac(seal: AuditSeal, *, previous: bytes, key: bytes) -> bytes:
    """Return the keyed hash of a seal.

    `previous` is the previous seal's hash, if any.
    """
    return _compute_mac(
        key,
        "seal",
        seal.id,
        seal.sealed_at.isoformat(timespec="microseconds"),
        seal.newest_at.isoformat(timespec="microseconds"),
        seal.event_count,
        seal.events_digest.hex(),
        previous.hex(),
    )


def compute_pruned_mac(seal: AuditSeal, *, key: bytes) -> bytes:
    """Return the keyed hash that marks a seal as pruned because of its age."""
    return _compute_mac(key, "pruned", seal.id, seal.mac.hex())


def _compute_mac(key: bytes, *parts: object) -> bytes:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256")


@dataclass(frozen=True, kw_only=True)
class SealReference:
    """The ID and the hash of a seal, as recorded outside the database: `12:9f3a…`."""

    id: int
    mac: str

    @classmethod
    def from_text(cls, text: str) -> "SealReference":
        """Parse the ID and the hash of a seal, such as `12:9f3a…`.

        Raise ValueError if the string is malformed.
        """
        number, _, mac = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(bytes.fromhex(mac)) == 32):  # noqa: PLR2004 - bytes of a SHA-256
            raise ValueError(text)
        return cls(id=int(number), mac=mac.lower())

    def __str__(self) -> str:
        """Return the ID and the hash as a string, such as `12:9f3a…`."""
        return f"{self.id}:{self.mac}"


def build_seal_reference(seal: AuditSeal) -> SealReference:
    """Return the ID and the hash of a seal."""
    return SealReference(id=seal.id, mac=seal.mac.hex())


@dataclass(frozen=True, kw_only=True)
class SealVerification:
    """The result of verifying the events and seals."""

    #: Number of sealed events.
    sealed: int
    #: Number of events that are not sealed yet.
    unsealed: int
    seals: int
    head: SealReference | None
    #: Detected faults, one sentence each.
    faults: tuple[str, ...]


def verify_seals(
    *, session: Session, key: bytes, recorded: SealReference | None = None
) -> SealVerification:
    """Verify all events and seals.

    `recorded` must be one of the seals, or older than all of them. If `recorded` is None, the
    removal of the newest seals and their events is not detected.
    """
    faults: list[str] = []
    sealed = seals = 0
    previous: AuditSeal | None = None
    is_present = recorded is None
    for seal in _iterate_audit_seals(session):
        faults += _find_chain_faults(seal, previous, key=key)
        count, found = _find_event_faults(seal, session=session, key=key)
        faults += found
        sealed, seals, previous = sealed + count, seals + 1, seal
        is_present |= build_seal_reference(seal) == recorded
    if recorded is not None and not is_present:
        faults += _find_head_fault(recorded, session=session)
    strays = select(func.count(AuditEvent.id)).where(
        AuditEvent.seal_id.is_not(None), AuditEvent.seal_id.not_in(select(AuditSeal.id))
    )
    if stray := session.scalar(strays):
        faults.append(f"Number of events whose seal is missing: {stray}.")
    waiting = select(func.count(AuditEvent.id)).where(AuditEvent.seal_id.is_(None))
    return SealVerification(
        sealed=sealed,
        unsealed=session.scalar(waiting) or 0,
        seals=seals,
        head=build_seal_reference(previous) if previous else None,
        faults=tuple(faults),
    )


def _iterate_audit_seals(session: Session) -> Iterator[AuditSeal]:
    last = 0
    while True:
        later = select(AuditSeal).where(AuditSeal.id > last).order_by(AuditSeal.id)
        some = session.scalars(later.limit(_BATCH_SIZE)).all()
        for each in some:
            session.expunge(each)
        yield from some
        if not some:
            return
        last = some[-1].id


def _find_chain_faults(seal: AuditSeal, previous: AuditSeal | None, *, key: bytes) -> list[str]:
    is_pruned = seal.pruned_mac is not None
    if seal.pruned_mac is not None and not hmac.compare_digest(
        seal.pruned_mac, compute_pruned_mac(seal, key=key)
    ):
        return [f"Seal {seal.id} is marked as pruned, but the mark is not valid."]
    if previous is None and seal.id != 1:
        # Events in the seals before a pruned seal were older, so they were pruned as well.
        return [] if is_pruned else [f"The seals before seal {seal.id} are missing."]
    if previous is not None and seal.id != previous.id + 1:
        return [f"The seals between {previous.id} and {seal.id} are missing."]
    expected = compute_seal_mac(seal, previous=previous.mac if previous else b"", key=key)
    if not hmac.compare_digest(seal.mac, expected):
        return [f"Seal {seal.id} or the previous seal was changed."]
    return []


def _find_event_faults(seal: AuditSeal, *, session: Session, key: bytes) -> tuple[int, list[str]]:
    statement = select(AuditEvent).where(AuditEvent.seal_id == seal.id).order_by(AuditEvent.id)
    events = session.scalars(statement).all()
    if seal.pruned_mac is not None:
        return 0, [f"Seal {seal.id} was pruned, but has events."] if events else []
    faults = [
        f"Event {each.id} ({each.kind}) was changed after it was written."
        for each in events
        if not _is_unchanged(each, key=key)
    ]
    if len(events) != seal.event_count:
        events_of_seal = "1 event" if seal.event_count == 1 else f"{seal.event_count} events"
        counts = f"{events_of_seal}, but has {len(events)}"
        faults.append(f"Seal {seal.id} was created for {counts}.")
    elif seal.events_digest != combine_event_digests(
        [each.digest or b"" for each in events], key=key
    ):
        faults.append(f"Seal {seal.id} was created for other events.")
    return len(events), faults


def _is_unchanged(event: AuditEvent, *, key: bytes) -> bool:
    if event.digest is None:
        return False
    if event.erased_digest is None:
        return hmac.compare_digest(event.digest, compute_event_digest(event, key=key))
    now = compute_event_digest(event, key=key, former=event.digest)
    return hmac.compare_digest(event.erased_digest, now)


def _find_head_fault(recorded: SealReference, *, session: Session) -> list[str]:
    oldest = session.scalar(select(func.min(AuditSeal.id)))
    if oldest is not None and recorded.id < oldest:
        return []  # The recorded seal was pruned because of its age.
    return [f"The recorded seal {recorded} is missing."]
