"""Requests to the push services of browsers (RFC 8030).

The content is encrypted for the browser (RFC 8291), so the push service cannot read it. A signed
token identifies this instance (RFC 8292).

All hosts share the key pair of the token. Each browser's subscription is bound to the public key,
so the key is never rotated. A new key is created only if no known SECRET_KEY can decrypt the stored
key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from http import HTTPStatus

import http_ece
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.core.database.locks import AdvisoryLock
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.mail.html_part import split_signature
from domain.delivery.outgoing.errors import describe_status_problem
from domain.paging.notifications.contact_types.base import SendProblem
from domain.paging.notifications.message_content import (
    DeviceNotification,
    MessageContent,
    truncate_text,
)
from domain.paging.notifications.push_subscriptions import PushSubscription, encode_base64url
from models import PushKey

#: Time in seconds for which the push service keeps a message for an offline device.
TTL_SECONDS = 86_400
#: Lifetime of a token, which must be at most 24 hours (RFC 8292 section 2).
_TOKEN_LIFETIME = timedelta(hours=12)
#: Size of a payload that every push service accepts after encryption (RFC 8291 section 4).
_MAX_PAYLOAD_BYTES = 3993
_MIN_TEXT_LENGTH = 20
SUBSCRIPTION_ENDED = SendProblem(
    "the browser has ended its subscription", is_final=True, has_ended=True
)


@dataclass(frozen=True, kw_only=True)
class PushRequest:
    """The headers and the encrypted body of a request to a push service."""

    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def build_push_request(
    subscription: PushSubscription,
    payload: bytes,
    *,
    topic: str,
    key: ECKey,
    contact_url: str,
    now: datetime,
) -> PushRequest:
    """Build the request that sends a payload to a browser.

    A message replaces a stored message with the same topic. Operators of push services can use
    `contact_url` to contact the operator of this instance.
    """
    claims = {
        "aud": f"https://{subscription.url.authority}",
        "exp": int((now + _TOKEN_LIFETIME).timestamp()),
        "sub": contact_url,
    }
    token = jwt.encode({"alg": "ES256", "typ": "JWT"}, claims, key)
    body: bytes = http_ece.encrypt(
        payload,
        private_key=generate_private_key(SECP256R1()),
        dh=subscription.p256dh,
        auth_secret=subscription.auth,
        version="aes128gcm",
    )
    headers = {
        "Authorization": f"vapid t={token}, k={encode_public_key(key)}",
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(TTL_SECONDS),
        "Topic": topic,
        "Urgency": "high",
    }
    return PushRequest(headers=headers, body=body)


def serialize_notification(content: MessageContent, attempt_id: int) -> tuple[str, bytes]:
    """Return the topic and the payload of a message, as `static/js/service_worker.js` expects it.

    The title and the body are truncated to the maximum size of a payload.
    """
    found = content.notification or DeviceNotification(
        title=content.subject, body=split_signature(content.text)[0].rstrip()
    )
    tag = found.tag or f"message-{attempt_id}"
    title, body = found.title, found.body
    while True:
        payload = json.dumps(
            {
                "title": title,
                "body": body,
                "url": found.url,
                "acknowledge": found.acknowledge_url,
                "subject": found.acknowledge_subject,
                "tag": tag,
                "ended": found.ended_tags,
                "alarm": content.is_alarm,
            },
            ensure_ascii=False,
        ).encode()
        is_shortest = max(len(title), len(body)) <= _MIN_TEXT_LENGTH
        if len(payload) <= _MAX_PAYLOAD_BYTES or is_shortest:
            return tag, payload
        if len(body) > _MIN_TEXT_LENGTH:
            body = truncate_text(body, len(body) * 3 // 4)
        else:
            title = truncate_text(title, len(title) * 3 // 4)


def find_push_problem(status: int, retry_after: int | None) -> SendProblem | None:
    """Return the problem that a push service's status indicates, or None on success."""
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:  # RFC 8030 section 7.3
        return SUBSCRIPTION_ENDED
    problem = describe_status_problem(status)
    if problem is None:
        return None
    return SendProblem(
        problem.replace("the server", "the push service", 1), retry_after=retry_after
    )


def get_or_create_push_key(*, session: Session, keyring: Keyring, now: datetime) -> ECKey:
    """Return the key pair that identifies this instance to push services.

    The first call creates the key pair, so the transaction must allow writes.
    """
    found = _find_push_key(session, keyring)
    if found is not None:
        return found
    AdvisoryLock.PUSH_KEYS.acquire(session)
    # Another process may have created the key before this process acquired the lock.
    found = _find_push_key(session, keyring)
    if found is not None:
        return found
    key = ECKey.generate_key("P-256")
    ciphertext = keyring.encrypt(json.dumps(key.as_dict(private=True)))
    session.add(PushKey(private_ciphertext=ciphertext, created_at=now))
    session.flush()  # Make the key visible in the same transaction.
    return key


def encode_public_key(key: ECKey) -> str:
    """Return the public key as browsers expect it: an uncompressed point in base64url."""
    public = key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return encode_base64url(public)


def _find_push_key(session: Session, keyring: Keyring) -> ECKey | None:
    """Return the newest key that this keyring can decrypt."""
    for ciphertext in session.scalars(
        select(PushKey.private_ciphertext).order_by(PushKey.id.desc())
    ):
        try:
            return _decrypt_key(ciphertext, keyring)
        except UndecryptableError:
            continue
    return None


@lru_cache(maxsize=8)
def _decrypt_key(ciphertext: str, keyring: Keyring) -> ECKey:
    return ECKey.import_key(json.loads(keyring.decrypt(ciphertext)))
