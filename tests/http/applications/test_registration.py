"""Tests of dynamic client registration (RFC 7591)."""

import json
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from domain.core.clock import read_system_clock
from domain.housekeeping.pruning import Retention, prune_expired_rows
from models import Application, AuditEvent, User
from tests.support.oauth.machines import new_key, public_part
from tests.support.oauth.oauth_wire import PKCE
from tests.support.oauth.registrations import (
    CALLBACK,
    DEVICE,
    GOOD,
    Open,
    assert_wrong,
    register,
    row_of,
    token_of,
)
from tests.support.wire.garbage import bounded
from web.extensions import db
from web.services import get_current_time

pytestmark = pytest.mark.one_database("sqlite")


def test_registration_is_off_by_default(opened: Open) -> None:
    visitor = opened(dynamic_client_registration=False)
    for method in ("post", "get", "put", "delete"):
        path = "/oauth/register" + ("" if method == "post" else "/x")
        answer = getattr(visitor, method)(path, json=GOOD)
        assert (answer.status_code, answer.get_json()["error"]) == (404, "invalid_request")
    assert (
        "registration_endpoint"
        not in visitor.get("/.well-known/oauth-authorization-server").get_json()
    )


@pytest.mark.rfc("rfc7591-3-a")
def test_the_metadata_contains_the_registration_endpoint(visitor: FlaskClient) -> None:
    for name in ("oauth-authorization-server", "openid-configuration"):
        document = visitor.get(f"/.well-known/{name}").get_json()
        assert document["registration_endpoint"] == "http://localhost/oauth/register"


@pytest.mark.rfc("rfc7591-3.2.1-a", "rfc7591-3.2.1-b", "rfc7591-2-a")
def test_the_response_contains_all_registered_metadata(visitor: FlaskClient) -> None:
    answer = register(visitor)
    assert answer.status_code == 201
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.get_json()
    assert len(body.pop("client_id")) == 64
    assert body.pop("client_secret").startswith("gbs-")
    assert body.pop("registration_access_token").startswith("gbg-")
    assert abs(body.pop("client_id_issued_at") - read_system_clock().timestamp()) < 60
    assert body.pop("registration_client_uri").startswith("http://localhost/oauth/register/")
    assert body == {
        "client_secret_expires_at": 0,
        "client_name": "Robot",
        "redirect_uris": [CALLBACK],
        "scope": "read_user openid profile email",
        "token_endpoint_auth_method": "client_secret_basic",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "dpop_bound_access_tokens": False,
    }


@pytest.mark.both_databases
@pytest.mark.rfc("rfc7591-2-b", "rfc7591-2-c", "rfc7591-2.3-a")
def test_known_metadata_is_stored_and_unknown_metadata_is_ignored(opened: Open) -> None:
    said = {
        **GOOD,
        "scope": "api openid",
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", DEVICE, "implicit", "password"],
        "response_types": ["code", "token"],
        "client_uri": "https://client.example/#about",
        "logo_uri": "https://client.example:8443/logo.png?a=b&c=d",
        "policy_uri": "https://client.example/privacy",
        "tos_uri": "https://client.example/terms",
        "contacts": ["somebody@client.example"],
        "software_id": "4NRB1-0XZABZI9E6-5SM3R",
        "software_version": "2.2 “beta”",
        "dpop_bound_access_tokens": True,
        "require_pushed_authorization_requests": True,
        "client_name#fr": "Le robot",
        "software_statement": "e30.e30.",
        "colour": {"a": [1, None, {}]},
        "trusted": True,
        "client_secret": "mine",
        "default_max_age": None,
    }
    visitor = opened()
    answer = register(visitor, said)
    assert answer.status_code == 201, answer.text
    body = answer.get_json()
    same = (
        "client_uri", "logo_uri", "policy_uri", "tos_uri", "contacts", "software_id",
        "software_version", "dpop_bound_access_tokens", "require_pushed_authorization_requests",
        "scope",
    )  # fmt: skip
    assert {name: body[name] for name in same} == {name: said[name] for name in same}
    assert body["grant_types"] == ["authorization_code", "refresh_token", DEVICE]
    assert body["response_types"] == ["code"]
    assert "client_secret" not in body
    assert not {"colour", "trusted", "client_name#fr", "software_statement"} & set(body)
    row = row_of(visitor, answer)
    assert (row.trusted, row.require_pkce, row.confidential, row.require_dpop) == (
        False,
        True,
        False,
        True,
    )


WRONG_URIS: tuple[Any, ...] = (
    None,
    [],
    "https://client.example/",
    [5],
    [None],
    ["https://client.example/#x"],
    ["javascript:alert(1)"],
    ["https://user@client.example/"],
    ["https://client.example/“"],
    ["https://client.example/\ud800"],
    ["https://client.example/\x00"],
    ["https://client.example/" + "x" * 2000],
    [f"https://client.example/{number}" for number in range(51)],
    {"a": "b"},
)


@pytest.mark.both_databases
def test_a_client_can_register_a_key_and_replace_it_with_a_secret(opened: Open) -> None:
    visitor, key = opened(), {"keys": [json.loads(public_part(new_key()))]}
    said = {
        **GOOD,
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": key,
        "backchannel_logout_uri": "https://client.example/logout",
    }
    answer = register(visitor, said)
    assert answer.status_code == 201, answer.text
    body = answer.get_json()
    assert "client_secret" not in body
    (stored,) = body["jwks"]["keys"]
    assert stored.items() >= key["keys"][0].items()
    assert body["backchannel_logout_uri"] == said["backchannel_logout_uri"]
    assert body["backchannel_logout_session_required"] is True
    headers = {"Authorization": f"Bearer {body['registration_access_token']}"}
    path = f"/oauth/register/{body['client_id']}"
    changed = visitor.put(path, json={**GOOD, "client_id": body["client_id"]}, headers=headers)
    assert changed.status_code == 200, changed.text
    assert changed.get_json()["client_secret"]
    assert not {"jwks", "backchannel_logout_uri"} & set(changed.get_json())


@pytest.mark.rfc("rfc7591-3.2.2-a", "rfc7591-2-d")
def test_an_invalid_redirect_uri_has_its_own_error(visitor: FlaskClient) -> None:
    for uris in WRONG_URIS:
        answer = register(visitor, {**GOOD, "redirect_uris": uris})
        assert_wrong(answer, "invalid_redirect_uri")


def test_an_instance_can_require_https(opened: Open) -> None:
    visitor = opened(require_https_redirect_uris=True)
    plain = {**GOOD, "redirect_uris": ["http://client.example/"]}
    assert_wrong(register(visitor, plain), "invalid_redirect_uri")


WRONG_METADATA: tuple[dict[str, Any], ...] = (
    {"client_name": 5},
    {"client_name": "x" * 101},
    {"client_name": "two\nlines"},
    {"client_name": "half a \ud83d"},
    {"scope": "everything"},
    {"scope": ["api"]},
    {"scope": "   "},
    {"token_endpoint_auth_method": "private_key_jwt"},
    {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://client.example/keys"},
    {"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [{"kty": "RSA"}]}},
    {"jwks": 5},
    {"token_endpoint_auth_method": []},
    {"grant_types": "authorization_code"},
    {"grant_types": ["implicit"]},
    {"grant_types": ["client_credentials", "refresh_token"]},
    {"response_types": ["token"]},
    {"response_types": [["code"]]},
    {"client_uri": "http://client.example/"},
    {"client_uri": "https://"},
    {"client_uri": "https://user@client.example/"},
    {"client_uri": 'https://client.example/"onclick='},
    {"client_uri": "https://client.example:x/"},
    {"client_uri": "https://[::1/"},
    {"logo_uri": "javascript:alert(1)"},
    {"policy_uri": 5},
    {"tos_uri": "https://client.example/\u202e"},
    {"contacts": "me"},
    {"contacts": [{}]},
    {"software_id": 1},
    {"dpop_bound_access_tokens": "true"},
    {"require_pushed_authorization_requests": 1},
    {"scope": "api admin_mode"},
    {"scope": "sudo"},
)


@pytest.mark.advisory("CVE-2021-20323", "CVE-2026-1180", "CVE-2026-70665")
@pytest.mark.rfc("rfc7591-3.2.2-b")
def test_invalid_metadata_is_rejected(visitor: FlaskClient) -> None:
    for changes in WRONG_METADATA:
        assert_wrong(register(visitor, {**GOOD, **changes}), "invalid_client_metadata")
    markup = "<img src=x onerror=alert(1)>"
    answer = register(visitor, {**GOOD, markup: 1, "scope": markup})
    assert_wrong(answer, "invalid_client_metadata")
    assert answer.content_type == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.rfc("rfc7591-3.1-a")
def test_a_body_that_is_not_a_json_object_is_rejected(visitor: FlaskClient) -> None:
    for body in (b"", b"{", b"[]", b"null", b"5", b"\xff", b'"x"', b"[" * 9_000, b"{\x00}"):
        answer = visitor.post("/oauth/register", data=body, content_type="application/json")
        assert_wrong(answer, "invalid_request")
    form = visitor.post("/oauth/register", data={"client_name": "x"})
    assert_wrong(form, "invalid_request", 415)
    assert_wrong(register(visitor, {**GOOD, "x": "y" * 70_000}), "invalid_request", 413)
    answer = visitor.get("/oauth/register")
    assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (
        405,
        {"OPTIONS", "POST"},
    )


@pytest.mark.rfc("rfc7591-3-b")
def test_a_closed_registration_needs_a_token_and_its_user_owns_the_client(opened: Open) -> None:
    visitor = opened(open_client_registration=False)
    refused = register(visitor)
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="Gatebell"'
    weak = register(visitor, headers=token_of(visitor, "ada", "read_user"))
    assert (weak.status_code, weak.get_json()["error"]) == (403, "insufficient_scope")
    wrong = register(visitor, headers={"Authorization": "Bearer gbp-nothing"})
    assert (wrong.status_code, wrong.get_json()["error"]) == (401, "invalid_token")
    answer = register(visitor, headers=token_of(visitor, "ada"))
    assert answer.status_code == 201
    row = row_of(visitor, answer)
    with visitor.application.app_context():
        assert db.session.get_one(User, row.owner_id).username == "ada"
    assert not row.is_instance_wide


def test_a_bot_cannot_register_clients(opened: Open) -> None:
    visitor = opened()
    headers = token_of(visitor, "ada")
    with visitor.application.app_context():
        db.session.execute(update(User).where(User.username == "ada").values(kind="bot"))
        db.session.commit()
    assert_wrong(register(visitor, headers=headers), "access_denied", 403)


@pytest.mark.rfc("rfc7591-3-c")
def test_a_client_registered_without_a_token_belongs_to_the_instance(opened: Open) -> None:
    visitor = opened()
    row = row_of(visitor, register(visitor))
    with visitor.application.app_context():
        assert db.session.get_one(User, row.owner_id).username == "root"
        event = db.session.scalars(select(AuditEvent)).one()
    assert row.is_instance_wide
    assert (event.kind, event.subject) == ("application.registered", "Robot")
    assert event.details == {"application_id": row.uid, "by": "the client itself"}


@pytest.mark.long
def test_open_registration_needs_an_active_administrator(opened: Open) -> None:
    visitor = opened()
    with visitor.application.app_context():
        db.session.execute(update(User).values(state="locked"))
        db.session.commit()
    assert_wrong(register(visitor), "access_denied", 403)


@pytest.mark.rfc("rfc7591-5-a")
def test_registrations_are_limited_per_address(opened: Open) -> None:
    visitor = opened(client_registration_rate_limit="1/hour")
    assert register(visitor).status_code == 201
    answer = register(visitor)
    assert_wrong(answer, "temporarily_unavailable", 429)
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.advisory("CVE-2026-44476")
def test_a_client_with_a_secret_must_use_it(visitor: FlaskClient) -> None:
    told = register(visitor).get_json()
    form = {"client_id": told["client_id"], "redirect_uri": CALLBACK, "code": "x"}
    for secret in ({}, {"client_secret": ""}, {"client_secret": "x"}):
        sent = {**form, **secret, "grant_type": "authorization_code"}
        assert_wrong(visitor.post("/oauth/token", data=sent), "invalid_client", 401)


@pytest.mark.advisory("CVE-2026-75866")
@pytest.mark.rfc("rfc7591-2-e")
def test_a_client_can_use_only_its_registered_grants(visitor: FlaskClient) -> None:
    said = {**GOOD, "token_endpoint_auth_method": "none", "scope": "read_user"}
    browser_only = register(visitor, said).get_json()["client_id"]
    device_only = register(visitor, {**said, "grant_types": [DEVICE]}).get_json()
    assert device_only["response_types"] == []
    form = {"client_id": browser_only, "grant_type": DEVICE, "device_code": "x"}
    assert_wrong(visitor.post("/oauth/token", data=form), "unauthorized_client")
    password = {**form, "grant_type": "password", "username": "ada", "password": "x"}
    assert_wrong(visitor.post("/oauth/token", data=password), "unauthorized_client")
    codes = {"client_id": browser_only}
    assert_wrong(visitor.post("/oauth/authorize_device", data=codes), "unauthorized_client")
    codes["client_id"] = device_only["client_id"]
    assert visitor.post("/oauth/authorize_device", data=codes).status_code == 200
    query = {"client_id": device_only["client_id"], "redirect_uri": CALLBACK, **PKCE}
    answer = visitor.get("/oauth/authorize", query_string={**query, "response_type": "code"})
    # The error is on a page, because visitors must not be redirected to URIs that anyone can
    # register.
    assert (answer.status_code, "error=unauthorized_client" in answer.text) == (400, True)


@pytest.mark.rfc("rfc9126-6-a", "rfc9449-5.2-b")
def test_a_client_can_require_dpop_and_pushed_requests_for_itself(visitor: FlaskClient) -> None:
    said = {
        **GOOD,
        "token_endpoint_auth_method": "none",
        "dpop_bound_access_tokens": True,
        "require_pushed_authorization_requests": True,
    }
    uid = register(visitor, said).get_json()["client_id"]
    query = {"client_id": uid, "redirect_uri": CALLBACK, "scope": "read_user", **PKCE}
    query["response_type"] = "code"
    answer = visitor.get("/oauth/authorize", query_string=query)
    assert (answer.status_code, "error=invalid_request" in answer.text) == (400, True)
    assert visitor.post("/oauth/par", data=query).status_code == 201
    form = {"client_id": uid, "grant_type": "refresh_token", "refresh_token": "x"}
    assert_wrong(visitor.post("/oauth/token", data=form), "invalid_dpop_proof")


@pytest.mark.rfc("rfc9126-5-b")
def test_an_instance_can_require_pushed_requests(opened: Open) -> None:
    visitor = opened(require_pushed_authorization_requests=True)
    document = visitor.get("/.well-known/oauth-authorization-server").get_json()
    assert document["require_pushed_authorization_requests"] is True
    uid = register(visitor, {**GOOD, "token_endpoint_auth_method": "none"}).get_json()["client_id"]
    query = {"client_id": uid, "redirect_uri": CALLBACK, "scope": "read_user", **PKCE}
    query["response_type"] = "code"
    refused = visitor.get("/oauth/authorize", query_string=query)
    assert (refused.status_code, "error=invalid_request" in refused.text) == (400, True)
    uri = visitor.post("/oauth/par", data=query).get_json()["request_uri"]
    taken = visitor.get("/oauth/authorize", query_string={"client_id": uid, "request_uri": uri})
    assert taken.headers["Location"].startswith("/users/sign_in")


@pytest.mark.long
@pytest.mark.both_databases
def test_unused_clients_without_an_owner_are_pruned(opened: Open) -> None:
    visitor = opened()
    idle, used = (row_of(visitor, register(visitor)) for _ in range(2))
    owned = row_of(visitor, register(visitor, headers=token_of(visitor, "ada")))
    kept = Retention(keep_deliveries=1, keep_for=timedelta(1))
    with visitor.application.app_context():
        session = db.session()
        session.execute(
            update(Application)
            .where(Application.id == used.id)
            .values(last_used_at=get_current_time())
        )
        for days, expected in ((29, {idle.id, used.id, owned.id}), (31, {used.id, owned.id})):
            later = get_current_time() + timedelta(days=days)
            prune_expired_rows(kept, session=session, now=later, commit_batch=session.commit)
            assert set(session.scalars(select(Application.id))) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("redirect_uris", "client_name", "scope", "token_endpoint_auth_method", "grant_types"),
        *("response_types", "client_uri", "contacts", "software_id"),
        *("dpop_bound_access_tokens", "client_id"),
    ]
)


@pytest.mark.long
@pytest.mark.one_database("postgres")
@bounded(35)
@given(said=st.dictionaries(NAMES, JSON, max_size=4))
def test_any_metadata_is_accepted_or_rejected_without_a_server_error(
    any_visitor: FlaskClient, said: dict[str, Any]
) -> None:
    for body in (said, {**GOOD, **said}):
        assert register(any_visitor, body).status_code in {201, 400}


@pytest.fixture
def any_visitor(opened: Open) -> FlaskClient:
    return opened()


def test_a_client_for_devices_needs_no_redirect_uri(visitor: FlaskClient) -> None:
    said = {"client_name": "Telly", "grant_types": [DEVICE], "token_endpoint_auth_method": "none"}
    answer = register(visitor, said)
    assert answer.status_code == 201, answer.text
    told = answer.get_json()
    assert told["redirect_uris"] == []
    form = {"client_id": told["client_id"], "scope": "read_user"}
    assert visitor.post("/oauth/authorize_device", data=form).status_code == 200
    query = {**form, "redirect_uri": CALLBACK, "response_type": "code", **PKCE}
    page = visitor.get("/oauth/authorize", query_string=query)
    assert (page.status_code, "Location" in page.headers) == (400, False)
    assert_wrong(visitor.post("/oauth/par", data=query), "invalid_request")
    for grants in (None, ["authorization_code", DEVICE]):
        wrong = {**said, "grant_types": grants}
        assert_wrong(register(visitor, wrong), "invalid_redirect_uri")


def test_a_client_cannot_register_redirect_uris_with_forbidden_schemes(
    visitor: FlaskClient,
) -> None:
    for scheme in ("filesystem", "view-source", "mailto", "jar", "feed", "chrome"):
        uri = f"{scheme}:https://client.example/"
        assert_wrong(register(visitor, {**GOOD, "redirect_uris": [uri]}), "invalid_redirect_uri")
