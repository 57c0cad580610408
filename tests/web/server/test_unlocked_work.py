"""Tests that password hashing and other slow work block no database writes."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import argon2
import psycopg
import pytest
import segno
import zxcvbn
from flask import Flask
from flask.testing import FlaskClient
from joserfc.jwk import RSAKey

from domain.accounts import passwords, users
from tests.support.service.commands import operate
from tests.support.sign_in.second_factors import SECURITY
from web.settings.environment import Settings

#: PostgreSQL lists every open transaction; SQLite shows only one that has written.
pytestmark = pytest.mark.one_database("postgres")

PASSWORD, NEW = "the very first of them", "a new password, much better"
#: Functions that take long, wherever they are called.
SLOW = (
    (argon2.PasswordHasher, "hash"),
    (argon2.PasswordHasher, "verify"),
    (zxcvbn, "zxcvbn"),
    (RSAKey, "generate_key"),
    (segno, "make"),
)


@pytest.fixture
def seen(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Record the slow functions, and whether other users could write during each of them."""
    found: dict[str, bool] = {}

    def watched(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            found[name] = found.get(name, True) and is_free(settings.database_url)
            return work(*args, **kwargs)

        return run

    for module, name in SLOW:
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    return found


def is_free(url: str) -> bool:
    """Return whether no open transaction would block others."""
    if url.startswith("postgresql"):
        with psycopg.connect(url.replace("+psycopg", "", 1)) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            ).fetchone()
            return row == (0,)
    file = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


@pytest.fixture
def visitor(app: Flask) -> FlaskClient:
    """Return a client without CSRF checks; alice and root have accounts."""
    app.config.update(WTF_CSRF_ENABLED=False, WTF_CSRF_METHODS=frozenset())
    for name, more in (("alice", ()), ("root", ("--admin",))):
        arguments = ("users", "create", name, "--email", f"{name}@people.example", *more)
        runner = app.test_cli_runner()
        done = runner.invoke(args=(*arguments, "--password-stdin"), input=f"{PASSWORD}\n")
        assert done.exit_code == 0, done.output
    return app.test_client()


def sign_in(visitor: FlaskClient, name: str, password: str = PASSWORD) -> int:
    form = {"login": name, "password": password}
    return visitor.post("/users/sign_in", data=form).status_code


def exchange(visitor: FlaskClient, password: str) -> int:
    form = {"grant_type": "password", "username": "alice", "password": password}
    return visitor.post("/oauth/token", data=form).status_code


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "password", "status"),
    [("alice", PASSWORD, 302), ("alice", "wrong", 422), ("nobody", "wrong", 422)],
)
def test_a_sign_in_blocks_no_writes(
    visitor: FlaskClient, seen: dict[str, bool], name: str, password: str, status: int
) -> None:
    assert sign_in(visitor, name, password) == status
    assert seen["verify"]
    assert all(seen.values()), seen


@pytest.mark.parametrize(("password", "status"), [(PASSWORD, 200), ("wrong", 400)])
def test_a_password_grant_blocks_no_writes(
    visitor: FlaskClient, seen: dict[str, bool], password: str, status: int
) -> None:
    assert exchange(visitor, password) == status
    assert seen["verify"]
    assert all(seen.values()), seen


@pytest.mark.long
@pytest.mark.both_databases
def test_a_rehash_blocks_no_writes(
    visitor: FlaskClient, seen: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argon2.PasswordHasher, "check_needs_rehash", lambda *_: True)
    assert sign_in(visitor, "alice") == 302
    assert seen == {"verify": True, "hash": True}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_password_change_blocks_no_writes(visitor: FlaskClient, seen: dict[str, bool]) -> None:
    sign_in(visitor, "alice")
    seen.clear()
    form = {"current_password": PASSWORD, "new_password": NEW, "repeat_password": NEW}
    assert visitor.post(SECURITY, data=form).status_code == 302
    assert seen == {"zxcvbn": True, "verify": True, "hash": True}
    assert sign_in(visitor.application.test_client(), "alice", NEW) == 302


@pytest.mark.long
def test_a_password_check_before_a_second_factor_blocks_no_writes(
    visitor: FlaskClient, seen: dict[str, bool]
) -> None:
    sign_in(visitor, "alice")
    seen.clear()
    form = {"current_password": PASSWORD, "code": "000000"}
    assert visitor.post(f"{SECURITY}/authenticator", data=form).status_code == 422
    assert seen == {"verify": True, "make": True}


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/admin/users/new", {"username": "bob", "email": "bob@people.example"}),
        ("/admin/users/1/reset_password", {}),
    ],
)
def test_actions_of_administrators_block_no_writes(
    visitor: FlaskClient, seen: dict[str, bool], path: str, form: dict[str, str]
) -> None:
    sign_in(visitor, "root")
    seen.clear()
    assert visitor.post(path, data=form).status_code == 302
    assert seen["hash"]
    assert all(seen.values()), seen


@pytest.mark.long
def test_a_new_signing_key_blocks_no_writes(app: Flask, seen: dict[str, bool]) -> None:
    operate(app, "keys", "rotate")
    assert seen == {"generate_key": True}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_password_that_changes_during_its_check_is_rejected(
    app: Flask, visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = passwords.check_password

    def change_meanwhile(*args: Any) -> Any:
        found = check(*args)
        # In a separate thread, because the operator is not part of the request.
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(operate, app, "users", "reset-password", "alice").result()
        return found

    monkeypatch.setattr(users, "check_password", change_meanwhile)
    assert sign_in(visitor, "alice") == 422
    assert exchange(visitor, PASSWORD) == 400


@pytest.mark.long
@pytest.mark.both_databases
def test_two_simultaneous_sign_ins_that_rehash_both_succeed(
    visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = passwords.check_password
    entered: list[None] = []
    monkeypatch.setattr(argon2.PasswordHasher, "check_needs_rehash", lambda *_: True)

    def come_in_meanwhile(*args: Any) -> Any:
        found = check(*args)
        if not entered:
            entered.append(None)
            assert sign_in(visitor.application.test_client(), "alice") == 302
        return found

    monkeypatch.setattr(users, "check_password", come_in_meanwhile)
    assert sign_in(visitor, "alice") == 302
