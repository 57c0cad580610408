"""Tests of `gatebell secrets`: the progress of a key rotation, and re-encryption."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import delete, select

from domain.core.clock import read_system_clock
from domain.core.hosts import HostReport, record_host_report
from domain.core.keyring import Keyring
from models import ApplicationSecret, Base, Integration, PersonalAccessToken, SecretKeyUse
from tests.support.service.commands import operate
from web.extensions import db
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("postgres")

OLD, NEW, LOST = (
    f"{word} key, which is long enough for anybody" for word in ("old", "new", "lost")
)
Make = Callable[..., Flask]


@pytest.fixture
def host(settings: Settings, make_app: Callable[[Settings], Flask]) -> Make:
    """Return a function that creates hosts of one database with different keys."""

    def make(key: str, *fallbacks: str) -> Flask:
        return make_app(replace(settings, secret_key=key, secret_key_fallbacks=fallbacks))

    return make


def report_host(app: Flask, name: str, *keys: str) -> None:
    """Record a host with its keys."""
    moment = read_system_clock()
    sighting = HostReport(
        name=name,
        key_fingerprints=Keyring(*keys).fingerprints,
        revision="0012",
        clock_lead_ms=0,
        seen_at=moment,
    )
    with app.app_context():
        record_host_report(sighting, session=db.session())
        db.session.commit()


def next_step(app: Flask) -> str:
    sentence = operate(app, "secrets", "status")["next"]
    assert isinstance(sentence, str)
    return sentence


def let_time_pass(app: Flask) -> None:
    """Make the last use of every key older, except the newest one."""
    with app.app_context():
        newest = app.extensions["gatebell"].keyring.fingerprints[0]
        for use in db.session.scalars(select(SecretKeyUse)):
            if use.fingerprint != newest:
                use.last_used_at -= timedelta(hours=1)
        db.session.commit()


def made(app: Flask) -> dict[str, Any]:
    """Store an object of each kind."""
    operate(app, "users", "create", "alice", "--email", "alice@people.example")
    operate(app, "groups", "create", "acme", "--owner", "alice")
    operate(app, "projects", "create", "acme/shop")
    scopes = ("--scopes", "read_user", "--redirect-uri", "http://127.0.0.1/cb")
    return {
        "integration": operate(
            app, *("integrations", "create", "acme/shop", "--type", "http", "--name", "Nagios")
        ),
        "token": operate(app, *("tokens", "create", "alice", "--name", "x", "--scopes", "api")),
        "client": operate(app, *("applications", "create", "Board", "--owner", "alice", *scopes)),
    }


@pytest.mark.long
def test_a_command_with_a_wrong_key_is_rejected_with_a_sentence(host: Make) -> None:
    made(host(OLD))
    done = (
        host(LOST)
        .test_cli_runner()
        .invoke(args=["tokens", "create", "alice", "--name", "y", "--scopes", "api"])
    )
    assert done.exit_code == 1
    assert json.loads(done.stderr)["error"].startswith("SECRET_KEY is not the right key")
    assert "lost key" not in done.output


@pytest.mark.long
def test_the_key_of_an_older_database_is_checked_by_decryption(host: Make) -> None:
    app = host(OLD)
    made(app)
    with app.app_context():
        db.session.execute(delete(SecretKeyUse))
        db.session.commit()
    refused = host(LOST).test_cli_runner().invoke(args=["groups", "create", "other"])
    assert "cannot decrypt anything in it" in json.loads(refused.stderr)["error"]
    operate(host(OLD), "groups", "create", "other")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_lost_key_can_be_forgotten(host: Make) -> None:
    made(host(OLD))
    anew = host(LOST)
    assert len(operate(anew, "secrets", "forget")["forgotten"]) == 1
    operate(anew, "groups", "create", "other")
    assert operate(anew, "secrets", "status")["unreadable"]["integration_keys"] == 1


@pytest.mark.long
def test_readiness_fails_if_other_hosts_use_an_unknown_key(host: Make) -> None:
    one, other = host(OLD), host(OLD)
    made(one)
    assert other.test_client().get("/readyz").status_code == 200
    operate(host(NEW, OLD), "groups", "create", "other")
    answer = other.test_client().get("/readyz")
    assert (answer.status_code, answer.json) == (
        503,
        {"status": "unavailable", "database": "wrong key"},
    )
    assert host(OLD, NEW).test_client().get("/readyz").status_code == 200


@pytest.mark.long
@pytest.mark.both_databases
def test_the_status_shows_the_next_safe_step_of_a_rotation(host: Make) -> None:
    app = host(OLD)
    made(app)
    report_host(app, "one web", OLD)
    report_host(app, "other web", OLD)
    assert next_step(app).startswith("There is one key.")

    app = host(OLD, NEW)
    report_host(app, "one web", OLD, NEW)
    assert next_step(app).startswith("Wait until every host has every key: other web needs ")
    report_host(app, "other web", OLD, NEW)
    assert next_step(app).startswith("Every host has every key. Swap")

    app = host(NEW, OLD)
    operate(app, "groups", "create", "second")
    report_host(app, "one web", NEW, OLD)
    assert next_step(app).startswith("Wait until these hosts write with ")
    report_host(app, "other web", NEW, OLD)
    assert next_step(app) == "Run `gatebell secrets reencrypt`."
    assert operate(app, "secrets", "reencrypt")["reencrypted"]["integration_keys"] == 1
    assert next_step(app).startswith("Keep SECRET_KEY_FALLBACKS")


@pytest.mark.long
@pytest.mark.both_databases
def test_used_credentials_are_rehashed_until_the_old_key_can_be_removed(host: Make) -> None:
    kept = made(host(OLD))
    app = host(NEW, OLD)
    operate(app, "groups", "create", "second")
    let_time_pass(app)
    with app.app_context():
        for row in (*db.session.scalars(select(PersonalAccessToken)), *_secrets()):
            row.created_at -= timedelta(days=1)
        db.session.commit()
    before = operate(app, "secrets", "status")["hashed_with_older"]
    assert (before["personal_access_tokens"], before["client_secrets"]) == (1, 1)

    use(app, kept)
    operate(app, "secrets", "reencrypt")
    after = operate(app, "secrets", "status")
    assert set(after["hashed_with_older"].values()) | set(
        after["encrypted_with_older"].values()
    ) == {0}
    assert after["next"] == "SECRET_KEY_FALLBACKS is no longer needed. Remove it on every host."
    use(host(NEW), kept)


def _secrets() -> list[ApplicationSecret]:
    return list(db.session.scalars(select(ApplicationSecret)))


def use(app: Flask, kept: dict[str, Any]) -> None:
    """Use all credentials, and check that they are accepted."""
    client = app.test_client()
    bearer = {"Authorization": f"Bearer {kept['token']['token']}"}
    assert client.get("/api/v4/user", headers=bearer).status_code == 200
    proof = {
        "client_id": kept["client"]["application_id"],
        "client_secret": kept["client"]["secret"],
        "token": "unknown",
    }
    assert client.post("/oauth/revoke", data=proof).status_code == 200
    key = {"Authorization": f"Bearer {kept['integration']['key']}"}
    path = kept["integration"]["url"].removeprefix("http://localhost")
    assert client.post(path, json={"title": "x"}, headers=key).status_code == 200


@pytest.mark.long
def test_reencryption_keeps_integration_keys(host: Make) -> None:
    app = host(OLD)
    made(app)
    newer = host(NEW, OLD)
    assert operate(newer, "secrets", "reencrypt")["reencrypted"]["integration_keys"] == 1
    assert operate(newer, "secrets", "reencrypt")["reencrypted"]["integration_keys"] == 0
    with newer.app_context():
        (row,) = db.session.scalars(select(Integration))
        keyring = Keyring(NEW)
        assert keyring.compute_digest(keyring.decrypt(row.key_ciphertext)) == row.key_digest


def test_reencryption_is_rejected_while_a_host_does_not_have_the_new_key(host: Make) -> None:
    app = host(NEW, OLD)
    report_host(app, "other web", OLD)
    done = app.test_cli_runner().invoke(args=["secrets", "reencrypt"])
    assert done.exit_code == 1
    assert "other web" in json.loads(done.stderr)["error"]


def test_every_encrypted_column_is_reencrypted(host: Make) -> None:
    columns = {
        column
        for table in Base.metadata.tables.values()
        for column in table.columns
        if column.name.endswith("ciphertext")
    }
    counted = operate(host(OLD), "secrets", "status")["encrypted_with_older"]
    assert len(columns) == len(counted)
