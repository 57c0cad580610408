"""Tokens that Docker's registry accepts ("Token Authentication Implementation")."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from joserfc import jwt

from domain.clock import written
from domain.randomness import random_hex
from domain.registry.signing_keys import ALGORITHM, TokenSigner

#: The `service` of the registry's configuration, and the audience of its tokens.
SERVICE = "container_registry"


@dataclass(frozen=True, kw_only=True)
class TokenPolicy:
    """What all tokens for the registry have in common."""

    #: BASE_URL, which the registry's configuration names.
    issuer: str
    lifetime: timedelta


@dataclass(frozen=True, kw_only=True)
class RegistryToken:
    """A token with its lifetime in seconds."""

    clear: str = field(repr=False)
    expires_in: int
    issued_at: datetime

    def as_json(self) -> dict[str, str | int]:
        """Return the object of the token specification; it has two names for the token."""
        return {
            "token": self.clear,
            "access_token": self.clear,
            "expires_in": self.expires_in,
            # RFC 3339, as clients of the registry read it.
            "issued_at": written(self.issued_at),
        }


def sign_token(
    access: Iterable[Mapping[str, object]],
    *,
    subject: str,
    signer: TokenSigner,
    policy: TokenPolicy,
    now: datetime,
) -> RegistryToken:
    """Return a token with the claim `access`; `subject` is a user name, empty for anonymous."""
    lifetime = int(policy.lifetime.total_seconds())
    issued = int(now.timestamp())
    claims: dict[str, object] = {
        "iss": policy.issuer,
        "sub": subject,
        "aud": SERVICE,
        "exp": issued + lifetime,
        "nbf": issued - 5,
        "iat": issued,
        "jti": random_hex(16),
        "access": [dict(each) for each in access],
    }
    header = {"typ": "JWT", "alg": ALGORITHM, "kid": signer.kid, "x5c": list(signer.x5c)}
    return RegistryToken(
        clear=jwt.encode(header, claims, signer.key), expires_in=lifetime, issued_at=now
    )
