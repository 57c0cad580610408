"""JSON objects in the place of forms, at every endpoint that clients post to."""

import json
from typing import Any

import pytest
import requests

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.device_wire import television
from tests.support.oauth.oauth_wire import (
    assert_refused,
    is_live,
    machine,
    new_code,
    new_pair,
    pair_in,
    server_application,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

ENDPOINTS = ("token", "authorize_device", "revoke", "introspect", "par")
#: Bodies that are no object of texts, and what the answer says of them.
BAD: tuple[tuple[str | bytes, str], ...] = (
    ("", "is not JSON"),
    ("{", "is not JSON"),
    ("{}{}", "is not JSON"),
    ("[" * 30_000, "is not JSON"),
    ('{"a": NaN}', "is not JSON"),
    (b"\xff\xfe{\x00}\x00", "is not JSON"),
    (b'{"grant_type": "\xff"}', "is not JSON"),
    ("[]", "must be a JSON object"),
    ('[["grant_type", "password"]]', "must be a JSON object"),
    ("null", "must be a JSON object"),
    ('"grant_type=password"', "must be a JSON object"),
    ("5", "must be a JSON object"),
    ('{"grant_type": "password", "grant_type": "password"}', "grant_type is given more than once"),
    ('{"token": 5}', "token must be a string"),
    ('{"token": true}', "token must be a string"),
    ('{"token": {"a": "b"}}', "token must be a string"),
    ('{"token": []}', "token must be a string"),
    ('{"token": ["a"]}', "token must be a string"),
    ('{"token": "\\ud800"}', "token must be a string"),
    ('{"\\"\\u00e9\\ud800": 1}', "??? must be a string"),
)


def proof_of(client: ClientCredentials) -> dict[str, str]:
    return {"client_id": client.client_id, "client_secret": client.secret}


def send(
    gatebell: LiveGatebell, endpoint: str, body: Any, kind: str = "application/json"
) -> requests.Response:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return machine(gatebell).post(
        f"{gatebell.url}/oauth/{endpoint}", data=content, headers={"Content-Type": kind}
    )


def test_a_client_that_speaks_json_gets_renews_looks_at_and_revokes_its_tokens(
    gatebell: LiveGatebell,
) -> None:
    client = server_application(gatebell)
    redemption = {
        **proof_of(client),
        "grant_type": "authorization_code",
        "code": new_code(gatebell, client),
        "redirect_uri": client.redirect_uri,
        "code_verifier": None,  # the same as absent
    }
    pair = pair_in(send(gatebell, "token", redemption))
    renewal = {"grant_type": "refresh_token", "refresh_token": pair.refresh, **proof_of(client)}
    pair = pair_in(send(gatebell, "token", renewal, "application/json; charset=utf-8"))
    token = {**proof_of(client), "token": pair.access}
    assert send(gatebell, "introspect", token).json()["active"] is True
    assert send(gatebell, "revoke", token).json() == {}
    assert not is_live(gatebell, pair.access)


def test_devices_and_pushed_requests_come_as_json_too(gatebell: LiveGatebell) -> None:
    device = {"client_id": television(gatebell).client_id, "scope": "read_user"}
    assert send(gatebell, "authorize_device", device).json()["user_code"]
    client = server_application(gatebell)
    push = {
        **proof_of(client),
        "response_type": "code",
        "redirect_uri": client.redirect_uri,
        "scope": "read_user",
    }
    answer = send(gatebell, "par", push)
    assert (answer.status_code, answer.json()["expires_in"]) == (201, 90)


def test_basic_stands_beside_a_json_body(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/introspect",
        json={"token": pair.access},
        auth=(client.client_id, client.secret),
    )
    assert answer.json()["active"] is True


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_what_is_no_object_of_texts_is_refused_and_said_to_be(
    gatebell: LiveGatebell, endpoint: str
) -> None:
    for body, sentence in BAD:
        answer = send(gatebell, endpoint, body)
        assert_refused(answer, "invalid_request")
        assert sentence in answer.json()["error_description"], body


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_body_that_is_too_large_is_refused(gatebell: LiveGatebell, endpoint: str) -> None:
    answer = send(gatebell, endpoint, {"token": "x" * 70_000})
    assert (answer.status_code, answer.json()["error"]) == (413, "invalid_request")


def test_what_a_json_body_says_in_the_address_does_not_count(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client)
    answer = send(gatebell, f"revoke?token={pair.access}", proof_of(client))
    assert_refused(answer, "invalid_request")
    assert is_live(gatebell, pair.access)
