"""Tests of client registration management (RFC 7592)."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update
from werkzeug.test import TestResponse

from models import Application, AuditEvent
from tests.support.oauth.registrations import (
    CALLBACK,
    GOOD,
    Open,
    assert_wrong,
    register,
    row_of,
    token_of,
)
from web.extensions import db

pytestmark = pytest.mark.one_database("sqlite")


def managed(
    visitor: FlaskClient, registered: TestResponse, method: str = "GET", **options: Any
) -> TestResponse:
    body = registered.get_json()
    headers = {"Authorization": f"Bearer {body['registration_access_token']}"}
    return visitor.open(body["registration_client_uri"], method=method, headers=headers, **options)


def put(visitor: FlaskClient, registered: TestResponse, **changes: Any) -> TestResponse:
    body = {**GOOD, "client_id": registered.get_json()["client_id"], **changes}
    kept = {name: value for name, value in body.items() if value is not None}
    return managed(visitor, registered, "PUT", json=kept)


@pytest.mark.long
@pytest.mark.rfc("rfc7592-2.1-a", "rfc7592-3-a")
def test_a_client_can_read_its_registration_without_the_secret(visitor: FlaskClient) -> None:
    registered = register(visitor)
    told = registered.get_json()
    answer = managed(visitor, registered)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    del told["client_secret"], told["client_secret_expires_at"]
    assert answer.get_json() == told


@pytest.mark.advisory("CVE-2020-27838")
@pytest.mark.rfc("rfc7592-2-a", "rfc7592-2.1-b", "rfc7592-2.3-b")
def test_a_registration_is_accessible_only_with_its_own_token(visitor: FlaskClient) -> None:
    registered = register(visitor)
    path = registered.get_json()["registration_client_uri"]
    other = register(visitor).get_json()["registration_access_token"]
    personal = token_of(visitor, "root")["Authorization"]
    headers = ["", "Bearer ", "Bearer x", f"Bearer {other}", personal, f"Basic {other}"]
    tries = [(path, header) for header in headers]
    tries += [(f"/oauth/register/{uid}", f"Bearer {other}") for uid in ("x", "é", "%00", "a" * 64)]
    for address, header in tries:
        for method in ("GET", "PUT", "DELETE"):
            answer = visitor.open(
                address, method=method, headers={"Authorization": header}, json=GOOD
            )
            assert (answer.status_code, answer.get_json()["error"]) == (401, "invalid_token")
            assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="Gatebell"')
    assert managed(visitor, registered).status_code == 200


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7592-2.2-a", "rfc7592-2.2-b")
def test_a_put_request_replaces_the_whole_registration(opened: Open) -> None:
    visitor = opened()
    said = {**GOOD, "client_uri": "https://client.example/", "software_id": "x"}
    registered = register(visitor, said)
    new = "https://client.example/new"
    answer = put(visitor, registered, client_name="Androide", redirect_uris=[new], scope="api")
    assert answer.status_code == 200, answer.text
    body = answer.get_json()
    assert (body["client_name"], body["redirect_uris"], body["scope"]) == ("Androide", [new], "api")
    assert "client_uri" not in body
    assert "software_id" not in body
    assert managed(visitor, registered).get_json() == body
    with visitor.application.app_context():
        kinds = db.session.scalars(select(AuditEvent.kind).order_by(AuditEvent.id)).all()
    assert kinds == ["application.registered", "application.changed"]


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"client_id": None}, "invalid_request"),
    ({"client_id": "x"}, "invalid_request"),
    ({"client_id": ["x"]}, "invalid_request"),
    ({"registration_access_token": "x"}, "invalid_request"),
    ({"registration_client_uri": "x"}, "invalid_request"),
    ({"client_secret_expires_at": 0}, "invalid_request"),
    ({"client_id_issued_at": 0}, "invalid_request"),
    ({"client_secret": "gbs-another"}, "invalid_client_metadata"),
    ({"client_secret": 5}, "invalid_client_metadata"),
    ({"client_secret": "\ud800"}, "invalid_client_metadata"),
    ({"scope": "everything"}, "invalid_client_metadata"),
    ({"redirect_uris": None}, "invalid_redirect_uri"),
)


@pytest.mark.rfc("rfc7592-2.2-c", "rfc7592-2.2-d")
def test_an_invalid_put_request_is_rejected(visitor: FlaskClient) -> None:
    registered = register(visitor)
    for changes, error in WRONG:
        assert_wrong(put(visitor, registered, **changes), error)
    assert managed(visitor, registered).get_json()["redirect_uris"] == [CALLBACK]


@pytest.mark.rfc("rfc7592-2.2-e")
def test_a_client_that_becomes_confidential_gets_a_secret(visitor: FlaskClient) -> None:
    registered = register(visitor, {**GOOD, "token_endpoint_auth_method": "none"})
    answer = put(visitor, registered, token_endpoint_auth_method="client_secret_post")
    secret = answer.get_json()["client_secret"]
    assert secret.startswith("gbs-")
    same = put(
        visitor, registered, token_endpoint_auth_method="client_secret_post", client_secret=secret
    )
    assert same.status_code == 200
    assert "client_secret" not in same.get_json()
    public = put(visitor, registered, token_endpoint_auth_method="none")
    assert not row_of(visitor, public).confidential


def test_a_trusted_client_that_changes_its_authentication_loses_the_trust(
    visitor: FlaskClient,
) -> None:
    registered = register(visitor)
    with visitor.application.app_context():
        db.session.execute(update(Application).values(trusted=True, confidential=False))
        db.session.commit()
    assert managed(visitor, registered).get_json()["token_endpoint_auth_method"] == "none"
    assert row_of(visitor, put(visitor, registered)).trusted is False


def set_by_its_owner(visitor: FlaskClient, **values: Any) -> None:
    with visitor.application.app_context():
        db.session.execute(update(Application).values(**values))
        db.session.commit()


def test_a_put_request_keeps_settings_of_the_owner(visitor: FlaskClient) -> None:
    registered = register(visitor)
    set_by_its_owner(visitor, trusted=True, refresh_for_devices=True, require_pkce=False)
    row = row_of(visitor, put(visitor, registered, client_name="Androide"))
    assert row.name == "Androide"
    assert (row.trusted, row.refresh_for_devices, row.require_pkce) == (True, True, False)
    assert row.is_instance_wide


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uris": [CALLBACK, "https://evil.example/"]},
        {"scope": "api"},
        {"token_endpoint_auth_method": "none"},
    ],
)
def test_an_edit_of_a_security_setting_ends_the_trust_and_is_recorded(
    visitor: FlaskClient, changes: dict[str, Any]
) -> None:
    registered = register(visitor)
    set_by_its_owner(visitor, trusted=True)
    assert row_of(visitor, put(visitor, registered, **changes)).trusted is False
    with visitor.application.app_context():
        events = db.session.scalars(select(AuditEvent).order_by(AuditEvent.id.desc()))
        details = events.first().details  # type: ignore[union-attr]
    assert details is not None
    assert details["trust"] == "ended: users are asked for consent again"


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7592-2.3-a", "rfc7592-2.3-b")
def test_a_client_can_delete_its_registration(opened: Open) -> None:
    visitor = opened()
    registered = register(visitor)
    answer = managed(visitor, registered, "DELETE")
    assert (answer.status_code, answer.data) == (204, b"")
    assert answer.headers["Cache-Control"] == "no-store"
    for method in ("GET", "PUT", "DELETE"):
        assert managed(visitor, registered, method, json=GOOD).status_code == 401
    with visitor.application.app_context():
        assert db.session.scalars(select(Application)).all() == []
        kinds = db.session.scalars(select(AuditEvent.kind).order_by(AuditEvent.id)).all()
    assert kinds == ["application.registered", "application.removed"]
