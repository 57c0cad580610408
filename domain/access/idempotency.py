"""Idempotent requests: a request that a client repeats is executed only once.

Implements draft-ietf-httpapi-idempotency-key-header-07. A request is claimed in a separate
transaction. Its response and its changes are stored in the same transaction, so that neither
exists without the other.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import ConflictError, InvalidError
from domain.core.keyring import Keyring, UndecryptableError
from models import IdempotentRequest

#: Period in which a repeated request receives the stored response.
RESPONSE_LIFETIME = timedelta(hours=24)
#: Age at which an unfinished claim is abandoned. It exceeds REQUEST_TIMEOUT_SECONDS.
_CLAIM_TIMEOUT = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class KeyedRequest:
    """A request with an idempotency key."""

    user_id: int
    #: Text that identifies the user and the application or token. Each caller has its own keys.
    caller: str
    key: str
    #: Method, URL and body, which must be the same when the key is repeated.
    content: str

    @property
    def digest(self) -> bytes:
        """SHA-256 of the caller and the key."""
        return sha256(f"{self.caller}\n{self.key}".encode()).digest()


@dataclass(frozen=True, kw_only=True)
class StoredResponse:
    """The response to an executed request."""

    status: int
    body: str


class ReusedKeyError(InvalidError):
    """Error for an idempotency key that was already used for another request."""


def claim_request(
    keyed_request: KeyedRequest, *, session: Session, keyring: Keyring, now: datetime
) -> StoredResponse | None:
    """Claim a request and return None, or return the stored response from an earlier execution.

    Raise ConflictError while the request is in progress, and ReusedKeyError for another request
    with the same key. The caller commits.
    """
    insert = build_session_insert(IdempotentRequest, session=session).values(
        user_id=keyed_request.user_id,
        digest=keyed_request.digest,
        request_digest=keyring.compute_digest(keyed_request.content),
        claimed_at=now,
    )
    is_over = (IdempotentRequest.claimed_at < now - RESPONSE_LIFETIME) | (
        IdempotentRequest.status.is_(None) & (IdempotentRequest.claimed_at < now - _CLAIM_TIMEOUT)
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
    return _get_stored_response(keyed_request, session, keyring) if claimed is None else None


def _get_stored_response(
    keyed_request: KeyedRequest, session: Session, keyring: Keyring
) -> StoredResponse:
    found = session.execute(
        select(
            IdempotentRequest.request_digest,
            IdempotentRequest.status,
            IdempotentRequest.response_ciphertext,
        ).where(IdempotentRequest.digest == keyed_request.digest)
    ).one_or_none()
    if found is None or found.status is None:
        raise ConflictError("A request with this Idempotency-Key is still in progress.")
    if not keyring.matches_any_digest(keyed_request.content, [found.request_digest]):
        message = "This Idempotency-Key was used for another request. Use a new key."
        raise ReusedKeyError(message, field="Idempotency-Key")
    try:
        return StoredResponse(
            status=found.status, body=keyring.decrypt(found.response_ciphertext or "")
        )
    except UndecryptableError as error:
        # The secret key was removed after the response was stored.
        message = "This request was completed, but its response can no longer be decrypted."
        raise ConflictError(message) from error


def store_response(
    keyed_request: KeyedRequest, response: StoredResponse, *, session: Session, keyring: Keyring
) -> None:
    """Store the response to a claimed request.

    The caller commits the response with the changes.
    """
    session.execute(
        update(IdempotentRequest)
        .where(IdempotentRequest.digest == keyed_request.digest)
        .values(status=response.status, response_ciphertext=keyring.encrypt(response.body))
    )


def release_request(keyed_request: KeyedRequest, *, session: Session) -> None:
    """Release a failed request, so that it can be repeated.

    The caller commits.
    """
    session.execute(
        delete(IdempotentRequest).where(IdempotentRequest.digest == keyed_request.digest)
    )
