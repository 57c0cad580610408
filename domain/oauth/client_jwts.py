"""JWTs signed with a client's own key: DPoP proofs and client assertions.

Each JWT is accepted only once. Both kinds use the same algorithms and size limits.
"""

from datetime import datetime

from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry
from sqlalchemy import Executable

from domain.core.database.bulk_statements import build_insert
from domain.core.keyring import Keyring
from models import SeenProof

#: Asymmetric signature algorithms (RFC 9449 section 5.1). RFC 9864 replaced EdDSA with Ed25519.
CLIENT_JWT_ALGORITHMS = (
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "PS256",
    "PS384",
    "PS512",
    "RS256",
    "RS384",
    "RS512",
)
MAX_JTI_LENGTH = 512
#: Errors that joserfc and cryptography raise for malformed JWTs.
UNREADABLE_JWT_ERRORS = (
    JoseError,
    ValueError,
    TypeError,
    KeyError,
    RecursionError,
    UnsupportedAlgorithm,
)


class _JwsRegistry(JWSRegistry):
    """JWS size limits that allow 8192-bit RSA keys, which exceed joserfc's default limits."""

    max_header_length = 2304
    max_payload_length = 4096
    max_signature_length = 1408


JWS_REGISTRY = _JwsRegistry(algorithms=CLIENT_JWT_ALGORITHMS, strict_check_header=False)


def build_jwt_use_statement(
    text: str, until: datetime, dialect: str, *, keyring: Keyring
) -> Executable:
    """Return the statement that records a JWT as used.

    The statement returns a row only if the JWT is new. `text` identifies the JWT. The row is
    deleted after `until`, when the JWT has expired and is rejected in any case.
    """
    row = {"digest": keyring.compute_digest(text), "expires_at": until}
    insert = build_insert(dialect, SeenProof).values(row)
    return insert.on_conflict_do_nothing().returning(SeenProof.digest)
