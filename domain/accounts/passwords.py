"""Passwords: Argon2id, at a cost that the operator chooses."""

from dataclasses import dataclass
from functools import cache
from threading import Lock

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

#: Longer texts would let a stranger make us hash megabytes.
LONGEST_PASSWORD = 1000

#: Of 0 to 4: guessing it would take a million tries or more.
_LEAST_SCORE = 2
#: So much of a password is judged: the work grows much faster than the length.
_JUDGED_CHARACTERS = 24
#: Lanes are filled by threads of their own; RFC 9106 recommends four.
_LANES = 4
#: zxcvbn keeps the words of the present user in a global.
_judging = Lock()


@dataclass(frozen=True, kw_only=True)
class HashCost:
    """What one guess costs; the defaults are the second choice of RFC 9106, section 4."""

    memory_kib: int = 65_536
    passes: int = 3


@dataclass(frozen=True, kw_only=True)
class PasswordRules:
    """What the instance asks of a password, and how it keeps it."""

    #: In characters.
    minimum: int
    cost: HashCost


def hash_password(password: str, cost: HashCost) -> str:
    """Return the Argon2id hash in PHC string form."""
    return _hasher(cost).hash(password)


def is_password(password: str, password_hash: str | None, cost: HashCost) -> bool:
    """Tell whether this is the password.

    Without a hash (nobody by that name) it takes as long and is never right, so that the time
    of the answer does not tell which names exist.
    """
    if len(password) > LONGEST_PASSWORD:
        return False
    try:
        _hasher(cost).verify(password_hash or _hash_of_nobody(cost), password)
    except (VerificationError, InvalidHashError):
        return False
    return password_hash is not None


def is_hash_outdated(password_hash: str, cost: HashCost) -> bool:
    """Tell whether a hash was made at another cost than a new one would be."""
    return _hasher(cost).check_needs_rehash(password_hash)


@cache
def _hasher(cost: HashCost) -> PasswordHasher:
    return PasswordHasher(time_cost=cost.passes, memory_cost=cost.memory_kib, parallelism=_LANES)


@cache
def _hash_of_nobody(cost: HashCost) -> str:
    return hash_password("a password that nobody has", cost)


def check_password_strength(password: str, *, username: str, minimum: int, email: str = "") -> None:
    """Raise ValueError, with a sentence, if a password is too easy (NIST SP 800-63B, 3.1.1)."""
    if len(password) < minimum:
        message = f"A password needs at least {minimum} characters."
        raise ValueError(message)
    if len(password) > LONGEST_PASSWORD:
        message = f"A password may have at most {LONGEST_PASSWORD} characters."
        raise ValueError(message)
    if username and username.lower() in password.lower():
        message = "A password may not contain the user name."
        raise ValueError(message)
    if len(set(password)) < 4:  # noqa: PLR2004 - aaaaaaaaaaaa is no password
        message = "A password needs more than three different characters."
        raise ValueError(message)
    _check_guesses(password, (username, email, *email.replace("@", ".").split(".")))


def _check_guesses(password: str, own_words: tuple[str, ...]) -> None:
    """Raise ValueError, with what would help, if few guesses lead to a password."""
    from zxcvbn import zxcvbn  # noqa: PLC0415 - long lists of words, which only this needs

    with _judging:
        found = zxcvbn(password[:_JUDGED_CHARACTERS], user_inputs=[w for w in own_words if w])
    if found["score"] < _LEAST_SCORE:
        advice = (found["feedback"]["warning"], *found["feedback"]["suggestions"])
        said = " ".join(sentence for sentence in advice if sentence)
        message = f"This password is easy to guess. {said}".strip()
        raise ValueError(message)
