"""How clients prove who they are at the token endpoint."""

import base64

import pytest
import requests

from tests.support.accounts.people import ClientCredentials, bob, make_application
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    assert_refused,
    new_code,
    post_token,
    redeem,
    redeem_publicly,
    told,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

BASIC = 'Basic realm="Gatebell", charset="UTF-8"'


def redeem_with(
    gatebell: LiveGatebell, client: ClientCredentials, header: str, **more: str
) -> requests.Response:
    """Redeem a good code with this Authorization header."""
    form = {
        "grant_type": "authorization_code",
        "code": new_code(gatebell, client, **PKCE),
        "redirect_uri": client.redirect_uri,
        "code_verifier": VERIFIER,
        **more,
    }
    return post_token(gatebell, form, headers={"Authorization": header})


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


@pytest.mark.spec("B2")
@pytest.mark.rfc("rfc6749-2.3-a", "rfc6749-2.3.1-a")
def test_the_secret_may_come_in_a_basic_header(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    assert redeem_with(gatebell, client, header).status_code == 200
    assert redeem_with(gatebell, client, header.replace("Basic", "bAsIc")).status_code == 200


def test_the_id_may_be_repeated_in_the_body_if_it_is_the_same(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    same = redeem_with(gatebell, client, header, client_id=client.client_id)
    assert same.status_code == 200
    other = redeem_with(gatebell, client, header, client_id="0" * 64)
    assert_refused(other, "invalid_request")


@pytest.mark.rfc("rfc6749-2.3-b")
def test_two_ways_at_once_are_an_invalid_request_even_if_both_are_right(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    answer = redeem_with(gatebell, client, header, client_secret=client.secret)
    assert_refused(answer, "invalid_request")


@pytest.mark.spec("B1")
@pytest.mark.rfc("rfc8252-8.4-c")
def test_basic_with_an_empty_password_counts_as_none(
    gatebell: LiveGatebell, client: ClientCredentials, phone: ClientCredentials
) -> None:
    assert redeem_with(gatebell, phone, basic(phone.client_id, "")).status_code == 200
    header = basic(client.client_id, "")
    assert_refused(redeem_with(gatebell, client, header), "invalid_client", 401)
    with_secret = redeem_with(gatebell, client, header, client_secret=client.secret)
    assert with_secret.status_code == 200


def test_a_wrong_secret_fails_even_for_a_public_client(
    gatebell: LiveGatebell, client: ClientCredentials, phone: ClientCredentials
) -> None:
    code = new_code(gatebell, phone, **PKCE)
    for wrong in ("wrong", client.secret):
        answer = redeem_publicly(gatebell, phone, code, client_secret=wrong)
        assert_refused(answer, "invalid_client", 401)
    header = basic(phone.client_id, "wrong")
    assert_refused(redeem_with(gatebell, phone, header), "invalid_client", 401)
    assert redeem_publicly(gatebell, phone, code).status_code == 200


@pytest.mark.rfc("rfc6749-2.1-a", "rfc6749-2.2-a", "rfc6749-2.3-a", "rfc6749-3.2.1-a")
@pytest.mark.rfc("rfc6749-4.1.3-b")
@pytest.mark.rfc("rfc9700-2.5-a")
@pytest.mark.parametrize("secret", [None, "", "wrong", "gbs-" + "0" * 49, "\x00", "é", "x" * 9000])
def test_a_client_that_has_a_secret_must_know_it(
    gatebell: LiveGatebell, client: ClientCredentials, secret: str | None
) -> None:
    code = new_code(gatebell, client)
    answer = redeem(gatebell, client, code, client_secret=secret)
    assert_refused(answer, "invalid_client", 401)
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.rfc("rfc6749-4.1.3-c", "rfc6749-5.2-b")
@pytest.mark.parametrize("client_id", ["0" * 64, "\x00", "é", "x" * 9000])
def test_an_unknown_client_and_a_wrong_secret_look_alike(
    gatebell: LiveGatebell, client: ClientCredentials, client_id: str | None
) -> None:
    unknown = redeem(gatebell, client, "gbc-x", client_id=client_id)
    wrong = redeem(gatebell, client, "gbc-x", client_secret="gbs-x")
    assert_refused(unknown, "invalid_client", 401)
    assert told(unknown) == told(wrong)


@pytest.mark.rfc("rfc6749-5.2-b")
@pytest.mark.parametrize(
    "header",
    [
        "Basic",
        "Basic ",
        "Basic %%%",
        "Basic " + base64.b64encode(b"no colon").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        "Basic " + base64.b64encode(b"a\x00b:c").decode(),
        "Basic " + base64.b64encode(b":").decode(),
        basic("0" * 64, "gbs-x"),
        basic("%00", "%ff"),
        basic("0" * 64, "gbs-x") + ", " + basic("1" * 64, "gbs-x"),
    ],
)
def test_a_basic_header_that_proves_nothing_is_answered_with_a_challenge(
    gatebell: LiveGatebell, client: ClientCredentials, header: str
) -> None:
    answer = redeem_with(gatebell, client, header)
    assert_refused(answer, "invalid_client", 401)
    assert answer.headers["WWW-Authenticate"] == BASIC


@pytest.mark.parametrize("header", ["Bearer x", "Digest x", "\xe9", ""])
def test_other_headers_count_as_none(
    gatebell: LiveGatebell, phone: ClientCredentials, header: str
) -> None:
    answer = redeem_with(gatebell, phone, header, client_id=phone.client_id)
    assert answer.status_code == 200


@pytest.mark.rfc("rfc6749-2.3.1-a")
def test_a_secret_with_reserved_characters_is_form_decoded(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    encoded = client.secret.replace("-", "%2D")
    assert redeem_with(gatebell, client, basic(client.client_id, encoded)).status_code == 200


def test_a_public_client_that_has_its_secret_may_use_it(gatebell: LiveGatebell) -> None:
    phone = make_application(gatebell, bob(gatebell), confidential=False, trusted=True)
    code = new_code(gatebell, phone, **PKCE)
    assert redeem(gatebell, phone, code, code_verifier=VERIFIER).status_code == 200
