"""Discovery documents in /.well-known, and the published keys with their rotation."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from flask import Flask

from tests.support.oauth.oauth_wire import machine
from tests.support.oauth.openid_wire import (
    list_key_ids,
    request_key_set,
    sign_in_to_application,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
OPENID = "/.well-known/openid-configuration"
KEYS = "/oauth/discovery/keys"


@pytest.mark.rfc("rfc8414-2-a", "rfc8414-2-c", "rfc8414-2-d", "rfc8414-3-a", "rfc8414-3.1-a")
@pytest.mark.rfc("rfc8414-3.2-a", "rfc8414-3.3-a")
@pytest.mark.rfc("rfc9207-3-a")
@pytest.mark.rfc("rfc9700-2.1.1-d", "rfc9700-2.6-a")
def test_the_metadata_of_the_authorization_server_are_complete(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(gatebell.url + SERVER)
    assert answer.headers["Content-Type"] == "application/json"
    document = answer.json()
    assert document["issuer"] == gatebell.url
    assert document["authorization_endpoint"] == f"{gatebell.url}/oauth/authorize"
    assert document["token_endpoint"] == f"{gatebell.url}/oauth/token"
    assert document["revocation_endpoint"] == f"{gatebell.url}/oauth/revoke"
    assert document["response_types_supported"] == ["code"]
    assert document["response_modes_supported"] == ["query"]
    assert {"authorization_code", "refresh_token"} <= set(document["grant_types_supported"])
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    methods = {"client_secret_basic", "client_secret_post", "private_key_jwt", "none"}
    assert set(document["token_endpoint_auth_methods_supported"]) == methods
    assert set(document["revocation_endpoint_auth_methods_supported"]) == methods
    assert {"api", "read_user"} <= set(document["scopes_supported"])


@pytest.mark.rfc("rfc8414-2-a")
def test_every_endpoint_in_the_metadata_exists(gatebell: LiveGatebell) -> None:
    document = machine(gatebell).get(gatebell.url + SERVER).json()
    for name, address in document.items():
        if name.endswith("_endpoint"):
            assert machine(gatebell).get(address).status_code != 404, name


@pytest.mark.rfc("rfc9728-2-a", "rfc9728-3.1-a", "rfc9728-3.2-a", "rfc9728-3.3-a")
def test_the_protected_resource_names_its_authorization_server(gatebell: LiveGatebell) -> None:
    for path in ("", "/api/v4"):
        answer = machine(gatebell).get(gatebell.url + RESOURCE + path)
        assert answer.headers["Content-Type"] == "application/json"
        document = answer.json()
        # The client requests this URL, and both must be equal (section 3.3).
        assert document["resource"] == gatebell.url + path
        assert document["authorization_servers"] == [gatebell.url]
        assert {"header", "query"} <= set(document["bearer_methods_supported"])
        assert {"api", "read_user"} <= set(document["scopes_supported"])


@pytest.mark.rfc("rfc8414-3.2-b", "rfc9728-3.2-a")
def test_metadata_have_no_empty_values_and_no_foreign_urls(gatebell: LiveGatebell) -> None:
    for path in (SERVER, RESOURCE, f"{RESOURCE}/api/v4", OPENID):
        document = machine(gatebell).get(gatebell.url + path).json()
        for name, value in document.items():
            assert value not in ("", [], None), name
            if isinstance(value, str) and "://" in value:
                assert value == gatebell.url or value.startswith(f"{gatebell.url}/"), name


@pytest.mark.spec("D5")
@pytest.mark.parametrize("path", [SERVER, RESOURCE, OPENID, KEYS])
def test_scripts_of_any_origin_can_read_and_cache_the_metadata(
    gatebell: LiveGatebell, path: str
) -> None:
    answer = machine(gatebell).get(gatebell.url + path, headers={"Origin": "https://a.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert "Set-Cookie" not in answer.headers
    assert "Cookie" not in answer.headers.get("Vary", "")


@pytest.mark.advisory("CVE-2023-49097")
@pytest.mark.rfc("rfc8414-6.2-a", "rfc9207-2-c", "rfc9700-4.13-a", "rfc9728-7.3-a")
@pytest.mark.parametrize("path", [SERVER, RESOURCE])
def test_forged_headers_do_not_change_the_urls(gatebell: LiveGatebell, path: str) -> None:
    forged = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example",
    }
    answer = machine(gatebell).get(gatebell.url + path, headers=forged)
    assert "evil" not in answer.text
    assert answer.json() == machine(gatebell).get(gatebell.url + path).json()


@pytest.mark.rfc("rfc8414-2-a", "oidc-core-8-a")
def test_oidcc_discovery_endpoint_verification(gatebell: LiveGatebell) -> None:
    """Repeat the only module of `oidcc-config-certification-test-plan`."""
    answer = machine(gatebell).get(gatebell.url + OPENID)
    assert answer.headers["Content-Type"] == "application/json"
    document = answer.json()
    assert f"{document['issuer']}{OPENID}" == answer.url
    assert document["response_types_supported"] == ["code"]
    assert document["subject_types_supported"] == ["public"]
    assert document["id_token_signing_alg_values_supported"] == ["RS256"]
    assert "authorization_code" in document["grant_types_supported"]
    assert "openid" in document["scopes_supported"]
    assert {"sub", "iss", "auth_time", "acr"} <= set(document["claims_supported"])
    addresses = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
    assert all(document[name].startswith(f"{gatebell.url}/") for name in addresses)
    keys = machine(gatebell).get(document["jwks_uri"]).json()["keys"]
    assert keys
    assert all(key["kty"] == "RSA" and key["kid"] and "d" not in key for key in keys)


# Keys.


CROWD = 8


@pytest.mark.spec("D5")
@pytest.mark.rfc("oidc-core-10.1-a")
def test_the_key_set_holds_public_keys_only(gatebell: LiveGatebell) -> None:
    answer = request_key_set(gatebell)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    keys = answer.json()["keys"]
    assert keys
    for key in keys:
        assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")


@pytest.mark.spec("D6")
@pytest.mark.parametrize("release", ["16.11", "9.0"])
def test_the_old_url_of_the_keys_answers_before_17_0(gatebell: LiveGatebell, release: str) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/jwks", headers={"Platform-Release": release})
    assert answer.status_code == 200
    assert answer.json() == request_key_set(gatebell).json()
    assert "Platform-Release" in answer.headers["Vary"]


@pytest.mark.spec("D6")
@pytest.mark.parametrize("release", [None, "17.0", "18.0"])
def test_the_old_url_of_the_keys_is_not_found_since_17_0(
    gatebell: LiveGatebell, release: str | None
) -> None:
    answer = machine(gatebell).get(
        f"{gatebell.url}/-/jwks", headers={"Platform-Release": release} if release else None
    )
    assert answer.status_code == 404
    assert "/oauth/discovery/keys" in answer.json()["message"]


@pytest.mark.parametrize("release", ["x", "17", "17.0.0", "-1.0"])
def test_an_invalid_release_in_the_header_is_rejected(gatebell: LiveGatebell, release: str) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/jwks", headers={"Platform-Release": release})
    assert answer.status_code == 400
    assert "Platform-Release" in answer.json()["message"]


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("D5")
@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_tokens_of_an_old_key_stay_valid_after_a_rotation(gatebell: LiveGatebell) -> None:
    before = sign_in_to_application(gatebell)
    answer = gatebell.cli("keys", "rotate", "--handover", "at-once")
    after = sign_in_to_application(gatebell)
    assert after.header["kid"] == answer["kid"] != before.header["kid"]
    assert [key["kid"] for key in answer["keys"]] == list_key_ids(gatebell)
    assert verify_id_token(gatebell, before.text).claims == before.claims


@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_a_rotation_publishes_a_new_key_before_it_signs(gatebell: LiveGatebell) -> None:
    before = sign_in_to_application(gatebell)
    new = gatebell.cli("keys", "rotate")["kid"]
    assert list_key_ids(gatebell)[-1] == new
    assert sign_in_to_application(gatebell).header["kid"] == before.header["kid"]
    listed = gatebell.cli("keys", "list")["keys"]
    assert [key["kid"] for key in listed] == list_key_ids(gatebell)
    assert listed[-1]["retired_at"] is None
    assert listed[-2]["retired_at"] is not None


def test_a_leaked_key_is_withdrawn(gatebell: LiveGatebell) -> None:
    sign_in_to_application(gatebell)
    new = gatebell.cli("keys", "rotate", "--handover", "old-keys-leaked")["kid"]
    assert list_key_ids(gatebell) == [new]
    assert sign_in_to_application(gatebell).header["kid"] == new


@pytest.mark.spec("L5")
def test_the_command_rejects_key_sizes_out_of_range(gatebell: LiveGatebell) -> None:
    before = list_key_ids(gatebell)
    done = gatebell.run_cli("keys", "rotate", "--bits", "8200")
    assert done.returncode == 1
    assert "2048 to 8192" in done.stderr
    assert list_key_ids(gatebell) == before


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("D5")
def test_concurrent_first_requests_get_the_same_key(app: Flask) -> None:
    start = Barrier(CROWD)

    def ask(_number: int) -> tuple[int, str]:
        visitor = app.test_client()
        start.wait(60)
        answer = visitor.get("/oauth/discovery/keys")
        return answer.status_code, answer.text

    with ThreadPoolExecutor(CROWD) as crowd:
        answers = set(crowd.map(ask, range(CROWD)))

    ((status, text),) = answers
    assert status == 200
    assert len(json.loads(text)["keys"]) == 1
