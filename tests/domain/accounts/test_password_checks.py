"""Passwords match on every keyboard, and checks take the same time for all accounts."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from unicodedata import normalize

import argon2
import pytest
from argon2 import PasswordHasher
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.attempt_counters import AttemptLimit
from domain.accounts.passwords import HashCost, check_password, hash_password
from domain.accounts.users import NewUser, SignInAttempt, authenticate_user, create_user
from domain.core.keyring import Keyring
from domain.projects.bots import create_bot
from domain.projects.namespace_changes import create_group
from models import User
from tests.support.accounts.namespaces import get_namespace
from tests.support.sign_in.password_rules import QUICK, RULES

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
KEYRING = Keyring("a key that only tests have")
LIMIT = AttemptLimit(subject="any", attempts=1_000, window=timedelta(hours=1))
PHRASE = "Mäuse mögen Käse ½"


@pytest.fixture
def session(in_memory: Session) -> Session:
    return in_memory


@pytest.mark.parametrize(
    "typed",
    [
        normalize("NFC", PHRASE),
        normalize("NFD", PHRASE),
        normalize("NFKC", PHRASE),
        PHRASE.replace(" ", "\N{NO-BREAK SPACE}"),
        PHRASE.replace(" ", "\N{IDEOGRAPHIC SPACE}"),
        PHRASE.replace("e", "\N{FULLWIDTH LATIN SMALL LETTER E}"),
    ],
)
def test_a_password_is_the_same_on_every_keyboard(typed: str) -> None:
    assert check_password(typed, hash_password(PHRASE, QUICK), QUICK).is_right
    seen = check_password(PHRASE, hash_password(typed, QUICK), QUICK)
    assert (seen.is_right, seen.is_hash_outdated) == (True, False)


@pytest.mark.parametrize("typed", [PHRASE.lower(), PHRASE.replace("ä", "a"), PHRASE + " "])
def test_a_different_password_does_not_match(typed: str) -> None:
    assert not check_password(typed, hash_password(PHRASE, QUICK), QUICK).is_right


@pytest.mark.parametrize("typed", ["nul\x00", "half \ud800", "new 🫩 signs", "\u202e\u200d"])
def test_any_character_can_be_hashed(typed: str) -> None:
    assert check_password(typed, hash_password(typed, QUICK), QUICK).is_right


def old_hash(password: str) -> str:
    """Hash a password as earlier releases did, without normalization."""
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=4).hash(password)


@pytest.fixture
def try_to_sign_in(session: Session) -> Callable[[str, str], bool]:
    def send(login: str, password: str) -> bool:
        attempt = SignInAttempt(
            login=login,
            password=password,
            account_limit=LIMIT,
            address_limit=LIMIT,
            cost=QUICK,
        )
        return authenticate_user(attempt, session=session, keyring=KEYRING, now=NOON) is not None

    return send


def person(name: str, password: str, session: Session) -> User:
    new = NewUser(username=name, email=f"{name}@example.org", name="", password=password)
    return session.get_one(User, create_user(new, session=session, now=NOON, rules=RULES).id)


@pytest.mark.long
def test_a_hash_of_an_earlier_release_is_accepted_and_replaced(
    session: Session, try_to_sign_in: Callable[[str, str], bool]
) -> None:
    decomposed = normalize("NFD", PHRASE)
    user = person("alice", PHRASE, session)
    kept = user.password_hash = old_hash(decomposed)
    # Until then, it only matches if it is typed on the same kind of keyboard.
    assert not try_to_sign_in("alice", "wrong one")
    assert user.password_hash == kept
    assert try_to_sign_in("alice", decomposed)
    assert user.password_hash != kept
    assert try_to_sign_in("alice", PHRASE)
    assert try_to_sign_in("alice", decomposed)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[argon2.Parameters]:
    """Cost of each computed hash."""
    costs: list[argon2.Parameters] = []
    verify, make = PasswordHasher.verify, PasswordHasher.hash

    def verifying(hasher: PasswordHasher, kept: str, password: bytes) -> bool:
        costs.append(argon2.extract_parameters(kept))
        return verify(hasher, kept, password)

    def making(hasher: PasswordHasher, password: bytes) -> str:
        kept = make(hasher, password)
        costs.append(argon2.extract_parameters(kept))
        return kept

    monkeypatch.setattr(PasswordHasher, "verify", verifying)
    monkeypatch.setattr(PasswordHasher, "hash", making)
    return costs


@pytest.mark.long
@pytest.mark.parametrize(
    ("password", "cost"),
    [
        ("wrong", QUICK),
        ("wröng", QUICK),
        (normalize("NFD", "wröng"), QUICK),
        ("wrong", HashCost(memory_kib=20_000, passes=2)),
    ],
)
def test_a_wrong_password_has_the_same_cost_for_all_accounts(
    session: Session, looked_at: list[argon2.Parameters], password: str, cost: HashCost
) -> None:
    create_group("acme", reserved=frozenset(), session=session, now=NOON)
    namespace = get_namespace("acme", session=session)
    bot = create_bot(namespace, "robot", Role.DEVELOPER, session=session, now=NOON)
    alice = person("alice", PHRASE, session)
    alice.password_hash = hash_password(PHRASE, cost)
    locked = person("carol", PHRASE, session)
    locked.password_hash, locked.state = alice.password_hash, "locked"
    session.flush()
    computed = []
    # The unknown user comes first: the hash for unknown users must not be computed once, either.
    for login in (
        "nobody-here",
        "alice",
        "carol",
        bot.username,
        "alice@example.org",
        "x@y.example",
    ):
        looked_at.clear()
        attempt = SignInAttempt(
            login=login, password=password, account_limit=LIMIT, address_limit=LIMIT, cost=cost
        )
        assert authenticate_user(attempt, session=session, keyring=KEYRING, now=NOON) is None
        computed.append(tuple(looked_at))
    assert all(each == computed[0] for each in computed)
    assert len(computed[0]) == (2 if password == normalize("NFD", "wröng") else 1)
    assert (computed[0][0].memory_cost, computed[0][0].time_cost) == (cost.memory_kib, cost.passes)
