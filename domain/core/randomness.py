"""The source of all random values. No other module imports `secrets`."""

import base64
import secrets
import string
import zlib
from uuid import UUID

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
#: All pairs of base62 digits. Encoding two digits at a time halves the number of divisions.
_DIGIT_PAIRS = tuple(first + second for first in BASE62 for second in BASE62)
#: Number of base62 characters for 32 bytes: 62**43 is slightly more than 2**256.
_RANDOM_LENGTH = 43
_CHECKSUM_LENGTH = 6


def _encode_base62(number: int, length: int) -> str:
    pairs = []
    for _ in range((length + 1) // 2):
        number, pair = divmod(number, 3844)
        pairs.append(_DIGIT_PAIRS[pair])
    return "".join(reversed(pairs))[-length:]


def generate_credential(prefix: str, *, seed: bytes | None = None) -> str:
    """Return a credential, such as `gba-…`: a prefix, 256 bits and a checksum.

    The bits are random unless a seed of 32 bytes is given. The prefix lets secret scanners find the
    credential. The checksum lets the service reject mistyped credentials without a database query.
    """
    bits = int.from_bytes(seed or secrets.token_bytes(32))
    body = prefix + _encode_base62(bits, _RANDOM_LENGTH)
    return body + _encode_base62(zlib.crc32(body.encode()), _CHECKSUM_LENGTH)


def is_well_formed(credential: str, *, prefix: str) -> bool:
    """Return whether a credential has this prefix, the right length and a valid checksum."""
    length = len(prefix) + _RANDOM_LENGTH + _CHECKSUM_LENGTH
    if len(credential) != length or not credential.startswith(prefix):
        return False
    body, checksum = credential[:-_CHECKSUM_LENGTH], credential[-_CHECKSUM_LENGTH:]
    return checksum == _encode_base62(zlib.crc32(body.encode("ascii", "replace")), _CHECKSUM_LENGTH)


#: Function that returns the given number of random bytes as hexadecimal digits.
generate_random_hex = secrets.token_hex


def generate_random_uuid() -> str:
    """Return a random UUID (RFC 9562 section 5.4), which has 122 random bits."""
    return str(UUID(bytes=secrets.token_bytes(16), version=4))


def generate_random_base64(byte_count: int) -> str:
    """Return random bytes in base64 (RFC 4648 section 4)."""
    return base64.b64encode(secrets.token_bytes(byte_count)).decode()


def generate_random_fraction() -> float:
    """Return a random number from 0 to 1."""
    return secrets.randbelow(1_001) / 1_000


def generate_random_letters(alphabet: str, length: int) -> str:
    """Return a string of random letters from an alphabet."""
    number, letters = secrets.randbelow(len(alphabet) ** length), []
    for _ in range(length):
        number, letter = divmod(number, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(letters)


def generate_random_password() -> str:
    """Return a random password that is easy to type: four groups of six characters, 124 bits."""
    letters = string.ascii_lowercase + string.digits
    groups = ("".join(secrets.choice(letters) for _ in range(6)) for _ in range(4))
    return "-".join(groups)
