"""JWTs that clients sign with keys of their own: DPoP proofs and client assertions.

Each is accepted once. Algorithms and sizes are the same for both.
"""

from datetime import datetime

from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry
from sqlalchemy import Executable

from domain.core.database.rows import insert_for
from domain.core.keyring import Keyring
from models import SeenProof

#: Section 5.1 of RFC 9449: asymmetric ones only. RFC 9864 has replaced EdDSA by Ed25519.
ALGORITHMS = (
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
LONGEST_JTI = 512
#: The errors of joserfc and cryptography for malformed JWTs.
UNREADABLE = (JoseError, ValueError, TypeError, KeyError, RecursionError, UnsupportedAlgorithm)


class _Registry(JWSRegistry):
    """The size limits: RSA keys of 8192 bits exceed joserfc's."""

    max_header_length = 2304
    max_payload_length = 4096
    max_signature_length = 1408


REGISTRY = _Registry(algorithms=ALGORITHMS, strict_check_header=False)


def storing_use(text: str, until: datetime, dialect: str, *, keyring: Keyring) -> Executable:
    """Return the statement that stores a JWT as used; it returns a row for a new one only.

    `text` says which it is. It is pruned after `until`, when it is refused in any case.
    """
    row = {"digest": keyring.digest(text), "expires_at": until}
    insert = insert_for(dialect, SeenProof).values(row)
    return insert.on_conflict_do_nothing().returning(SeenProof.digest)
