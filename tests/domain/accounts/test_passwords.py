"""Passwords that are too easy to guess."""

from concurrent.futures import ThreadPoolExecutor
from time import process_time

import pytest

from domain.accounts.passwords import check_password_strength
from domain.core.randomness import generate_random_password


def check(
    password: str, *, username: str = "alice", email: str = "a.liddell@wonder.example"
) -> None:
    check_password_strength(password, username=username, email=email, minimum=12)


@pytest.mark.parametrize(
    "password",
    [
        *("password1234", "Password1234", "p@ssw0rd1234", "qwertyuiop123", "123456789012"),
        *("abcdefghijkl", "letmeinletmein", "trustno1trustno1", "iloveyou1234"),
        *("password" * 20, "asdf" * 30),
    ],
)
def test_common_passwords_are_rejected_with_advice(password: str) -> None:
    with pytest.raises(ValueError, match=r"^This password is easy to guess\. [A-Z].*\.$"):
        check(password)


@pytest.mark.parametrize(
    "password",
    [
        *("correct horse battery staple", "rain on tin roofs", "Mäuse mögen Käse nachts"),
        *("корабль плывёт на север", "🔔🎈🌻🚲🔔🎈🌻🚲🥁🎺🪕🎻", "a" * 11 + "kQ7$zL0p"),
    ],
)
def test_a_passphrase_is_accepted(password: str) -> None:
    check(password)


def test_a_generated_password_is_accepted() -> None:
    for _ in range(10):
        check(generate_random_password())


@pytest.mark.parametrize(
    ("password", "email"),
    [("liddellwonder", "a.liddell@wonder.example"), ("wonderwonderland", "x@wonderland.example")],
)
def test_parts_of_the_email_address_are_rejected(password: str, email: str) -> None:
    with pytest.raises(ValueError, match="easy to guess"):
        check(password, email=email)


def test_concurrent_checks_do_not_share_words() -> None:
    def is_refused(email: str) -> bool:
        try:
            check("liddellwonder", username="x-y-z", email=email)
        except ValueError:
            return True
        return False

    emails = ["a.liddell@wonder.example", "nobody@nowhere.example"] * 15
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(is_refused, emails)) == [True, False] * 15


@pytest.mark.long
def test_the_check_is_fast_for_any_password() -> None:
    worst = "4@a8b({[<c6g9369e1!|il7l0o$5s+7t%x2z" * 27
    check(worst[:30])  # This loads the word lists.
    began = process_time()
    check(worst[:1000])
    assert process_time() - began < 1
