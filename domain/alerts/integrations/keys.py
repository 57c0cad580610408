"""The keys of an integration: one that senders use, and for a while the one before it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.errors import ConflictError
from domain.keyring import Keyring, Kind
from domain.overlap import Overlap
from models import Integration


@dataclass(frozen=True, kw_only=True)
class PreviousKey:
    """A key that was replaced and still counts."""

    expires_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Keys:
    """What the credentials page shows of the keys."""

    clear: str = field(repr=False)
    last_used_at: datetime | None
    #: Says which key this is without telling it: what a form hands back to mean this one.
    mark: str
    previous: PreviousKey | None


def keys_of(integration: Integration, *, keyring: Keyring, now: datetime) -> Keys:
    """Return the live keys of an integration; only the present one can be shown."""
    expires_at = integration.previous_key_expires_at
    is_live = integration.previous_key_digest is not None and expires_at and expires_at > now
    return Keys(
        clear=keyring.decrypt(integration.key_ciphertext),
        last_used_at=integration.key_last_used_at,
        mark=_mark(integration),
        previous=PreviousKey(
            expires_at=expires_at, last_used_at=integration.previous_key_last_used_at
        )
        if is_live and expires_at
        else None,
    )


def _mark(integration: Integration) -> str:
    # A part of the keyed hash of a random key: it leads neither to the key nor to the hash.
    return integration.key_digest.hex()[:16]


def reset_key(
    integration: Integration,
    *,
    seen: str,
    overlap: Overlap,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Replace the key; the old one is good for a while yet.

    `seen` is the mark of the key to be replaced. Raise ConflictError if it is no longer the present
    one: of two who reset at once the second would end the overlap that the first one chose.
    """
    key = keyring.issue(Kind.INTEGRATION_KEY)
    values: dict[str, Any] = {
        "key_digest": key.digest,
        "key_ciphertext": keyring.encrypt(key.clear),
        "key_last_used_at": None,
        "previous_key_digest": Integration.key_digest if overlap.length else None,
        "previous_key_expires_at": now + overlap.length if overlap.length else None,
        "previous_key_last_used_at": Integration.key_last_used_at if overlap.length else None,
    }
    _claim(integration, seen, values, session=session)


def end_previous_key(integration: Integration, *, seen: str, session: Session) -> None:
    """Refuse the previous key from now on; `seen` and ConflictError as above."""
    values: dict[str, Any] = {
        "previous_key_digest": None,
        "previous_key_expires_at": None,
        "previous_key_last_used_at": None,
    }
    _claim(integration, seen, values, session=session)


def _claim(
    integration: Integration, seen: str, values: dict[str, Any], *, session: Session
) -> None:
    claim = (
        update(Integration)
        .where(Integration.id == integration.id, Integration.key_digest == integration.key_digest)
        .values(values)
        .returning(Integration.id)
        .execution_options(synchronize_session=False)
    )
    if seen != _mark(integration) or session.scalar(claim) is None:
        raise ConflictError("The key was replaced meanwhile; nothing was changed now.")
    session.refresh(integration)
