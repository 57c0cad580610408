"""Password hashing (Argon2id, configurable cost), strength checks, and the first password."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from unicodedata import category, normalize

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION

from domain.core import thread_pools
from models.case_folding import fold_text

#: Maximum length of a password in characters, which limits the cost of hashing.
MAX_PASSWORD_LENGTH = 1000

#: Minimum zxcvbn score (0 to 4): at least a million guesses.
_MIN_SCORE = 2
#: Maximum number of characters that zxcvbn evaluates, because its cost grows much faster than the
#: length.
_MAX_SCORED_CHARACTERS = 24
#: Number of Argon2 lanes, each of which runs in a thread. RFC 9106 recommends four lanes.
_ARGON2_LANES = thread_pools.HASHING_LANES
#: Lock for zxcvbn, which stores the user's words in a global variable.
_zxcvbn_lock = Lock()
FIRST_ADMINISTRATOR_USERNAME = "admin"
_FIRST_ADMINISTRATOR_FILE_NAME = "first_administrator.txt"


@dataclass(frozen=True, kw_only=True)
class HashCost:
    """Cost parameters of Argon2id.

    The defaults are the second recommended option in RFC 9106.
    """

    memory_kib: int = 65_536
    passes: int = 3


@dataclass(frozen=True, kw_only=True)
class PasswordRules:
    """The password policy of the instance."""

    #: Minimum length of a password in characters.
    minimum: int
    cost: HashCost


def hash_password(password: str, cost: HashCost) -> str:
    """Return the Argon2id hash of a password in PHC string format."""
    return thread_pools.hashing_pool.run_task(
        _get_hasher(cost).hash, _encode_password(normalize_password(password))
    )


def normalize_password(password: str) -> str:
    """Normalize a password, so that it is the same on every keyboard.

    All space characters are mapped to U+0020 as in OpaqueString (RFC 8265 section 4.2.2). NFKC is
    applied as NIST recommends (SP 800-63B section 3.1.1.2). Unassigned characters are allowed.
    """
    plain = "".join(" " if category(each) == "Zs" else each for each in password)
    return normalize("NFKC", plain)


@dataclass(frozen=True, kw_only=True)
class PasswordCheckResult:
    """The outcome of a password check, and whether the hash is outdated."""

    is_right: bool
    #: True if the hash has outdated parameters, or was created without normalization.
    is_hash_outdated: bool


_WRONG_PASSWORD_RESULT = PasswordCheckResult(is_right=False, is_hash_outdated=False)


def check_password(password: str, password_hash: str | None, cost: HashCost) -> PasswordCheckResult:
    """Check a password against a hash.

    Without a hash (unknown user, or an account without a password), the check takes as long as with
    a hash. The response time therefore does not reveal which names exist. If normalization changes
    the password, both forms are checked, because earlier versions did not normalize passwords.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        return _WRONG_PASSWORD_RESULT
    is_real = password_hash is not None and _is_argon2(password_hash)
    known = password_hash if password_hash is not None and is_real else _build_dummy_hash(cost)
    for form in dict.fromkeys((normalize_password(password), password)):
        try:
            thread_pools.hashing_pool.run_task(
                _get_hasher(cost).verify, known, _encode_password(form)
            )
        except VerificationError:
            continue
        is_prepared = form == normalize_password(password)
        is_outdated = not is_prepared or _get_hasher(cost).check_needs_rehash(known)
        return PasswordCheckResult(is_right=is_real, is_hash_outdated=is_outdated)
    return _WRONG_PASSWORD_RESULT


def _encode_password(text: str) -> bytes:
    # JSON can contain unpaired surrogates, which are allowed.
    return text.encode("utf-8", "surrogatepass")


def _is_argon2(password_hash: str) -> bool:
    try:
        extract_parameters(password_hash)
    except InvalidHashError:
        return False
    return True


@cache
def _get_hasher(cost: HashCost) -> PasswordHasher:
    return PasswordHasher(
        time_cost=cost.passes, memory_cost=cost.memory_kib, parallelism=_ARGON2_LANES
    )


def _build_dummy_hash(cost: HashCost) -> str:
    """Return a hash that no password matches, created without hashing."""
    hasher = _get_hasher(cost)
    salt, tag = (
        b64encode(bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    parameters = f"m={cost.memory_kib},t={cost.passes},p={_ARGON2_LANES}"
    return f"$argon2id$v={ARGON2_VERSION}${parameters}${salt}${tag}"


def check_password_strength(password: str, *, username: str, minimum: int, email: str = "") -> None:
    """Check that a password is strong enough (NIST SP 800-63B section 3.1.1).

    Raise ValueError with an explanation if the password is too weak.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        raise ValueError(f"A password can have at most {MAX_PASSWORD_LENGTH} characters.")
    password = normalize_password(password)
    if len(password) < minimum:
        raise ValueError(f"A password must have at least {minimum} characters.")
    if username and fold_text(username) in fold_text(password):
        raise ValueError("A password must not contain the username.")
    if len(set(password)) < 4:  # noqa: PLR2004 - aaaaaaaaaaaa is no password
        raise ValueError("A password must have more than three different characters.")
    _check_guessability(password, (username, email, *email.replace("@", ".").split(".")))


def _check_guessability(password: str, own_words: tuple[str, ...]) -> None:
    """Check that zxcvbn does not consider a password easy to guess.

    Raise ValueError with advice if the password is easy to guess.
    """
    from zxcvbn import zxcvbn  # noqa: PLC0415 - long lists of words, which only this needs

    with _zxcvbn_lock:
        words = [word for word in own_words if word]
        found = thread_pools.parsing_pool.run_task(
            zxcvbn, password[:_MAX_SCORED_CHARACTERS], user_inputs=words
        )
    if found["score"] < _MIN_SCORE:
        advice = (found["feedback"]["warning"], *found["feedback"]["suggestions"])
        said = " ".join(sentence for sentence in advice if sentence)
        raise ValueError(f"This password is easy to guess. {said}".strip())


def get_initial_password_path(instance_path: Path) -> Path:
    """Return the path of the file with the first administrator's password."""
    return instance_path / _FIRST_ADMINISTRATOR_FILE_NAME


def has_initial_password(username: str, instance_path: Path) -> bool:
    """Return whether the user is the first administrator and still has the generated password."""
    return (
        username == FIRST_ADMINISTRATOR_USERNAME
        and get_initial_password_path(instance_path).exists()
    )


def delete_initial_password_file(username: str, instance_path: Path) -> None:
    """Delete the password file if the user is the first administrator."""
    if username == FIRST_ADMINISTRATOR_USERNAME:
        get_initial_password_path(instance_path).unlink(missing_ok=True)
