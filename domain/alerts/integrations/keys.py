"""The keys of an integration: the current one and, during a grace period, the previous one."""

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.alerts.integrations.integrations import get_integration_row
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.grace_period import GracePeriod
from domain.keyring import CredentialType, Keyring
from models import Integration

#: The longest time that a replaced key stays valid.
LONGEST_GRACE = max(each.length for each in GracePeriod)


@dataclass(frozen=True, kw_only=True)
class PreviousKey:
    """A replaced key that is still accepted."""

    key_id: str
    expires_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class IntegrationKeys:
    """The keys that an integration accepts now."""

    clear: str = field(repr=False)
    last_used_at: datetime | None
    #: Identifies the key without revealing it: a form sends it back to name the key that it showed.
    key_id: str
    previous: PreviousKey | None


def keys_of(
    integration_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> IntegrationKeys:
    """Return the accepted keys of an integration; only the current one in clear text.

    Raise NotFoundError.
    """
    integration = get_integration_row(integration_id, session=session)
    expires_at = integration.previous_key_expires_at
    return IntegrationKeys(
        clear=keyring.decrypt(integration.key_ciphertext),
        last_used_at=integration.key_last_used_at,
        key_id=_key_id(integration.key_digest),
        previous=PreviousKey(
            key_id=_key_id(integration.previous_key_digest),
            expires_at=expires_at,
            last_used_at=integration.previous_key_last_used_at,
        )
        if integration.previous_key_digest and expires_at and expires_at > now
        else None,
    )


def _key_id(digest: bytes) -> str:
    # A part of the keyed hash of a random key: neither key nor hash can be derived from it.
    return digest.hex()[:16]


def reset_key(
    integration_id: int,
    *,
    seen: str | None,
    previous_until: datetime | None,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Replace the key; the old one is accepted until `previous_until`, or not at all.

    `seen` is the id of the key to be replaced; None stands for the present one. Raise ConflictError
    if that is no longer the current key: a second reset at the same time would end the grace period
    of the first. Raise InvalidError for a time that has passed or is too far away, NotFoundError.
    """
    _check_end(previous_until, now)
    key = keyring.issue(CredentialType.INTEGRATION_KEY)
    values: dict[str, object] = {
        "key_digest": key.digest,
        "key_ciphertext": keyring.encrypt(key.clear),
        "key_last_used_at": None,
        "previous_key_digest": Integration.key_digest if previous_until else None,
        "previous_key_expires_at": previous_until,
        "previous_key_last_used_at": Integration.key_last_used_at if previous_until else None,
    }
    _update(integration_id, seen, values, session=session)


def _check_end(previous_until: datetime | None, now: datetime) -> None:
    if previous_until is None:
        return
    if not now < previous_until <= now + LONGEST_GRACE:
        message = f"The old key can stay valid for at most {LONGEST_GRACE.days} days from now."
        raise InvalidError(message, field="previous_key_expires_at")


def end_key(integration_id: int, key_id: str, *, session: Session, now: datetime) -> None:
    """Refuse the previous key with this id from now on.

    Raise ConflictError for the current one, which a reset replaces, or NotFoundError.
    """
    integration = get_integration_row(integration_id, session=session)
    current, previous = integration.key_digest, integration.previous_key_digest
    if key_id == _key_id(current):
        raise ConflictError("This is the current key: replace it, or turn the integration off.")
    expires_at = integration.previous_key_expires_at
    is_live = previous and expires_at and expires_at > now
    if not (previous and is_live and key_id == _key_id(previous)):
        raise NotFoundError("Key not found in this integration.")
    end_previous_key(integration_id, seen=_key_id(current), session=session)


def end_previous_key(integration_id: int, *, seen: str, session: Session) -> None:
    """Refuse the previous key from now on; `seen` and the errors are those of `reset_key`."""
    values: dict[str, object] = {
        "previous_key_digest": None,
        "previous_key_expires_at": None,
        "previous_key_last_used_at": None,
    }
    _update(integration_id, seen, values, session=session)


def _update(
    integration_id: int, seen: str | None, values: dict[str, object], *, session: Session
) -> None:
    integration = get_integration_row(integration_id, session=session)
    statement = (
        update(Integration)
        .where(Integration.id == integration.id, Integration.key_digest == integration.key_digest)
        .values(values)
        .returning(Integration.id)
        .execution_options(synchronize_session=False)
    )
    is_seen = seen is None or seen == _key_id(integration.key_digest)
    if not is_seen or session.scalar(statement) is None:
        raise ConflictError("The key was already replaced; nothing was changed.")
    session.refresh(integration)
