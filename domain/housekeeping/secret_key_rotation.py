"""Progress of a secret key rotation, and re-encryption with the newest key.

Ciphertexts can be re-encrypted immediately. A keyed hash can be renewed only when its credential is
presented. Long-lived credentials are rehashed then, and short-lived credentials expire.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

import models
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.hosts import MAX_HOST_REPORT_AGE, HostReport, list_running_hosts
from domain.core.keyring import Keyring, UndecryptableError

#: Maximum number of rows that are read at a time, because the outbox may be large.
_BATCH_SIZE = 1_000
#: Encrypted columns by kind. Some columns may be empty.
_ENCRYPTED_COLUMNS: Mapping[str, InstrumentedAttribute[Any]] = {
    "integration_keys": models.Integration.key_ciphertext,
    "heartbeat_urls": models.Heartbeat.key_ciphertext,
    "authenticator_apps": models.TotpDevice.seed_ciphertext,
    "signing_keys": models.SigningKey.private_ciphertext,
    "audit_keys": models.AuditKey.ciphertext,
    "registry_keys": models.RegistryKey.private_ciphertext,
    "push_keys": models.PushKey.private_ciphertext,
    "audit_stream_secrets": models.AuditStream.secret_ciphertext,
    "previous_audit_stream_secrets": models.AuditStream.previous_secret_ciphertext,
    "webhook_secrets": models.WebhookEndpoint.secret_ciphertext,
    "previous_webhook_secrets": models.WebhookEndpoint.previous_secret_ciphertext,
    "identity_provider_secrets": models.IdentityProvider.client_secret_ciphertext,
    "identity_refresh_tokens": models.Identity.refresh_token_ciphertext,
    "contact_addresses": models.Contact.address_ciphertext,
    "contact_codes": models.Contact.code_ciphertext,
    "webhook_urls": models.WebhookEndpoint.url_ciphertext,
    "audit_stream_urls": models.AuditStream.url_ciphertext,
    "on_call_calendar_urls": models.OnCallImportedCalendar.url_ciphertext,
    "messages": models.Mail.text_ciphertext,
    "idempotent_responses": models.IdempotentRequest.response_ciphertext,
}


@dataclass(frozen=True, kw_only=True)
class SecretKeyRotation:
    """The progress of a secret key rotation: keys by host, and counts of rows with older keys."""

    keyring: Keyring
    hosts: tuple[HostReport, ...]
    #: Fingerprints of all keys that were ever used for writing.
    used: frozenset[str]
    #: Numbers of ciphertexts that were created with older keys, by kind.
    encrypted: Mapping[str, int]
    #: Numbers of keyed hashes that were computed with older keys, by kind.
    hashed: Mapping[str, int]
    #: Numbers of ciphertexts that no known key can decrypt, by kind.
    unreadable: Mapping[str, int]

    def list_hosts_without_key(self, fingerprint: str) -> tuple[str, ...]:
        """Return the names of the hosts that do not have a key."""
        return tuple(host.name for host in self.hosts if fingerprint not in host.key_fingerprints)

    def list_hosts_writing_with_key(self, fingerprint: str) -> tuple[str, ...]:
        """Return the names of the hosts that hash and encrypt with a key."""
        return tuple(host.name for host in self.hosts if host.key_fingerprints[0] == fingerprint)

    @property
    def old_key_row_count(self) -> int:
        """Number of rows that need an older key."""
        return sum(self.encrypted.values()) + sum(self.hashed.values())


def get_secret_key_rotation(
    keyring: Keyring, *, session: Session, now: datetime
) -> SecretKeyRotation:
    """Return the state of a rotation, based on the reports from hosts and the stored rows."""
    encrypted, unreadable = _count_ciphertexts(keyring, session)
    return SecretKeyRotation(
        keyring=keyring,
        hosts=tuple(list_running_hosts(session=session, now=now)),
        used=frozenset(session.scalars(select(models.SecretKeyUse.fingerprint))),
        encrypted=encrypted,
        hashed=_count_hashes(keyring, session, now),
        unreadable=unreadable,
    )


def reencrypt_all_columns(keyring: Keyring, *, session: Session) -> dict[str, int]:
    """Re-encrypt ciphertexts from older keys with the newest key, and return counts by kind."""
    return {
        kind: _reencrypt_column(column, keyring, session)
        for kind, column in _ENCRYPTED_COLUMNS.items()
    }


def _reencrypt_column(
    column: InstrumentedAttribute[Any], keyring: Keyring, session: Session
) -> int:
    table, done = column.class_, 0
    for row_id, ciphertext in _read_ciphertexts(column, session):
        clear = _try_decrypt(keyring, ciphertext)
        if clear is None or keyring.is_encrypted_with_newest_key(ciphertext):
            continue
        values: dict[Any, Any] = {column: keyring.encrypt(clear)}
        if table in {models.Integration, models.Heartbeat}:
            values[table.key_digest] = keyring.compute_digest(clear)
        # A value that was replaced in the meantime is kept.
        unchanged = build_bulk_update(table).where(table.id == row_id, column == ciphertext)
        changed = session.execute(unchanged.values(values))
        done += changed.rowcount  # type: ignore[attr-defined]
    return done


def _count_ciphertexts(keyring: Keyring, session: Session) -> tuple[dict[str, int], dict[str, int]]:
    older, unreadable = dict.fromkeys(_ENCRYPTED_COLUMNS, 0), dict.fromkeys(_ENCRYPTED_COLUMNS, 0)
    for kind, column in _ENCRYPTED_COLUMNS.items():
        for _row_id, ciphertext in _read_ciphertexts(column, session):
            if _try_decrypt(keyring, ciphertext) is None:
                unreadable[kind] += 1
            elif not keyring.is_encrypted_with_newest_key(ciphertext):
                older[kind] += 1
    return older, unreadable


def _read_ciphertexts(
    column: InstrumentedAttribute[Any], session: Session
) -> Iterator[tuple[int, str]]:
    """Yield the ciphertexts in a column with the IDs of their rows, read in batches."""
    key, last = column.class_.id, 0
    some = select(key, column).where(column.is_not(None)).order_by(key).limit(_BATCH_SIZE)
    while rows := session.execute(some.where(key > last)).all():
        yield from ((row_id, ciphertext) for row_id, ciphertext in rows)
        last = rows[-1][0]


def _try_decrypt(keyring: Keyring, ciphertext: str) -> str | None:
    try:
        return keyring.decrypt(ciphertext)
    except UndecryptableError:
        return None


def _count_hashes(keyring: Keyring, session: Session, now: datetime) -> dict[str, int]:
    """Count the hashes that may need an older key, by the age of their rows.

    A row may need an older key if it was written before all hosts used the newest key.
    """
    older = select(func.max(models.SecretKeyUse.last_used_at)).where(
        models.SecretKeyUse.fingerprint != keyring.fingerprints[0]
    )
    last = session.scalar(older)
    if last is None:
        return dict.fromkeys(_build_credential_counts(now, now), 0)
    # A host may have continued to write for a while after its last report.
    counts = _build_credential_counts(last + MAX_HOST_REPORT_AGE, now)
    return {kind: session.scalar(each) or 0 for kind, each in counts.items()}


def _build_credential_counts(moment: datetime, now: datetime) -> dict[str, Select[int]]:
    """Return statements that count valid credentials hashed before a time, by kind."""
    pair, personal, secret = (
        models.AccessToken,
        models.PersonalAccessToken,
        models.ApplicationSecret,
    )
    return {
        "sign_ins": _build_count(models.SignIn.created_at < moment, models.SignIn.expires_at > now),
        "access_and_refresh_tokens": _build_count(
            pair.created_at < moment,
            pair.revoked_at.is_(None),
            or_(pair.refresh_digest.is_not(None), _is_future_or_null(pair.expires_at, now)),
        ),
        "personal_access_tokens": _build_count(
            func.coalesce(personal.keyed_at, personal.created_at) < moment,
            personal.revoked_at.is_(None),
            personal.expires_at > now,
        ),
        "client_secrets": _build_count(
            func.coalesce(secret.keyed_at, secret.created_at) < moment,
            _is_future_or_null(secret.expires_at, now),
        ),
        "registrations": _build_count(
            func.coalesce(models.Application.keyed_at, models.Application.created_at) < moment,
            models.Application.registration_digest.is_not(None),
        ),
        "authorization_codes": _build_count(
            models.Authorization.created_at < moment,
            models.Authorization.code_used_at.is_(None),
            models.Authorization.code_expires_at > now,
        ),
        "devices": _build_count(
            models.DeviceAuthorization.created_at < moment,
            models.DeviceAuthorization.expires_at > now,
        ),
        "pushed_requests": _build_count(
            models.PushedRequest.created_at < moment, models.PushedRequest.expires_at > now
        ),
        "recovery_codes": _build_count(
            models.RecoveryCode.created_at < moment, models.RecoveryCode.used_at.is_(None)
        ),
        "on_call_calendars": _build_count(
            func.coalesce(models.OnCallFeed.keyed_at, models.OnCallFeed.created_at) < moment
        ),
        # The creation time of previous keys is not stored.
        "previous_integration_keys": _build_count(models.Integration.previous_key_expires_at > now),
        "previous_heartbeat_urls": _build_count(models.Heartbeat.previous_key_expires_at > now),
    }


def _build_count(*conditions: ColumnElement[bool]) -> Select[int]:
    return select(func.count()).where(*conditions)


def _is_future_or_null(
    moment: InstrumentedAttribute[datetime | None], now: datetime
) -> ColumnElement[bool]:
    """Return an SQL condition that is true if a time is in the future or NULL."""
    return or_(moment.is_(None), moment > now)
