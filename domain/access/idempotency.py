"""Carries a request out once, however often it is sent.

draft-ietf-httpapi-idempotency-key-header-07. A request is claimed in a transaction of its own; its
response is stored in the transaction of what it did, so that one never stands without the other.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from domain.core.database.rows import insert_into
from domain.core.errors import ConflictError, InvalidError
from domain.core.keyring import Keyring, UndecipherableError
from models import IdempotentRequest

#: How long a response is repeated.
KEPT_FOR = timedelta(hours=24)
#: Longer than the longest time that a request may take (REQUEST_TIMEOUT_SECONDS).
_ABANDONED_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class KeyedRequest:
    """A request with a key."""

    user_id: int
    #: Names the user with the application or token; the keys of each are its own.
    caller: str
    key: str
    #: What has to be the same when the key comes again: method, URL and body.
    content: str

    @property
    def digest(self) -> bytes:
        """SHA-256 of the caller and the key."""
        return sha256(f"{self.caller}\n{self.key}".encode()).digest()


@dataclass(frozen=True, kw_only=True)
class StoredResponse:
    """The response to a request that was carried out."""

    status: int
    body: str


class ReusedKeyError(InvalidError):
    """The key belongs to another request."""


def claim(
    wanted: KeyedRequest, *, session: Session, keyring: Keyring, now: datetime
) -> StoredResponse | None:
    """Claim a request and return None, or return the response if it was carried out before.

    Raises ConflictError while it is under way, and ReusedKeyError for another request with the
    same key. The caller commits.
    """
    insert = insert_into(IdempotentRequest, session=session).values(
        user_id=wanted.user_id,
        digest=wanted.digest,
        request_digest=keyring.digest(wanted.content),
        claimed_at=now,
    )
    is_over = (IdempotentRequest.claimed_at < now - KEPT_FOR) | (
        IdempotentRequest.status.is_(None) & (IdempotentRequest.claimed_at < now - _ABANDONED_AFTER)
    )
    claimed = session.scalar(
        insert.on_conflict_do_update(
            index_elements=[IdempotentRequest.digest],
            set_={
                "request_digest": insert.excluded.request_digest,
                "claimed_at": now,
                "status": None,
                "response_ciphertext": None,
            },
            where=is_over,
        ).returning(IdempotentRequest.id)
    )
    return _stored(wanted, session, keyring) if claimed is None else None


def _stored(wanted: KeyedRequest, session: Session, keyring: Keyring) -> StoredResponse:
    found = session.execute(
        select(
            IdempotentRequest.request_digest,
            IdempotentRequest.status,
            IdempotentRequest.response_ciphertext,
        ).where(IdempotentRequest.digest == wanted.digest)
    ).one_or_none()
    if found is None or found.status is None:
        raise ConflictError("A request with this Idempotency-Key is in progress.")
    if not keyring.matches(wanted.content, [found.request_digest]):
        message = "This Idempotency-Key belongs to another request: use a new one for each request."
        raise ReusedKeyError(message, field="Idempotency-Key")
    try:
        return StoredResponse(
            status=found.status, body=keyring.decrypt(found.response_ciphertext or "")
        )
    except UndecipherableError as error:  # an older secret key was taken away meanwhile
        message = "This request was carried out, but its response can no longer be read."
        raise ConflictError(message) from error


def keep_response(
    wanted: KeyedRequest, response: StoredResponse, *, session: Session, keyring: Keyring
) -> None:
    """Store the response of a claimed request; the caller commits it with what was done."""
    session.execute(
        update(IdempotentRequest)
        .where(IdempotentRequest.digest == wanted.digest)
        .values(status=response.status, response_ciphertext=keyring.encrypt(response.body))
    )


def release(wanted: KeyedRequest, *, session: Session) -> None:
    """Forget a claimed request that failed, so that it may be sent again; the caller commits."""
    session.execute(delete(IdempotentRequest).where(IdempotentRequest.digest == wanted.digest))
