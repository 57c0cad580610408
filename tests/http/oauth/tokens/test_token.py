"""The authorization code grant: parameters, code challenges, and client authentication."""

import base64
import json
import re
from datetime import timedelta
from time import time

import pytest
import requests
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from sqlalchemy import update

from models import Authorization
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    set_state,
    signed_in,
)
from tests.support.oauth.device_wire import request_device_codes, television
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    Changes,
    assert_refused,
    is_token_valid,
    machine,
    new_code,
    new_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    read_error_text,
    redeem,
    redeem_publicly,
    refresh,
    revoke,
    server_application,
    token_info,
)
from tests.support.oauth.openid_wire import request_userinfo
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.both_databases
@pytest.mark.spec("B2", "B4")
@pytest.mark.rfc("rfc6749-2.3.1-b", "rfc6749-4.1.4-a", "rfc6749-5.1-a", "rfc6749-5.1-b")
@pytest.mark.rfc("rfc6749-5.1-c")
@pytest.mark.rfc("rfc7636-5-a")
def test_a_code_is_exchanged_for_a_pair_of_tokens(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    answer = redeem(gatebell, client, new_code(gatebell, client))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Pragma"] == "no-cache"
    body = answer.json()
    assert body.pop("access_token").startswith("gba-")
    assert body.pop("refresh_token").startswith("gbr-")
    assert abs(body.pop("created_at") - time()) < 60
    assert body == {"token_type": "bearer", "expires_in": 7200, "scope": "read_api read_user"}


@pytest.mark.rfc("rfc6750-5.3-a")
def test_the_token_endpoint_sets_no_cookie(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    answer = redeem(gatebell, client, new_code(gatebell, client))
    assert "Set-Cookie" not in answer.headers
    assert "Cookie" not in answer.headers.get("Vary", "")


@pytest.mark.spec("A5")
@pytest.mark.rfc("rfc6749-3.3-b", "rfc6750-5.2-b", "rfc9700-2.3-a")
def test_the_token_has_only_the_approved_scopes(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    assert new_pair(gatebell, client, scope="read_user").answer["scope"] == "read_user"


@pytest.mark.both_databases
@pytest.mark.spec("B1")
@pytest.mark.rfc("rfc6749-2.1-a", "rfc8252-8.1-a", "rfc8252-8.4-a", "oidc-core-9-a")
def test_a_public_client_needs_only_the_verifier(
    gatebell: LiveGatebell, phone: ClientCredentials
) -> None:
    answer = redeem_publicly(gatebell, phone, new_code(gatebell, phone, **PKCE))
    assert is_token_valid(gatebell, parse_token_pair(answer).access)


WRONG: tuple[tuple[dict[str, Changes], str], ...] = (
    ({"redirect_uri": "https://client.example/callback/"}, "invalid_grant"),
    ({"redirect_uri": "https://evil.example/"}, "invalid_grant"),
    ({"redirect_uri": None}, "invalid_request"),
    ({"code": None}, "invalid_request"),
    ({"code": ""}, "invalid_request"),
    ({"code": "gbc-nonsense"}, "invalid_grant"),
    ({"code": "gbc-" + "0" * 49}, "invalid_grant"),
    ({"code": ["x", "y"]}, "invalid_request"),
    ({"grant_type": None}, "invalid_request"),
    ({"grant_type": ["authorization_code", "authorization_code"]}, "invalid_request"),
    ({"grant_type": "implicit"}, "unsupported_grant_type"),
    ({"grant_type": 'a"\\\x00é'}, "unsupported_grant_type"),
    ({"code_verifier": VERIFIER}, "invalid_grant"),
    ({"client_id": ["a", "b"]}, "invalid_request"),
)


@pytest.mark.advisory("CVE-2025-4144")
@pytest.mark.spec("B3", "B11", "B12")
@pytest.mark.rfc("rfc6749-3.2-b", "rfc6749-4.1.2-e", "rfc6749-4.1.2.1-g", "rfc6749-4.1.3-a")
@pytest.mark.rfc("rfc6749-4.1.3-d", "rfc6749-5.2-a", "rfc6749-5.2-c", "rfc6749-5.2-d")
@pytest.mark.rfc("rfc6749-10.6-a", "rfc9700-2.1.1-c", "rfc9700-4.8.2-a", "oidc-core-3.1.3.2-a")
@pytest.mark.parametrize(("changes", "error"), WRONG)
def test_a_wrong_parameter_is_rejected_and_the_code_stays_valid(
    gatebell: LiveGatebell, client: ClientCredentials, changes: dict[str, Changes], error: str
) -> None:
    code = new_code(gatebell, client)
    assert_refused(redeem(gatebell, client, code, **changes), error)
    assert redeem(gatebell, client, code).status_code == 200


@pytest.mark.parametrize(
    ("grant_type", "instead"),
    [("implicit", "authorization_code with PKCE"), ("x", "is not supported by this server")],
)
def test_an_unsupported_grant_gets_an_alternative_in_the_error(
    gatebell: LiveGatebell, grant_type: str, instead: str
) -> None:
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/token", data={"grant_type": grant_type})
    assert_refused(answer, "unsupported_grant_type")
    assert instead in answer.json()["error_description"]


@pytest.mark.advisory("CVE-2023-48228", "CVE-2025-4144", "CVE-2026-73309")
@pytest.mark.spec("A6", "B12")
@pytest.mark.rfc("rfc7636-4.1-a", "rfc7636-4.4-a", "rfc7636-4.6-a", "rfc7636-4.6-b")
@pytest.mark.rfc("rfc7636-7.2-a")
@pytest.mark.rfc("rfc9700-2.1.1-b", "rfc9700-4.5.3-a", "rfc9700-4.7.1-a")
@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        (None, "invalid_request"),
        ("", "invalid_request"),
        (VERIFIER + "x", "invalid_grant"),
        (PKCE["code_challenge"], "invalid_grant"),
        ("a" * 42, "invalid_grant"),
        ("a" * 129, "invalid_grant"),
        (VERIFIER + "é", "invalid_grant"),
    ],
)
def test_a_verifier_that_does_not_match_the_challenge_is_rejected(
    gatebell: LiveGatebell, phone: ClientCredentials, verifier: str | None, error: str
) -> None:
    code = new_code(gatebell, phone, **PKCE)
    assert_refused(redeem_publicly(gatebell, phone, code, code_verifier=verifier), error)
    assert redeem_publicly(gatebell, phone, code).status_code == 200


@pytest.mark.advisory("CVE-2026-41213")
@pytest.mark.rfc("rfc7636-4.1-a")
@pytest.mark.parametrize("verifier", ["a", "a" * 42, "a" * 129, "+" * 43])
def test_a_matching_verifier_of_invalid_length_or_alphabet_is_rejected(
    gatebell: LiveGatebell, phone: ClientCredentials, verifier: str
) -> None:
    challenge = create_s256_code_challenge(verifier)
    code = new_code(gatebell, phone, **{**PKCE, "code_challenge": challenge})
    refused = redeem_publicly(gatebell, phone, code, code_verifier=verifier)
    assert_refused(refused, "invalid_grant")


@pytest.mark.rfc("rfc9700-4.8.2-b")
@pytest.mark.advisory("CVE-2024-22258")
@pytest.mark.spec("A6")
@pytest.mark.rfc("rfc7636-4.6-b", "rfc9700-2.1.1-b")
def test_a_secret_does_not_replace_the_verifier(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    code = new_code(gatebell, client, **PKCE)
    assert_refused(redeem(gatebell, client, code), "invalid_request")
    assert redeem(gatebell, client, code, code_verifier=VERIFIER).status_code == 200


@pytest.mark.rfc("rfc9700-4.2.4-c")
@pytest.mark.advisory("CVE-2026-73311")
@pytest.mark.both_databases
@pytest.mark.spec("B12")
@pytest.mark.rfc("rfc6749-4.1.2-c", "rfc6749-4.1.2-d", "rfc6749-10.5-a", "rfc9700-4.2.4-b")
def test_a_second_redemption_is_rejected_and_revokes_the_first_tokens(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    code = new_code(gatebell, client)
    pair = parse_token_pair(redeem(gatebell, client, code))
    assert is_token_valid(gatebell, pair.access)
    assert_refused(redeem(gatebell, client, code), "invalid_grant")
    assert not is_token_valid(gatebell, pair.access)


@pytest.mark.advisory("CVE-2023-39531")
@pytest.mark.both_databases
@pytest.mark.spec("B12")
@pytest.mark.rfc("rfc6749-4.1.2-e", "rfc6749-4.1.3-c")
def test_a_code_sent_by_another_client_is_invalidated(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    thief = make_application(gatebell, bob(gatebell))
    code = new_code(gatebell, client)
    assert_refused(redeem(gatebell, thief, code), "invalid_grant")
    assert_refused(redeem(gatebell, client, code), "invalid_grant")


@pytest.mark.rfc("rfc6749-4.1.3-b")
def test_a_failed_client_authentication_does_not_invalidate_the_code(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    code = new_code(gatebell, client)
    assert_refused(redeem(gatebell, client, code, client_secret="gbs-x"), "invalid_client", 401)
    assert redeem(gatebell, client, code).status_code == 200


@pytest.mark.advisory("CVE-2024-22403")
@pytest.mark.both_databases
@pytest.mark.spec("B12")
@pytest.mark.rfc("rfc6749-4.1.2-b", "rfc6749-5.2-c", "rfc6749-10.5-a")
def test_an_expired_code_is_refused(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    code = new_code(gatebell, client, scope="read_user")
    with database_of(gatebell) as session:
        session.execute(
            update(Authorization)
            .where(Authorization.code_used_at.is_(None))
            .values(code_expires_at=now() - timedelta(seconds=1))
        )
    assert_refused(redeem(gatebell, client, code), "invalid_grant")


@pytest.mark.both_databases
@pytest.mark.spec("B12")
@pytest.mark.parametrize("state", ["locked", "blocked"])
def test_a_code_of_a_user_locked_after_the_approval_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, state: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    code = parse_redirect(open_authorization(open_browser(gatebell, charlie), gatebell, client))[
        "code"
    ]
    set_state(gatebell, charlie, state)
    assert_refused(redeem(gatebell, client, code), "invalid_grant")


@pytest.mark.rfc("rfc6749-4.1.3-d")
def test_tokens_and_secrets_are_rejected_as_codes(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    pair = new_pair(gatebell, client)
    for other in (pair.access, pair.refresh, client.secret):
        assert_refused(redeem(gatebell, client, other), "invalid_grant")
    assert is_token_valid(gatebell, pair.access)


@pytest.mark.rfc("rfc6749-2.3.1-c", "rfc6749-3.2-a")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_the_token_endpoint_accepts_only_post(
    gatebell: LiveGatebell, client: ClientCredentials, method: str
) -> None:
    code = new_code(gatebell, client)
    parameters = {
        "grant_type": "authorization_code",
        "client_id": client.client_id,
        "client_secret": client.secret,
        "code": code,
        "redirect_uri": client.redirect_uri,
    }
    address = f"{gatebell.url}/oauth/token"
    answer = machine(gatebell).request(method, address, params=parameters)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    assert answer.json()["error"] == "invalid_request"
    # Logs would keep parameters of the URL, so a POST does not read them there.
    answer = machine(gatebell).post(address, params=parameters)
    assert_refused(answer, "invalid_request")


@pytest.mark.spec("B11")
@pytest.mark.rfc("rfc6749-5.2-a")
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", None),
        (b"", "application/x-www-form-urlencoded"),
        (json.dumps(["grant_type", "authorization_code"]).encode(), "application/json"),
        (b"{", "application/json"),
        (b"\xff\xfe&=&&%%%00=%ff", "application/x-www-form-urlencoded"),
        (b"--x\r\nnot a part", "multipart/form-data; boundary=x"),
        (b"--x", "multipart/form-data"),
        (b"grant_type=authorization_code", "text/plain"),
        (
            b"&".join(b"a%d=b" % number for number in range(5000)),
            "application/x-www-form-urlencoded",
        ),
    ],
)
def test_a_body_that_is_not_a_form_is_an_invalid_request(
    gatebell: LiveGatebell, body: bytes, content_type: str | None
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert_refused(post_token(gatebell, body, headers=headers), "invalid_request")


def test_a_body_beyond_the_limit_is_refused(gatebell: LiveGatebell) -> None:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{gatebell.url}/oauth/token", data={"code": "x" * 1_100_000})
    assert answer.status_code == 413
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.rfc("rfc6750-5.3-a")
def test_the_token_endpoint_ignores_sessions_of_browsers(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    form = {"grant_type": "authorization_code", "client_id": client.client_id, "code": "x"}
    assert_refused(browser.post(f"{gatebell.url}/oauth/token", form), "invalid_client", 401)


def test_options_lists_only_the_methods_of_the_endpoint(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).options(f"{gatebell.url}/oauth/token")
    # The page of a group would accept GET, but no group can have this name.
    assert set(answer.headers["Allow"].split(", ")) == {"OPTIONS", "POST"}


# Parameters, and the format of challenges.


#: Format of RFC 6750 section 3: a scheme, and pairs with quoted values, without quotes and
#: backslashes in them.
CHALLENGE = re.compile(r'Bearer [a-z_]+="[^"\\]*"(, [a-z_]+="[\x20-\x21\x23-\x5B\x5D-\x7E]*")*')


@pytest.mark.rfc("rfc6749-3.2-b", "rfc8628-3.1-c")
def test_a_parameter_without_a_value_is_ignored(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    code = new_code(gatebell, client)
    assert redeem(gatebell, client, code, code_verifier="", scope="").status_code == 200
    pair = new_pair(gatebell, client)
    assert refresh(gatebell, client, pair.refresh, scope="", redirect_uri="").status_code == 200
    assert revoke(gatebell, client, pair.access, token_type_hint="").status_code == 200
    assert request_device_codes(gatebell, television(gatebell), client_secret="").status_code == 200
    code = new_code(gatebell, client)
    for name in ("grant_type", "code", "redirect_uri"):
        assert_refused(redeem(gatebell, client, code, **{name: ""}), "invalid_request")


@pytest.mark.rfc("rfc6749-3.2-b")
def test_an_unknown_parameter_is_ignored(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    code = new_code(gatebell, client)
    assert redeem(gatebell, client, code, audience=["x", "y"]).status_code == 200
    pair = new_pair(gatebell, client)
    assert refresh(gatebell, client, pair.refresh, resource=["x", "y"]).status_code == 200
    assert revoke(gatebell, client, pair.access, extra=["x", "y"]).status_code == 200
    assert request_device_codes(gatebell, television(gatebell), extra=["x", "y"]).status_code == 200


@pytest.mark.rfc("rfc6750-3-b")
@pytest.mark.parametrize("token", ["x", 'a"b', "a\\b", "gba-" + "0" * 49])
def test_a_challenge_is_well_formed(gatebell: LiveGatebell, token: str) -> None:
    http = machine(gatebell)
    without = new_pair(gatebell, server_application(gatebell), scope="read_user").access
    answers: list[requests.Response] = [
        request_userinfo(gatebell, token),
        request_userinfo(gatebell, without),
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


# Client authentication.


BASIC = 'Basic realm="Gatebell", charset="UTF-8"'


def redeem_with(
    gatebell: LiveGatebell, client: ClientCredentials, header: str, **more: str
) -> requests.Response:
    """Redeem a valid code with this Authorization header."""
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
def test_the_secret_is_accepted_in_a_basic_header(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    assert redeem_with(gatebell, client, header).status_code == 200
    assert redeem_with(gatebell, client, header.replace("Basic", "bAsIc")).status_code == 200


@pytest.mark.advisory("CVE-2026-118669")
def test_the_client_id_in_the_body_must_match_the_header(
    gatebell: LiveGatebell, client: ClientCredentials, phone: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    same = redeem_with(gatebell, client, header, client_id=client.client_id)
    assert same.status_code == 200
    for other in ("0" * 64, phone.client_id):
        refused = redeem_with(gatebell, client, header, client_id=other)
        assert_refused(refused, "invalid_request")


@pytest.mark.rfc("rfc6749-2.3-b")
def test_two_authentication_methods_are_an_invalid_request(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    header = basic(client.client_id, client.secret)
    answer = redeem_with(gatebell, client, header, client_secret=client.secret)
    assert_refused(answer, "invalid_request")


@pytest.mark.spec("B1")
@pytest.mark.rfc("rfc8252-8.4-c")
def test_basic_with_an_empty_password_is_no_authentication(
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
@pytest.mark.advisory("CVE-2023-39531", "CVE-2026-73309")
@pytest.mark.parametrize("secret", [None, "", "wrong", "gbs-" + "0" * 49, "\x00", "é", "x" * 9000])
def test_a_confidential_client_with_a_wrong_secret_is_rejected(
    gatebell: LiveGatebell, client: ClientCredentials, secret: str | None
) -> None:
    code = new_code(gatebell, client)
    answer = redeem(gatebell, client, code, client_secret=secret)
    assert_refused(answer, "invalid_client", 401)
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.rfc("rfc6749-4.1.3-c", "rfc6749-5.2-b")
@pytest.mark.parametrize("client_id", ["0" * 64, "\x00", "é", "x" * 9000])
def test_an_unknown_client_and_a_wrong_secret_get_the_same_error(
    gatebell: LiveGatebell, client: ClientCredentials, client_id: str | None
) -> None:
    unknown = redeem(gatebell, client, "gbc-x", client_id=client_id)
    wrong = redeem(gatebell, client, "gbc-x", client_secret="gbs-x")
    assert_refused(unknown, "invalid_client", 401)
    assert read_error_text(unknown) == read_error_text(wrong)


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
def test_an_invalid_basic_header_is_answered_with_a_challenge(
    gatebell: LiveGatebell, client: ClientCredentials, header: str
) -> None:
    answer = redeem_with(gatebell, client, header)
    assert_refused(answer, "invalid_client", 401)
    assert answer.headers["WWW-Authenticate"] == BASIC


@pytest.mark.parametrize("header", ["Bearer x", "Digest x", "\xe9", ""])
def test_other_authorization_headers_are_ignored(
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


def test_a_public_client_can_use_its_secret(gatebell: LiveGatebell) -> None:
    phone = make_application(gatebell, bob(gatebell), confidential=False, trusted=True)
    code = new_code(gatebell, phone, **PKCE)
    assert redeem(gatebell, phone, code, code_verifier=VERIFIER).status_code == 200
