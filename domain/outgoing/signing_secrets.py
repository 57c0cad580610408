"""The secrets of a destination: one, or two while the former one still signs."""

from datetime import datetime, timedelta

from domain.errors import InvalidError
from domain.keyring import Keyring
from domain.outgoing.signing import new_secret
from models.destination import Destination

LONGEST_OVERLAP = timedelta(days=90)
USUAL_OVERLAP = timedelta(days=1)


def secrets_of(row: Destination, *, keyring: Keyring, now: datetime) -> list[str]:
    """Return the secrets of a destination that sign, the newest first."""
    found = [keyring.decrypt(row.secret_ciphertext)]
    previous, ends = row.previous_secret_ciphertext, previous_ends_at(row, now=now)
    if previous is not None and ends is not None:
        found.append(keyring.decrypt(previous))
    return found


def previous_ends_at(row: Destination, *, now: datetime) -> datetime | None:
    """Return until when a former secret signs, or None if none does."""
    ends = row.previous_secret_expires_at
    return ends if ends is not None and ends > now else None


def replace_secret(
    row: Destination, *, previous_until: datetime, keyring: Keyring, now: datetime
) -> str:
    """Create a new secret; the old one signs beside it until a moment, which may be now.

    A secret that was older still ends at once: there are never more than two.
    """
    if previous_until > now + LONGEST_OVERLAP:
        raise InvalidError(
            f"The old secret can be used for at most {LONGEST_OVERLAP.days} more days.",
            field="previous_secret_expires_at",
        )
    secret, keeps = new_secret(), previous_until > now
    row.previous_secret_ciphertext = row.secret_ciphertext if keeps else None
    row.previous_secret_expires_at = previous_until if keeps else None
    row.secret_ciphertext = keyring.encrypt(secret)
    return secret
