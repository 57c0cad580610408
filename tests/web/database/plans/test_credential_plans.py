"""Tests that credentials are found and redeemed by index on tables without statistics."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Executable

from domain.oauth import tokens
from domain.oauth.clients import credential_lookup
from domain.oauth.grants import authorization_code, device_code, refresh_token
from tests.web.database.plans.test_hot_plans import plan_of
from web.extensions import db

ON_POSTGRES = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLIENT = "uq_applications_uid"


def plan(app: Flask, statement: Executable, **values: Any) -> str:
    """Return the plan of PostgreSQL for a statement."""
    with app.app_context():
        compiled = statement.compile(dialect=db.engine.dialect)  # type: ignore[attr-defined]
    return plan_of(app, (str(compiled), dict.fromkeys(compiled.bind_names.values()) | values))


@ON_POSTGRES
@pytest.mark.parametrize(
    ("lookup", "indexes"),
    [
        (credential_lookup.ACCESS_TOKEN_LOOKUP, ["uq_access_tokens_digest"]),
        (
            credential_lookup.REFRESH_GRANT_LOOKUP,
            ["uq_access_tokens_refresh_digest", "pk_authorizations"],
        ),
        (
            credential_lookup.AUTHORIZATION_CODE_LOOKUP,
            ["uq_authorizations_code_digest", "pk_users"],
        ),
        (
            credential_lookup.DEVICE_CODE_LOOKUP,
            ["uq_device_authorizations_device_code_digest", "uq_authorizations_code_digest"],
        ),
    ],
)
def test_a_client_and_its_credential_are_found_by_index(
    app: Flask, lookup: credential_lookup.CredentialLookup[Any], indexes: list[str]
) -> None:
    values = {"client_id": "x", "now": NOW, "presented_digest": b"x" * 32}
    shown = plan(app, lookup.statement, **values)
    assert [name for name in [CLIENT, *indexes] if name not in shown] == [], shown
    assert "Seq Scan" not in shown


@ON_SQLITE
@pytest.mark.parametrize(
    "lookup",
    [
        credential_lookup.ACCESS_TOKEN_LOOKUP,
        credential_lookup.REFRESH_GRANT_LOOKUP,
        credential_lookup.AUTHORIZATION_CODE_LOOKUP,
        credential_lookup.DEVICE_CODE_LOOKUP,
    ],
)
def test_sqlite_finds_credentials_by_index(
    app: Flask, lookup: credential_lookup.CredentialLookup[Any]
) -> None:
    with app.app_context():
        compiled = lookup.statement.compile(dialect=db.engine.dialect)
        values = dict.fromkeys(compiled.bind_names.values(), b"x")
        steps = db.session.connection().exec_driver_sql(
            f"EXPLAIN QUERY PLAN {compiled}",
            tuple(values[name] for name in compiled.positiontup or ()),
        )
        shown = [row.detail for row in steps]
    assert [step for step in shown if not step.startswith("SEARCH ")] == []


@ON_POSTGRES
@pytest.mark.parametrize(
    ("statement", "indexes"),
    [
        (tokens.REFRESH_TOKEN_REDEMPTION.at_once, ["pk_access_tokens", "pk_authorizations"]),
        (tokens.CODE_REDEMPTION.at_once, ["pk_authorizations"]),
        (tokens.DEVICE_CODE_REDEMPTION.at_once, ["pk_authorizations", "pk_device_authorizations"]),
        (
            refresh_token.REFRESH_REDEMPTION_LOOKUP.statement,
            ["pk_access_tokens", "pk_authorizations"],
        ),
        (authorization_code.CODE_REDEMPTION_LOOKUP.statement, ["pk_authorizations"]),
        (device_code.POLL_LOOKUP, ["pk_device_authorizations"]),
    ],
)
def test_redeemed_credentials_are_found_by_key(
    app: Flask, statement: Executable, indexes: list[str]
) -> None:
    ids = {"spent_token": 1, "spent_grant": 1, "spent_device": 1, "now": NOW}
    shown = plan(app, statement, **ids, client_id="x", presented_digest=b"x" * 32, latest=NOW)
    assert [name for name in indexes if name not in shown] == [], shown
    # Half of all tokens can be live, so these indexes would not help.
    assert "ix_access_tokens_revoked_at" not in shown
    assert "ix_authorizations_unused_code" not in shown
    assert "Seq Scan" not in shown
