"""A push service on loopback, and browsers that subscribe to it, written from the RFCs.

Messages are decrypted as RFC 8188 and RFC 8291 specify, and tokens are verified as RFC 8292
specifies, without the libraries that the product uses.
"""

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.service.certificates import make_certificate
from tests.support.service.message_receiver import Received, Receiver, running_receiver

_CURVE = ec.SECP256R1()
_SALT_BYTES, _TAG_BYTES = 16, 16


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True)
class Token:
    """A verified token of an application server (RFC 8292)."""

    claims: dict[str, Any]
    public_key: str


@dataclass(frozen=True)
class Push:
    """A message that arrived at a browser."""

    payload: dict[str, Any]
    headers: dict[str, str]
    token: Token
    size: int


@dataclass
class Device:
    """A browser with a subscription."""

    service: "PushService"
    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(_CURVE))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def path(self) -> str:
        return f"/push/{self.name}"

    @property
    def public_bytes(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def subscription(self) -> str:
        """JSON in the format of the Push API."""
        keys = {"p256dh": encode(self.public_bytes), "auth": encode(self.auth)}
        endpoint = f"https://127.0.0.1:{self.service.receiver.port}{self.path}"
        return json.dumps({"endpoint": endpoint, "expirationTime": None, "keys": keys})

    @property
    def pushes(self) -> list[Push]:
        """Messages that the push service accepted for this browser, decrypted."""
        received = [each for each in self.service.receiver.received if each.path == self.path]
        return [self._open(each) for each in received]

    def _open(self, request: Received) -> Push:
        assert request.headers["content-encoding"] == "aes128gcm"
        return Push(
            payload=json.loads(self._decrypt(request.body)),
            headers=dict(request.headers),
            token=self._verify(request.headers["authorization"]),
            size=len(request.body),
        )

    def _decrypt(self, body: bytes) -> bytes:
        """Decrypt a body (RFC 8188 section 2) with the keys of RFC 8291 section 3.4."""
        salt, rest = body[:_SALT_BYTES], body[_SALT_BYTES:]
        size, length = int.from_bytes(rest[:4], "big"), rest[4]
        sender, record = rest[5 : 5 + length], rest[5 + length :]
        assert len(record) <= size, "a push message has one record (RFC 8291 section 4)"
        shared = self.key.exchange(
            ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, sender)
        )
        info = b"WebPush: info\x00" + self.public_bytes + sender
        secret = _derive(self.auth, shared, info, 32)
        content_key = _derive(salt, secret, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _derive(salt, secret, b"Content-Encoding: nonce\x00", 12)
        padded = AESGCM(content_key).decrypt(nonce, record, None)
        content = padded.rstrip(b"\x00")
        assert content[-1:] == b"\x02", "the delimiter of the last record"
        return content[:-1]

    def _verify(self, authorization: str) -> Token:
        """Verify a token (RFC 8292 sections 2 and 3)."""
        scheme, _, parameters = authorization.partition(" ")
        assert scheme == "vapid"
        values = dict(each.strip().split("=", 1) for each in parameters.split(","))
        signed, _, signature = values["t"].rpartition(".")
        raw = decode(signature)
        public = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, decode(values["k"]))
        numbers = (int.from_bytes(part, "big") for part in (raw[:32], raw[32:]))
        public.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(SHA256()))
        header, claims = (json.loads(decode(part)) for part in signed.split("."))
        assert header["alg"] == "ES256"
        assert claims["aud"] == f"https://127.0.0.1:{self.service.receiver.port}"
        return Token(claims, values["k"])


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


@dataclass
class PushService:
    """A push service with the certificate that its clients must trust."""

    receiver: Receiver
    certificate: Path

    def device(self, name: str) -> Device:
        """Subscribe a browser."""
        return Device(self, name)


@contextmanager
def running_push_service(directory: Path) -> Iterator[PushService]:
    """Run a push service that accepts messages with 201 (RFC 8030 section 5)."""
    certificate = make_certificate(directory)
    receiver = Receiver(answer=lambda _request: (201, {}))
    with running_receiver(receiver, certificate=certificate):
        yield PushService(receiver, certificate)


def expires_within_a_day(token: Token, now: datetime) -> bool:
    seconds = (datetime.fromtimestamp(token.claims["exp"], tz=UTC) - now).total_seconds()
    return 0 < seconds <= 86_400
