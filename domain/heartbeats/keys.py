"""The URL of a heartbeat: its secret part, and the former one while that is accepted."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.errors import InvalidError
from domain.grace_period import GracePeriod
from domain.heartbeats.heartbeats import get_row
from domain.keyring import Keyring
from domain.randomness import random_uuid

#: The longest time that a replaced URL stays valid.
LONGEST_GRACE = max(each.length for each in GracePeriod)


@dataclass(frozen=True, kw_only=True)
class HeartbeatKey:
    """The secret part of a URL, and until when the former one is accepted, if it is."""

    clear: str = field(repr=False)
    previous_until: datetime | None


def key_of(
    project_id: int, heartbeat_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> HeartbeatKey:
    """Return the secret part of the URL, or raise NotFoundError."""
    row = get_row(project_id, heartbeat_id, session=session)
    until = row.previous_key_expires_at
    is_live = row.previous_key_digest is not None and until is not None and until > now
    return HeartbeatKey(
        clear=keyring.decrypt(row.key_ciphertext), previous_until=until if is_live else None
    )


def reset_key(
    project_id: int,
    heartbeat_id: int,
    *,
    previous_for: timedelta,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> HeartbeatKey:
    """Replace the URL; the former one is accepted for a time, or not at all.

    Raise InvalidError for a time that is too long, or NotFoundError.
    """
    if not timedelta(0) <= previous_for <= LONGEST_GRACE:
        message = f"The old URL can stay valid for at most {LONGEST_GRACE.days} days."
        raise InvalidError(message, field="previous_for")
    row = get_row(project_id, heartbeat_id, session=session)
    key = random_uuid()
    row.previous_key_digest = row.key_digest if previous_for else None
    row.previous_key_expires_at = now + previous_for if previous_for else None
    row.key_digest, row.key_ciphertext = keyring.digest(key), keyring.encrypt(key)
    session.flush()  # a key that is not unique would fail here
    return HeartbeatKey(clear=key, previous_until=row.previous_key_expires_at)
