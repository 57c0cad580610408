"""Tokens that are bound to a key (RFC 9449), over HTTP."""

from functools import cache
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.oauth.client_jwts import CLIENT_JWT_ALGORITHMS
from models import Application
from tests.support.accounts.people import (
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    signed_in,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.device_wire import codes, enter_code, poll_form, press_decision
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    TokenPair,
    assert_refused,
    machine,
    new_code,
    new_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    phone_application,
    post_token,
    server_application,
    token_info,
)
from tests.support.oauth.proofs import ABSENT, Prover, redeem_with_key, refresh_with_key, show_at
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

USER = "/api/v4/user"


@cache
def prover() -> Prover:
    """Return a key that tests share."""
    return Prover()


def phone_code(gatebell: LiveGatebell, **changes: str) -> str:
    return new_code(gatebell, phone_application(gatebell), **PKCE, **changes)


def bound_pair(gatebell: LiveGatebell, key: Prover) -> TokenPair:
    phone = phone_application(gatebell)
    return parse_token_pair(redeem_with_key(gatebell, phone, phone_code(gatebell), key))


def assert_challenged(answer: requests.Response, error: str) -> None:
    assert answer.status_code == 401, answer.text
    assert answer.json()["error"] == error
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith("DPoP ")
    assert f'error="{error}"' in challenge
    assert f'algs="{" ".join(CLIENT_JWT_ALGORITHMS)}"' in challenge


@pytest.mark.rfc("rfc9449-5-a", "rfc9449-5-b", "rfc9449-7.1-a", "rfc9449-4.3-f", "rfc9700-2.2.1-a")
@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512", "Ed25519", "PS256", "RS256"])
def test_a_token_is_bound_to_the_key_of_the_proof(gatebell: LiveGatebell, algorithm: str) -> None:
    key = Prover.with_algorithm(algorithm)
    pair = bound_pair(gatebell, key)
    assert pair.answer["token_type"] == "DPoP"
    shown = show_at(gatebell, USER, key.showing(pair.access, gatebell.url + USER))
    assert shown.json()["username"] == alice(gatebell).username
    info = "/oauth/token/info"
    assert show_at(gatebell, info, key.showing(pair.access, gatebell.url + info)).ok


@pytest.mark.rfc("rfc9449-5-c")
def test_a_token_without_a_proof_is_a_bearer_token(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, server_application(gatebell))
    assert pair.answer["token_type"] == "bearer"
    assert token_info(gatebell, pair.access).ok


@pytest.mark.rfc("rfc9449-7.1-b", "rfc9449-4.3-j")
def test_userinfo_accepts_a_bound_token(gatebell: LiveGatebell) -> None:
    client = make_application(
        gatebell, bob(gatebell), scopes="openid", trusted=True, confidential=False
    )
    pair = parse_token_pair(
        redeem_with_key(gatebell, client, new_code(gatebell, client, **PKCE), prover())
    )
    url = f"{gatebell.url}/oauth/userinfo"
    for method in ("GET", "POST"):
        headers = prover().showing(pair.access, url, method=method)
        assert machine(gatebell).request(method, url, headers=headers).json()["sub"]
    headers = prover().showing(pair.access, url, method="GET")
    assert_challenged(machine(gatebell).post(url, headers=headers), "invalid_dpop_proof")


@pytest.mark.rfc("rfc9449-7.2-a")
def test_a_bound_token_is_rejected_as_a_bearer_token(gatebell: LiveGatebell) -> None:
    token = bound_pair(gatebell, prover()).access
    bearer = {"Authorization": f"Bearer {token}"}
    with_proof = prover().showing(token, gatebell.url + USER, scheme="Bearer")
    for headers in (bearer, with_proof, {"PRIVATE-TOKEN": token}):
        assert_challenged(show_at(gatebell, USER, headers), "invalid_token")
    assert_challenged(show_at(gatebell, f"{USER}?access_token={token}", {}), "invalid_token")
    assert_challenged(token_info(gatebell, token), "invalid_token")
    for method in ("GET", "POST"):
        url = f"{gatebell.url}/oauth/userinfo"
        assert_challenged(machine(gatebell).request(method, url, headers=bearer), "invalid_token")


@pytest.mark.rfc("rfc9449-7.1-c")
def test_an_unbound_token_is_rejected_with_the_dpop_scheme(gatebell: LiveGatebell) -> None:
    ordinary = new_pair(gatebell, server_application(gatebell)).access
    personal = make_token(gatebell, bob(gatebell)).clear
    for token in (ordinary, personal):
        headers = prover().showing(token, gatebell.url + USER)
        assert_challenged(show_at(gatebell, USER, headers), "invalid_token")


@pytest.mark.rfc("rfc9700-4.9.3-a")
@pytest.mark.advisory("CVE-2024-49755")
@pytest.mark.rfc("rfc9449-7.1-d", "rfc9449-4.3-k")
def test_a_bound_token_is_rejected_without_its_key(gatebell: LiveGatebell) -> None:
    token = bound_pair(gatebell, prover()).access
    url = gatebell.url + USER
    thief = Prover().showing(token, url)
    assert_challenged(show_at(gatebell, USER, thief), "invalid_token")
    alone = {"Authorization": f"DPoP {token}"}
    assert_challenged(show_at(gatebell, USER, alone), "invalid_dpop_proof")


@pytest.mark.rfc("rfc9449-4.3-k", "rfc9449-7-a")
@pytest.mark.parametrize("claims", [{"ath": ABSENT}, {"ath": "x"}, {"ath": None}, {"htm": "POST"}])
def test_a_proof_for_another_request_is_rejected(
    gatebell: LiveGatebell, claims: dict[str, Any]
) -> None:
    token = bound_pair(gatebell, prover()).access
    headers = prover().showing(token, gatebell.url + USER, **claims)
    assert_challenged(show_at(gatebell, USER, headers), "invalid_dpop_proof")


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-11.1-a")
def test_a_proof_cannot_be_used_twice(gatebell: LiveGatebell) -> None:
    token = bound_pair(gatebell, prover()).access
    headers = prover().showing(token, gatebell.url + USER)
    assert show_at(gatebell, USER, headers).ok
    assert_challenged(show_at(gatebell, USER, headers), "invalid_dpop_proof")


@pytest.mark.rfc("rfc9449-4.3-h")
def test_equivalent_spellings_of_a_url_are_accepted_in_a_proof(gatebell: LiveGatebell) -> None:
    token = bound_pair(gatebell, prover()).access
    host = gatebell.url.removeprefix("http://")
    for url in (f"HTTP://{host}{USER}?page=2#top", f"http://{host}/api/v4/%75ser"):
        assert show_at(gatebell, f"{USER}?page=2", prover().showing(token, url)).ok
    others: tuple[Any, ...] = (
        f"https://{host}{USER}",
        f"http://x@{host}{USER}/",
        "http://127.0.0.1/",
        USER,
        5,
        [],
    )
    for other in others:
        headers = prover().showing(token, gatebell.url, htu=other)
        assert_challenged(show_at(gatebell, USER, headers), "invalid_dpop_proof")


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_a_proof_for_a_url_with_an_encoded_slash_is_accepted(
    gatebell: LiveGatebell, slash: str
) -> None:
    path = make_project(gatebell, alice(gatebell))
    code = phone_code(gatebell, scope="read_api")
    token = parse_token_pair(
        redeem_with_key(gatebell, phone_application(gatebell), code, prover())
    ).access
    address = f"/api/v4/projects/{path.replace('/', slash)}"
    shown = show_at(gatebell, address, prover().showing(token, gatebell.url + address))
    assert shown.json()["path_with_namespace"] == path
    other = prover().showing(token, f"{gatebell.url}/api/v4/projects/{path}x")
    assert_challenged(show_at(gatebell, address, other), "invalid_dpop_proof")


def test_a_proof_must_name_the_configured_url_and_not_the_host_header(
    gatebell: LiveGatebell,
) -> None:
    token = bound_pair(gatebell, prover()).access
    forged = {"Host": "evil.example"}
    headers = prover().showing(token, f"http://evil.example{USER}") | forged
    assert_challenged(show_at(gatebell, USER, headers), "invalid_dpop_proof")
    assert show_at(gatebell, USER, prover().showing(token, gatebell.url + USER) | forged).ok


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-5-d")
def test_the_refresh_token_of_a_public_client_is_bound(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    pair = bound_pair(gatebell, prover())
    for thief in (None, Prover()):
        answer = refresh_with_key(gatebell, phone, pair.refresh, thief)
        assert_refused(answer, "invalid_grant")
    again = parse_token_pair(refresh_with_key(gatebell, phone, pair.refresh, prover()))
    assert again.answer["token_type"] == "DPoP"
    assert_refused(refresh_with_key(gatebell, phone, again.refresh, None), "invalid_grant")


@pytest.mark.rfc("rfc9449-5-e")
def test_a_client_with_a_secret_may_change_its_key(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    auth = (client.client_id, client.secret)
    form = {"grant_type": "refresh_token", "refresh_token": new_pair(gatebell, client).refresh}
    for key in (Prover(), Prover()):
        headers = key.for_token(gatebell)
        pair = parse_token_pair(post_token(gatebell, form, auth=auth, headers=headers))
        assert pair.answer["token_type"] == "DPoP"
        assert show_at(gatebell, USER, key.showing(pair.access, gatebell.url + USER)).ok
        form["refresh_token"] = pair.refresh
    # Without a proof, the bound token would become a bearer token.
    assert_refused(post_token(gatebell, form, auth=auth), "invalid_grant")
    headers = Prover().for_token(gatebell)
    assert post_token(gatebell, form, auth=auth, headers=headers).ok


@pytest.mark.rfc("rfc9449-10-a", "rfc9449-10-b")
def test_an_authorization_code_can_be_bound_to_a_key(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    code = phone_code(gatebell, dpop_jkt=prover().thumbprint)
    assert_refused(redeem_with_key(gatebell, phone, code, Prover()), "invalid_grant")
    form = {"grant_type": "authorization_code", "client_id": phone.client_id, "code": code}
    form |= {"redirect_uri": phone.redirect_uri, "code_verifier": VERIFIER}
    assert_refused(post_token(gatebell, form), "invalid_grant")
    assert redeem_with_key(gatebell, phone, code, prover()).ok


@pytest.mark.parametrize("thumbprint", ["x", "x" * 44, "é" * 43, "a" * 42 + "=", "\x00" * 43])
def test_an_invalid_thumbprint_is_rejected(gatebell: LiveGatebell, thumbprint: str) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(
        browser, gatebell, phone_application(gatebell), **PKCE, dpop_jkt=thumbprint
    )
    assert parse_redirect(answer)["error"] == "invalid_request"


@pytest.mark.rfc("rfc9449-5-f")
def test_device_and_password_grants_issue_bound_tokens(gatebell: LiveGatebell) -> None:
    television = make_application(gatebell, bob(gatebell), confidential=False)
    told = codes(gatebell, television)
    browser = signed_in(gatebell, alice(gatebell))
    press_decision(browser, enter_code(browser, gatebell, told["user_code"]), "approve")
    device = poll_form(television, told["device_code"])
    person = alice(gatebell)
    password = {"grant_type": "password", "username": person.username, "password": person.password}
    for form in (device, password):
        answer = post_token(gatebell, form, headers=prover().for_token(gatebell)).json()
        assert answer["token_type"] == "DPoP"
        headers = prover().showing(answer["access_token"], gatebell.url + USER)
        assert show_at(gatebell, USER, headers).ok


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-6.2-a")
def test_introspection_returns_the_thumbprint_of_the_key(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    form = {
        "grant_type": "authorization_code",
        "code": new_code(gatebell, client),
        "redirect_uri": client.redirect_uri,
    }
    auth = (client.client_id, client.secret)
    headers = prover().for_token(gatebell)
    pair = parse_token_pair(post_token(gatebell, form, auth=auth, headers=headers))
    url = f"{gatebell.url}/oauth/introspect"
    said = machine(gatebell).post(url, data={"token": pair.access}, auth=auth).json()
    assert said["token_type"] == "DPoP"
    assert said["cnf"] == {"jkt": prover().thumbprint}
    ordinary = new_pair(gatebell, client).access
    said = machine(gatebell).post(url, data={"token": ordinary}, auth=auth).json()
    assert (said["token_type"], "cnf" in said) == ("bearer", False)


@pytest.mark.rfc("rfc9449-5.2-a")
def test_an_application_can_require_bound_tokens(gatebell: LiveGatebell) -> None:
    phone = make_application(gatebell, bob(gatebell), confidential=False, trusted=True)
    with database_of(gatebell) as session:
        row = Application.uid == phone.client_id
        session.execute(update(Application).where(row).values(require_dpop=True))
    code = new_code(gatebell, phone, **PKCE)
    form = {"grant_type": "authorization_code", "client_id": phone.client_id, "code": code}
    form |= {"redirect_uri": phone.redirect_uri, "code_verifier": VERIFIER}
    assert_refused(post_token(gatebell, form), "invalid_dpop_proof")
    pair = parse_token_pair(redeem_with_key(gatebell, phone, code, prover()))
    assert pair.answer["token_type"] == "DPoP"


@pytest.mark.both_databases
@pytest.mark.rfc("rfc9449-5-g", "rfc9449-11.1-b")
def test_a_reused_proof_is_rejected_without_spending_the_code(
    gatebell: LiveGatebell,
) -> None:
    phone = phone_application(gatebell)
    headers = prover().for_token(gatebell)
    form = {"grant_type": "authorization_code", "client_id": phone.client_id}
    form |= {"redirect_uri": phone.redirect_uri, "code_verifier": VERIFIER}
    first, second = phone_code(gatebell), phone_code(gatebell)
    assert post_token(gatebell, {**form, "code": first}, headers=headers).ok
    refused = post_token(gatebell, {**form, "code": second}, headers=headers)
    assert_refused(refused, "invalid_dpop_proof")
    assert redeem_with_key(gatebell, phone, second, prover()).ok
