"""DPoP proofs that a client has a key (RFC 9449): valid and invalid ones."""

import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Any

import requests
from joserfc.jwk import ECKey, JWKRegistry, Key
from joserfc.jws import JWSRegistry

from domain.core.randomness import generate_random_hex
from tests.support.accounts.people import ClientCredentials, now
from tests.support.oauth.oauth_wire import VERIFIER, Changes, changed, machine, post_token
from tests.support.service.live import LiveGatebell


class _Absence(Enum):
    LEFT_OUT = "left out"


#: Placeholder for a claim or header that is left out.
ABSENT = _Absence.LEFT_OUT


def ath(access_token: str) -> str:
    """Return the hash of an access token for a proof at a resource."""
    return _base64(sha256(access_token.encode()).digest())


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def encoded(part: Any) -> str:
    """Return an encoded part of a compact JWT; bytes are not serialized."""
    return _base64(part if isinstance(part, bytes) else json.dumps(part).encode())


def _present(part: Any) -> Any:
    """Remove the members that are marked as absent."""
    if not isinstance(part, dict):
        return part
    return {name: value for name, value in part.items() if value is not ABSENT}


@dataclass(frozen=True)
class Prover:
    """A client's key and its signature algorithm."""

    key: Key = field(default_factory=lambda: ECKey.generate_key("P-256"))
    algorithm: str = "ES256"

    @classmethod
    def with_algorithm(cls, algorithm: str) -> "Prover":
        """Return a prover with a new key that fits an algorithm."""
        kinds: dict[str, tuple[str, str | int]] = {
            "ES256": ("EC", "P-256"),
            "ES384": ("EC", "P-384"),
            "ES512": ("EC", "P-521"),
            "Ed25519": ("OKP", "Ed25519"),
        }
        kind, size = kinds.get(algorithm, ("RSA", 2048))
        return cls(JWKRegistry.generate_key(kind, size), algorithm)

    @property
    def thumbprint(self) -> str:
        """Thumbprint that tokens are bound to."""
        return self.key.thumbprint()

    def proof(
        self, method: str, url: str, *, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """Return a valid proof with changes."""
        payload: dict[str, Any] = {
            "jti": generate_random_hex(16),
            "htm": method,
            "htu": url,
            "iat": int(now().timestamp()),
            **claims,
        }
        return self.signed(payload, header or {})

    def signed(self, payload: Any, header: dict[str, Any]) -> str:
        """Return a signed proof with any content; bytes are not serialized."""
        members = {"typ": "dpop+jwt", "alg": self.algorithm, "jwk": self.key.as_dict(), **header}
        text = f"{encoded(_present(members))}.{encoded(_present(payload))}"
        model = JWSRegistry.algorithms[self.algorithm]
        return f"{text}.{_base64(model.sign(text.encode(), self.key))}"

    def for_token(self, gatebell: LiveGatebell, **changes: Any) -> dict[str, str]:
        """Return the header of a token request."""
        return {"DPoP": self.proof("POST", f"{gatebell.url}/oauth/token", **changes)}

    def showing(
        self, token: str, url: str, *, method: str = "GET", scheme: str = "DPoP", **changes: Any
    ) -> dict[str, str]:
        """Return the headers that present a bound token at a resource."""
        claims = {"ath": ath(token), **changes}
        return {"Authorization": f"{scheme} {token}", "DPoP": self.proof(method, url, **claims)}


def redeem_with_key(
    gatebell: LiveGatebell, client: ClientCredentials, code: str, prover: Prover, **changes: Changes
) -> requests.Response:
    """Exchange the code of a public client, with a proof."""
    form = {
        "grant_type": "authorization_code",
        "client_id": client.client_id,
        "code": code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": VERIFIER,
    }
    return post_token(gatebell, changed(form, changes), headers=prover.for_token(gatebell))


def refresh_with_key(
    gatebell: LiveGatebell, client: ClientCredentials, token: str, prover: Prover | None
) -> requests.Response:
    """Request a new pair with a proof, and with the secret if the client has one."""
    form = {"grant_type": "refresh_token", "client_id": client.client_id, "refresh_token": token}
    headers = prover.for_token(gatebell) if prover else {}
    return post_token(gatebell, form, headers=headers)


def show_at(gatebell: LiveGatebell, path: str, headers: dict[str, str]) -> requests.Response:
    """Call a resource."""
    return machine(gatebell).get(f"{gatebell.url}{path}", headers=headers)
