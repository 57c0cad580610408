"""Tests that one statement finds and redeems a credential exactly as two statements do.

Each case stores the same state twice. The request of one copy can write during its lookup, and the
request of the other copy cannot. The responses and all rows must be the same in the end.
"""

import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from flask import Flask
from hypothesis import HealthCheck, given, settings, strategies
from sqlalchemy import select, text

from domain.oauth.client_requests import ClientEndpoint
from domain.oauth.protocol import OAuthResponse, ProtocolRequest
from domain.oauth.server import AuthorizationServer
from models import (
    AccessToken,
    Application,
    ApplicationSecret,
    AuditEvent,
    Authorization,
    DeviceAuthorization,
    RejectedOAuthRequest,
)
from tests.support.database.sql_statements import collect_postgres_statements
from tests.support.oauth.token_states import (
    CHANGES,
    KEYRING,
    NOW,
    SERVED,
    STATES,
    Copy,
    State,
    stored,
)
from web.database.prepared_statements import PreparedStatementExecutor
from web.extensions import db
from web.oauth import build_oauth_context

pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)

#: The rows that belong to a copy, and the columns that differ between copies.
_TABLES = (
    (Authorization, "user_id"),
    (AccessToken, "user_id"),
    (DeviceAuthorization, "application_id"),
    (ApplicationSecret, "application_id"),
    (RejectedOAuthRequest, "application_id"),
    (Application, "owner_id"),
    (AuditEvent, "user_id"),
)
_OWN = {"id", "uid", "name", "name_key", "owner_id", "user_id", "subject", "details", "seal"}
#: Errors for a device while its user has not decided.
PENDING = ("authorization_pending", "slow_down")
_RANDOM = {"access_token", "refresh_token", "device_code", "user_code", "verification_uri_complete"}


def answer(copy: Copy, *, may_write: bool) -> OAuthResponse:
    """Send the request of a copy, which can write during its lookup or cannot."""
    context = build_oauth_context()
    policy = replace(context.policy, refresh_replay=timedelta(seconds=copy.state.replay_seconds))
    context = replace(context, now=NOW, keyring=KEYRING, policy=policy)
    parameters = {
        name: [value] if isinstance(value, str) else value for name, value in copy.form.items()
    }
    server, request = (
        AuthorizationServer(context),
        ProtocolRequest("POST", parameters, copy.headers),
    )
    may = ClientEndpoint._can_use_combined_lookup if may_write else lambda *_: False  # noqa: SLF001
    with patch.object(ClientEndpoint, "_can_use_combined_lookup", may):
        if "grant_type" in copy.form:
            response = server.create_token_response(request)
        else:
            response = server.create_endpoint_response("device_authorization", request)
    db.session.commit()
    return response


def shown(response: OAuthResponse) -> dict[str, Any]:
    """Return the parts of a response that both copies share, with decoded claims."""
    assert isinstance(response.body, dict)
    body: dict[str, Any] = {
        name: bool(value) if name in _RANDOM else value for name, value in response.body.items()
    }
    if "id_token" in body:
        claims = json.loads(urlsafe_b64decode(str(body["id_token"]).split(".")[1] + "=="))
        body["id_token"] = {**claims, "sub": 0, "aud": "", "at_hash": ""}
    return {**body, "status": response.status, "headers": list(response.headers)}


def rows_of(copy: Copy) -> dict[str, list[dict[str, Any]]]:
    """Return all rows that belong to a copy, without the values that differ between copies."""
    owned = {"user_id": [copy.user_id], "owner_id": [copy.user_id]}
    own = select(Application.id).where(Application.owner_id == copy.user_id)
    owned["application_id"] = list(db.session.scalars(own))
    found = {}
    for table, owner in _TABLES:
        columns = table.__table__.c
        rows = db.session.execute(
            select(*columns).where(columns[owner].in_(owned[owner])).order_by(columns.id)
        )
        found[table.__name__] = [_alike(dict(row)) for row in rows.mappings()]
    return found


def _alike(row: dict[str, Any]) -> dict[str, Any]:
    is_known = {name: value is None for name, value in row.items() if name in _OWN}
    rest = {name: value for name, value in row.items() if name not in _OWN}
    hidden = {
        name: value is None if name.endswith(("_id", "digest")) else value
        for name, value in rest.items()
    }
    return {**hidden, **is_known}


def compare(state: State) -> dict[str, Any]:
    """Return the response after both ways have led to the same response and rows."""
    copies = [stored(state), stored(state)]
    ways = zip(copies, (True, False), strict=True)
    responses = [answer(copy, may_write=may_write) for copy, may_write in ways]
    one, two = (shown(response) for response in responses)
    assert one == two
    first, second = (rows_of(copy) for copy in copies)
    assert first == second
    for response in responses:
        assert isinstance(response.body, dict)
        for name, column in (
            ("access_token", AccessToken.digest),
            ("device_code", DeviceAuthorization.device_code_digest),
        ):
            if name in response.body:
                digest = KEYRING.compute_digest(str(response.body[name]))
                assert db.session.scalar(select(column).where(column == digest)) == digest
    return one


@pytest.mark.parametrize("kind", STATES)
def test_one_statement_equals_two_for_each_invalid_state(app: Flask, kind: str) -> None:
    with app.test_request_context("/oauth/token", method="POST"):
        for name, change in {"": lambda _state: None, **CHANGES[kind]}.items():
            state = STATES[kind]()
            change(state)
            try:
                error = compare(state).get("error", PENDING[0])
                assert (error in PENDING) is (name in SERVED[kind])
            except AssertionError as failed:
                failed.add_note(f"{kind}: {name}")
                raise


@pytest.mark.parametrize("kind", STATES)
def test_an_ordinary_request_takes_one_statement(app: Flask, kind: str) -> None:
    with app.test_request_context("/oauth/token", method="POST"):
        counts = []
        for _ in range(2):  # The first request opens a connection.
            state = STATES[kind]()
            state.application["last_used_at"] = state.secrets[0]["last_used_at"] = NOW
            copy = stored(state)
            with collect_postgres_statements() as sent:
                response = answer(copy, may_write=True)
            assert response.status in {200, 400}
            counts.append(len(sent))
        assert counts[-1] == 1


@pytest.mark.parametrize(
    ("kind", "waits"), [("code", "on"), ("refresh", "on"), ("poll", "off"), ("request", "off")]
)
def test_only_devices_do_not_wait_for_the_disk(app: Flask, kind: str, waits: str) -> None:
    with app.test_request_context("/oauth/token", method="POST"):
        copy = stored(STATES[kind]())
        # The statement is captured here, and runs below.
        with (
            patch.object(PreparedStatementExecutor, "run_statement", lambda *_: ()),
            collect_postgres_statements() as sent,
        ):
            answer(copy, may_write=True)
        connection: Any = db.session.connection().connection.driver_connection
        query, values = next(each for each in sent if each[0].startswith("WITH found"))
        (row,) = psycopg.RawCursor(connection).execute(query, values).fetchall()
        assert row[-1] is not None
        assert connection.execute("SHOW synchronous_commit").fetchone() == (waits,)
        db.session.commit()
        connection = db.session.connection().connection.driver_connection
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


_END_OTHERS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.mark.parametrize("kind", STATES)
def test_a_lost_connection_is_replaced(app: Flask, kind: str) -> None:
    with app.test_request_context("/oauth/token", method="POST"):
        answer(stored(STATES[kind]()), may_write=True)
        copy = stored(STATES[kind]())
        db.session.execute(_END_OTHERS)
        db.session.commit()
        body = shown(answer(copy, may_write=True))
    assert body.get("error", PENDING[0]) in PENDING


def test_a_read_only_server_still_rejects_requests(app: Flask) -> None:
    with app.test_request_context("/oauth/token", method="POST"):
        state = STATES["code"]()
        CHANGES["code"]["another address"](state)
        copy = stored(state)
        name = db.session.connection().engine.url.database
        db.session.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
        db.session.execute(_END_OTHERS)
        db.session.commit()
        with patch.object(AuthorizationServer, "_record_rejection", lambda *_: None):
            assert shown(answer(copy, may_write=True))["error"] == "invalid_grant"


@pytest.mark.long
@pytest.mark.parametrize("kind", STATES)
def test_one_statement_equals_two_in_any_state(app: Flask, kind: str) -> None:
    changes = CHANGES[kind]

    @given(strategies.lists(strategies.sampled_from(sorted(changes)), max_size=6, unique=True))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
    def check(names: list[str]) -> None:
        state = STATES[kind]()
        for name in names:
            changes[name](state)
        compare(state)

    with app.test_request_context("/oauth/token", method="POST"):
        check()
