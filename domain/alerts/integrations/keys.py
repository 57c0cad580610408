"""The keys of an integration: the current one and, during a grace period, the previous one."""

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import update
from sqlalchemy.orm import Session

from domain.alerts.integrations.integrations import get_integration_row
from domain.errors import ConflictError
from domain.grace_period import GracePeriod
from domain.keyring import CredentialType, Keyring
from models import Integration


@dataclass(frozen=True, kw_only=True)
class PreviousKey:
    """A replaced key that is still accepted."""

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
    is_live = integration.previous_key_digest is not None and expires_at and expires_at > now
    return IntegrationKeys(
        clear=keyring.decrypt(integration.key_ciphertext),
        last_used_at=integration.key_last_used_at,
        key_id=_key_id(integration),
        previous=PreviousKey(
            expires_at=expires_at, last_used_at=integration.previous_key_last_used_at
        )
        if is_live and expires_at
        else None,
    )


def _key_id(integration: Integration) -> str:
    # A part of the keyed hash of a random key: neither key nor hash can be derived from it.
    return integration.key_digest.hex()[:16]


def reset_key(
    integration_id: int,
    *,
    seen: str,
    grace_period: GracePeriod,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Replace the key; the old one is accepted for the length of `grace_period`.

    `seen` is the id of the key to be replaced. Raise ConflictError if that is no longer the
    current key: a second reset at the same time would end the grace period of the first. Raise
    NotFoundError.
    """
    key = keyring.issue(CredentialType.INTEGRATION_KEY)
    values: dict[str, object] = {
        "key_digest": key.digest,
        "key_ciphertext": keyring.encrypt(key.clear),
        "key_last_used_at": None,
        "previous_key_digest": Integration.key_digest if grace_period.length else None,
        "previous_key_expires_at": now + grace_period.length if grace_period.length else None,
        "previous_key_last_used_at": Integration.key_last_used_at if grace_period.length else None,
    }
    _update(integration_id, seen, values, session=session)


def end_previous_key(integration_id: int, *, seen: str, session: Session) -> None:
    """Refuse the previous key from now on; `seen` and the errors are those of `reset_key`."""
    values: dict[str, object] = {
        "previous_key_digest": None,
        "previous_key_expires_at": None,
        "previous_key_last_used_at": None,
    }
    _update(integration_id, seen, values, session=session)


def _update(integration_id: int, seen: str, values: dict[str, object], *, session: Session) -> None:
    integration = get_integration_row(integration_id, session=session)
    statement = (
        update(Integration)
        .where(Integration.id == integration.id, Integration.key_digest == integration.key_digest)
        .values(values)
        .returning(Integration.id)
        .execution_options(synchronize_session=False)
    )
    if seen != _key_id(integration) or session.scalar(statement) is None:
        raise ConflictError("The key was already replaced; nothing was changed.")
    session.refresh(integration)
