"""What counts as a parameter of the JSON endpoints, and what a challenge may hold."""

import re

import pytest
import requests

from tests.support.oauth.device_wire import ask_for_codes, television
from tests.support.oauth.oauth_wire import (
    assert_refused,
    machine,
    new_code,
    new_pair,
    redeem,
    refresh,
    revoke,
    server_application,
    token_info,
)
from tests.support.oauth.openid_wire import userinfo
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

#: RFC 6750 section 3: a scheme, and pairs whose values are quoted and hold neither quote nor
#: backslash.
CHALLENGE = re.compile(r'Bearer [a-z_]+="[^"\\]*"(, [a-z_]+="[\x20-\x21\x23-\x5B\x5D-\x7E]*")*')


@pytest.mark.rfc("rfc6749-3.2-b", "rfc8628-3.1-c")
def test_a_parameter_without_a_value_counts_as_left_out(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    code = new_code(gatebell, client)
    assert redeem(gatebell, client, code, code_verifier="", scope="").status_code == 200
    pair = new_pair(gatebell, client)
    assert refresh(gatebell, client, pair.refresh, scope="", redirect_uri="").status_code == 200
    assert revoke(gatebell, client, pair.access, token_type_hint="").status_code == 200
    assert ask_for_codes(gatebell, television(gatebell), client_secret="").status_code == 200
    code = new_code(gatebell, client)
    for name in ("grant_type", "code", "redirect_uri"):
        assert_refused(redeem(gatebell, client, code, **{name: ""}), "invalid_request")


@pytest.mark.rfc("rfc6749-3.2-b")
def test_a_parameter_that_nobody_knows_is_passed_over(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    code = new_code(gatebell, client)
    assert redeem(gatebell, client, code, audience=["x", "y"]).status_code == 200
    pair = new_pair(gatebell, client)
    assert refresh(gatebell, client, pair.refresh, resource=["x", "y"]).status_code == 200
    assert revoke(gatebell, client, pair.access, extra=["x", "y"]).status_code == 200
    assert ask_for_codes(gatebell, television(gatebell), extra=["x", "y"]).status_code == 200


@pytest.mark.rfc("rfc6750-3-b")
@pytest.mark.parametrize("token", ["x", 'a"b', "a\\b", "gba-" + "0" * 49])
def test_a_challenge_is_well_formed(gatebell: LiveGatebell, token: str) -> None:
    http = machine(gatebell)
    without = new_pair(gatebell, server_application(gatebell), scope="read_user").access
    answers: list[requests.Response] = [
        userinfo(gatebell, token),
        userinfo(gatebell, without),
        token_info(gatebell, token),
        http.get(f"{gatebell.url}/oauth/userinfo"),
        http.get(f"{gatebell.url}/oauth/token/info"),
        http.get(f"{gatebell.url}/api/v4/user", headers={"Authorization": f"Bearer {token}"}),
        http.get(f"{gatebell.url}/api/v4/user"),
        http.get(
            f"{gatebell.url}/api/v4/user",
            params={"access_token": token},
            headers={"PRIVATE-TOKEN": token},
        ),
    ]
    for answer in answers:
        assert answer.status_code in {400, 401, 403}
        challenge = answer.headers["WWW-Authenticate"]
        assert CHALLENGE.fullmatch(challenge), challenge
        names = re.findall(r"([a-z_]+)=", challenge)
        assert len(names) == len(set(names))
