"""A software authenticator: it keeps passkeys and signs challenges of Web Authentication."""

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from domain.core.randomness import generate_random_hex

_PRESENT, _VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40


def base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """A security key with one passkey. It counts its uses unless `counts` is false."""

    origin: str
    #: True if the security key verifies the user with a PIN or a fingerprint.
    verifies: bool = True
    counts: bool = True
    uses: int = 0
    credential_id: bytes = field(default_factory=lambda: bytes.fromhex(generate_random_hex(32)))
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def make(
        self, question: dict[str, Any], statement: dict[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return the response of navigator.credentials.create().

        `statement` is a packed attestation statement.
        """
        length = len(self.credential_id).to_bytes(2)
        attested = bytes(16) + length + self.credential_id + cbor2.dumps(self.cose())
        data = self._data(question["rp"]["id"], _HAS_KEY) + attested
        form = "none" if statement is None else "packed"
        attestation = {"fmt": form, "attStmt": statement or {}, "authData": data}
        return self._answer(
            {
                "clientDataJSON": base64url(self._client("webauthn.create", question, changes)),
                "attestationObject": base64url(cbor2.dumps(attestation)),
                "transports": ["usb", "from the future"],
            }
        )

    def cose(self) -> dict[int, Any]:
        """Return the public key in the format of COSE (RFC 9052)."""
        if isinstance(self.key, rsa.RSAPrivateKey):
            numbers = self.key.public_key().public_numbers()
            modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8)
            return {1: 3, 3: -257, -1: modulus, -2: numbers.e.to_bytes(3)}
        public = self.key.public_key().public_numbers()
        return {1: 2, 3: -7, -1: 1, -2: public.x.to_bytes(32), -3: public.y.to_bytes(32)}

    def use(self, question: dict[str, Any], **changes: Any) -> str:
        """Return the response of navigator.credentials.get().

        `changes` are values that a browser would never send.
        """
        self.uses += self.counts
        data = self._data(changes.pop("rp_id", question["rpId"]))
        client = self._client("webauthn.get", question, changes)
        signature = self._signature(data + sha256(client).digest())
        return self._answer(
            {
                "clientDataJSON": base64url(client),
                "authenticatorData": base64url(data),
                "signature": base64url(signature),
            }
        )

    def _signature(self, signed: bytes) -> bytes:
        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(signed, PKCS1v15(), SHA256())
        return self.key.sign(signed, ec.ECDSA(SHA256()))

    def _data(self, rp_id: str, flags: int = 0) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies else 0)
        return sha256(rp_id.encode()).digest() + bytes([flags]) + self.uses.to_bytes(4)

    def _client(self, kind: str, question: dict[str, Any], changes: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": question["challenge"], "origin": self.origin}
        return json.dumps({**said, **changes}).encode()

    def _answer(self, response: dict[str, Any]) -> str:
        number = base64url(self.credential_id)
        whole = {"id": number, "rawId": number, "type": "public-key", "response": response}
        return json.dumps(whole)
