"""The published keys, and what becomes of them when they are rotated."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from flask import Flask

from tests.support.oauth.oauth_wire import machine
from tests.support.oauth.openid_wire import checked, keys_at, kids_of, sign_in_with
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

CROWD = 8


@pytest.mark.spec("D5")
@pytest.mark.rfc("oidc-core-10.1-a")
def test_the_key_set_holds_public_keys_only(gatebell: LiveGatebell) -> None:
    answer = keys_at(gatebell)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    keys = answer.json()["keys"]
    assert keys
    for key in keys:
        assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")


@pytest.mark.spec("D5")
def test_the_key_set_may_be_kept_and_read_by_scripts_of_any_origin(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(
        f"{gatebell.url}/oauth/discovery/keys", headers={"Origin": "https://a.example"}
    )
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Set-Cookie" not in answer.headers
    assert "Cookie" not in answer.headers.get("Vary", "")


@pytest.mark.spec("D6")
@pytest.mark.parametrize("release", ["16.11", "9.0"])
def test_the_older_address_answers_the_same_before_17_0(
    gatebell: LiveGatebell, release: str
) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/jwks", headers={"Platform-Release": release})
    assert answer.status_code == 200
    assert answer.json() == keys_at(gatebell).json()
    assert "Platform-Release" in answer.headers["Vary"]


@pytest.mark.spec("D6")
@pytest.mark.parametrize("release", [None, "17.0", "18.0"])
def test_the_older_address_is_gone_from_17_0(gatebell: LiveGatebell, release: str | None) -> None:
    answer = machine(gatebell).get(
        f"{gatebell.url}/-/jwks", headers={"Platform-Release": release} if release else None
    )
    assert answer.status_code == 404
    assert "/oauth/discovery/keys" in answer.json()["message"]


@pytest.mark.parametrize("release", ["x", "17", "17.0.0", "-1.0"])
def test_a_release_that_is_none_cannot_be_rehearsed(gatebell: LiveGatebell, release: str) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/jwks", headers={"Platform-Release": release})
    assert answer.status_code == 400
    assert "Platform-Release" in answer.json()["message"]


@pytest.mark.both_databases
@pytest.mark.spec("D5")
@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_what_an_old_key_signed_is_still_good_after_a_rotation(gatebell: LiveGatebell) -> None:
    before = sign_in_with(gatebell)
    answer = gatebell.cli("keys", "rotate", "--handover", "at-once")
    after = sign_in_with(gatebell)
    assert after.header["kid"] == answer["kid"] != before.header["kid"]
    assert [key["kid"] for key in answer["keys"]] == kids_of(gatebell)
    assert checked(gatebell, before.text).claims == before.claims


@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_a_new_key_is_published_and_does_not_sign_yet(gatebell: LiveGatebell) -> None:
    before = sign_in_with(gatebell)
    new = gatebell.cli("keys", "rotate")["kid"]
    assert kids_of(gatebell)[-1] == new
    assert sign_in_with(gatebell).header["kid"] == before.header["kid"]
    listed = gatebell.cli("keys", "list")["keys"]
    assert [key["kid"] for key in listed] == kids_of(gatebell)
    assert listed[-1]["retired_at"] is None
    assert listed[-2]["retired_at"] is not None


def test_a_leaked_key_is_withdrawn(gatebell: LiveGatebell) -> None:
    sign_in_with(gatebell)
    new = gatebell.cli("keys", "rotate", "--handover", "old-keys-leaked")["kid"]
    assert kids_of(gatebell) == [new]
    assert sign_in_with(gatebell).header["kid"] == new


@pytest.mark.spec("L5")
def test_an_operator_cannot_make_a_key_of_any_size(gatebell: LiveGatebell) -> None:
    before = kids_of(gatebell)
    done = gatebell.run_cli("keys", "rotate", "--bits", "8200")
    assert done.returncode == 1
    assert "2048 to 8192" in done.stderr
    assert kids_of(gatebell) == before


@pytest.mark.both_databases
@pytest.mark.spec("D5")
def test_many_who_ask_first_at_once_get_one_and_the_same_key(app: Flask) -> None:
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
