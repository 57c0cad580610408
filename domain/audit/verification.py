"""Verifies the audit log: detects events that were changed, added or removed in the database."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.audit.seals import digest_of_events, event_digest, pruned_mac, seal_mac
from models import AuditEvent, AuditSeal

_SLICE = 200


@dataclass(frozen=True, kw_only=True)
class Head:
    """The number and the hash of a seal, as recorded outside of the database: `12:9f3a…`."""

    id: int
    mac: str

    @classmethod
    def of(cls, text: str) -> "Head":
        """Parse the text form, or raise ValueError."""
        number, _, mac = text.partition(":")
        if not (number.isascii() and number.isdigit() and len(bytes.fromhex(mac)) == 32):  # noqa: PLR2004 - bytes of a SHA-256
            raise ValueError(text)
        return cls(id=int(number), mac=mac.lower())

    def __str__(self) -> str:
        """Return the text form."""
        return f"{self.id}:{self.mac}"


def head_of(seal: AuditSeal) -> Head:
    """Return the head of a seal."""
    return Head(id=seal.id, mac=seal.mac.hex())


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result of a verification."""

    #: Sealed events, and those that are not sealed yet.
    sealed: int
    unsealed: int
    seals: int
    head: Head | None
    #: The faults found, a sentence each.
    faults: tuple[str, ...]


def verify(*, session: Session, key: bytes, recorded: Head | None = None) -> Verification:
    """Verify every event and every seal; `recorded` has to be one of the seals, or older than all.

    Without a `recorded` head, the removal of the newest seals with their events is not detected.
    """
    faults: list[str] = []
    sealed = seals = 0
    previous: AuditSeal | None = None
    is_present = recorded is None
    for seal in _seals(session):
        faults += _faults_of_chain(seal, previous, key=key)
        count, found = _faults_of_events(seal, session=session, key=key)
        faults += found
        sealed, seals, previous = sealed + count, seals + 1, seal
        is_present |= head_of(seal) == recorded
    if recorded is not None and not is_present:
        faults += _fault_of_head(recorded, session=session)
    strays = select(func.count(AuditEvent.id)).where(
        AuditEvent.seal_id.is_not(None), AuditEvent.seal_id.not_in(select(AuditSeal.id))
    )
    if stray := session.scalar(strays):
        faults.append(f"{stray} events refer to a seal that does not exist.")
    waiting = select(func.count(AuditEvent.id)).where(AuditEvent.seal_id.is_(None))
    return Verification(
        sealed=sealed,
        unsealed=session.scalar(waiting) or 0,
        seals=seals,
        head=head_of(previous) if previous else None,
        faults=tuple(faults),
    )


def _seals(session: Session) -> Iterator[AuditSeal]:
    last = 0
    while True:
        later = select(AuditSeal).where(AuditSeal.id > last).order_by(AuditSeal.id)
        some = session.scalars(later.limit(_SLICE)).all()
        for each in some:
            session.expunge(each)
        yield from some
        if not some:
            return
        last = some[-1].id


def _faults_of_chain(seal: AuditSeal, previous: AuditSeal | None, *, key: bytes) -> list[str]:
    is_pruned = seal.pruned_mac is not None
    if seal.pruned_mac is not None and not hmac.compare_digest(
        seal.pruned_mac, pruned_mac(seal, key=key)
    ):
        return [
            f"Seal {seal.id} says that its events grew too old, but that was not recorded here."
        ]
    if previous is None and seal.id != 1:
        # Events before a pruned seal were older and are pruned as well.
        return [] if is_pruned else [f"The seals before {seal.id} are gone."]
    if previous is not None and seal.id != previous.id + 1:
        return [f"The seals between {previous.id} and {seal.id} are gone."]
    expected = seal_mac(seal, previous=previous.mac if previous else b"", key=key)
    if not hmac.compare_digest(seal.mac, expected):
        return [f"Seal {seal.id} was changed, or the one before it."]
    return []


def _faults_of_events(seal: AuditSeal, *, session: Session, key: bytes) -> tuple[int, list[str]]:
    statement = select(AuditEvent).where(AuditEvent.seal_id == seal.id).order_by(AuditEvent.id)
    events = session.scalars(statement).all()
    if seal.pruned_mac is not None:
        return 0, [f"Seal {seal.id} has events again."] if events else []
    faults = [
        f"Event {each.id} ({each.kind}) was changed after it was written."
        for each in events
        if not _is_as_sealed(each, key=key)
    ]
    if len(events) != seal.event_count:
        counts = f"{seal.event_count} events and has {len(events)}"
        faults.append(f"Seal {seal.id} was made for {counts}.")
    elif seal.events_digest != digest_of_events([each.digest or b"" for each in events], key=key):
        faults.append(f"Seal {seal.id} was made for other events.")
    return len(events), faults


def _is_as_sealed(event: AuditEvent, *, key: bytes) -> bool:
    if event.digest is None:
        return False
    if event.erased_digest is None:
        return hmac.compare_digest(event.digest, event_digest(event, key=key))
    now = event_digest(event, key=key, former=event.digest)
    return hmac.compare_digest(event.erased_digest, now)


def _fault_of_head(recorded: Head, *, session: Session) -> list[str]:
    oldest = session.scalar(select(func.min(AuditSeal.id)))
    if oldest is not None and recorded.id < oldest:
        return []  # Its events grew too old, and so did it.
    return [f"Seal {recorded} existed and is missing now."]
