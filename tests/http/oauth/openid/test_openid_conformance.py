"""The certification plan for OpenID providers (Basic OP), module by module.

Each test is named after a module of the OpenID Foundation's conformance suite. The plan is
`oidcc-basic-certification-test-plan`, with a client that is registered in advance.
"""

from datetime import timedelta
from urllib.parse import urlencode, urljoin

import pytest
from sqlalchemy import select

from domain.oauth.openid.userinfo import CLAIMS_BY_SCOPE
from models import Authorization
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    database_of,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.oauth.conformance_wire import (
    ID_TOKEN,
    NONCE,
    age_sign_ins,
    by_basic,
    complete_flow,
    run_flow,
    run_flow_with_sign_in,
    supported,
    unsigned,
    used_code,
)
from tests.support.oauth.oauth_wire import (
    PKCE,
    STATE,
    VERIFIER,
    assert_refused,
    assert_refused_on_a_page,
    is_token_valid,
    machine,
    new_pair,
    open_and_follow,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    server_application,
)
from tests.support.oauth.openid_wire import (
    SCOPES,
    openid_application,
    request_userinfo,
    sign_in_to_application,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """The client of the plan."""
    return openid_application(gatebell)


@pytest.mark.rfc("rfc6749-5.1-c")
@pytest.mark.rfc("rfc9207-2-a")
@pytest.mark.rfc("oidc-core-2-a", "oidc-core-2-b", "oidc-core-3.1.2.1-e", "oidc-core-3.1.2.5-a")
@pytest.mark.rfc("oidc-core-3.1.3.1-a", "oidc-core-3.1.3.3-a", "oidc-core-9-a")
def test_oidcc_server(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client)
    assert set(signed.token.claims) | {"groups"} == ID_TOKEN
    assert signed.token.claims["nonce"] == NONCE
    assert signed.token.header["alg"] == "RS256"
    assert 0 < len(signed.token.claims["sub"].encode("ascii")) <= 255


@pytest.mark.rfc("rfc6749-3.1.1-a", "oidc-core-3.1.2.2-a")
def test_oidcc_response_type_missing(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    brought = parse_redirect(
        open_authorization(browser, gatebell, client, scope="openid", response_type=None)
    )
    assert (brought["error"], brought["state"]) == ("invalid_request", STATE)


@pytest.mark.rfc("oidc-core-5.3-a", "oidc-core-5.3.2-a", "oidc-core-5.3.2-b")
def test_oidcc_userinfo_get(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client)
    answer = request_userinfo(gatebell, signed.access)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["sub"] == signed.token.claims["sub"]


@pytest.mark.rfc("oidc-core-5.3-a")
def test_oidcc_userinfo_post_header(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client)
    header = {"Authorization": f"Bearer {signed.access}"}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/userinfo", headers=header)
    assert answer.json()["sub"] == signed.token.claims["sub"]


@pytest.mark.rfc("rfc6750-2.2-a", "oidc-core-5.3-b")
def test_oidcc_userinfo_post_body(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client)
    form = {"access_token": signed.access}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/userinfo", data=form)
    assert answer.json()["sub"] == signed.token.claims["sub"]


@pytest.mark.rfc("oidc-core-2-d", "oidc-core-2-g")
def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    claims = run_flow(gatebell, client, nonce=None).token.claims
    assert set(claims) | {"groups"} == ID_TOKEN - {"nonce"}


@pytest.mark.rfc("oidc-core-5.1-a", "oidc-core-5.4-a")
def test_oidcc_scope_profile(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client, scope="openid profile")
    assert signed.claims["name"] == "Alice"
    assert signed.claims["preferred_username"] == alice(gatebell).username
    assert {"nickname", "profile", "picture"} <= set(signed.claims)
    assert "email" not in signed.claims
    assert set(signed.token.claims) | {"groups"} == ID_TOKEN | set(CLAIMS_BY_SCOPE["profile"]) - {
        "zoneinfo"
    }


@pytest.mark.rfc("oidc-core-5.1-a", "oidc-core-5.4-a")
def test_oidcc_scope_email(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client, scope="openid email")
    assert signed.claims["email"] == alice(gatebell).email
    assert isinstance(signed.claims["email_verified"], bool)
    assert "name" not in signed.claims
    assert set(signed.token.claims) | {"groups"} == ID_TOKEN | set(CLAIMS_BY_SCOPE["email"])


def assert_no_such_scope(gatebell: LiveGatebell, scope: str) -> None:
    """Check that the metadata do not list the scope, in which case the suite skips the module."""
    assert scope not in supported(gatebell)["scopes_supported"]
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(
        browser, gatebell, openid_application(gatebell), scope=f"openid {scope}"
    )
    assert parse_redirect(answer)["error"] == "invalid_scope"


@pytest.mark.not_offered
@pytest.mark.rfc("oidc-core-3.1.2.1-c", "oidc-core-5.4-b")
def test_oidcc_scope_address(gatebell: LiveGatebell) -> None:
    assert_no_such_scope(gatebell, "address")


@pytest.mark.not_offered
@pytest.mark.rfc("oidc-core-3.1.2.1-c", "oidc-core-5.4-b")
def test_oidcc_scope_phone(gatebell: LiveGatebell) -> None:
    assert_no_such_scope(gatebell, "phone")


@pytest.mark.rfc("oidc-core-5.4-a")
def test_oidcc_scope_all(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client, scope=SCOPES)
    assert set(signed.claims) <= set(supported(gatebell)["claims_supported"])
    assert {"name", "email"} <= set(signed.claims)


@pytest.mark.rfc("rfc6749-3.3-a")
def test_oidcc_alternate_happy_flow(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    parameters = {
        "state": STATE,
        "scope": "email openid",
        "response_type": "code",
        "redirect_uri": client.redirect_uri,
        "nonce": NONCE,
        "client_id": client.client_id,
    }
    url = f"{gatebell.url}/oauth/authorize?{urlencode(parameters)}"
    browser = signed_in(gatebell, alice(gatebell))
    assert (
        complete_flow(gatebell, client, open_and_follow(browser, url)).claims["email"]
        == alice(gatebell).email
    )


@pytest.mark.rfc("oidc-core-3.1.2.1-l", "oidc-core-15.1-a")
def test_oidcc_display_page(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    run_flow(gatebell, client, display="page")


@pytest.mark.rfc("oidc-core-3.1.2.1-l")
def test_oidcc_display_popup(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    run_flow(gatebell, client, display="popup")


@pytest.mark.long
@pytest.mark.rfc("oidc-core-3.1.2.1-g", "oidc-core-3.1.2.3-a")
def test_oidcc_prompt_login(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    age_sign_ins(gatebell, person, timedelta(seconds=2))
    first = run_flow(gatebell, client, browser)
    second = run_flow_with_sign_in(gatebell, browser, person, prompt="login")
    assert second.token.claims["sub"] == first.token.claims["sub"]
    assert second.token.claims["auth_time"] > first.token.claims["auth_time"]


@pytest.mark.rfc("oidc-core-3.1.2.1-f", "oidc-core-3.1.2.6-a")
def test_oidcc_prompt_none_not_logged_in(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    brought = parse_redirect(
        open_authorization(gatebell.http(), gatebell, client, scope="openid", prompt="none")
    )
    assert (brought["error"], brought["state"]) == ("login_required", STATE)


@pytest.mark.long
@pytest.mark.rfc("oidc-core-3.1.2.1-f")
def test_oidcc_prompt_none_logged_in(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    first = run_flow(gatebell, client)
    second = run_flow(gatebell, client, prompt="none")
    for name in ("sub", "auth_time"):
        assert second.token.claims[name] == first.token.claims[name]


@pytest.mark.long
@pytest.mark.rfc("oidc-core-3.1.2.1-k", "oidc-core-15.1-a")
def test_oidcc_max_age_1(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    person = make_user(gatebell)
    browser = open_browser(gatebell, person)
    age_sign_ins(gatebell, person, timedelta(seconds=2))
    first = run_flow(gatebell, client, browser)
    second = run_flow_with_sign_in(gatebell, browser, person, max_age="1")
    assert second.token.claims["auth_time"] > first.token.claims["auth_time"]


@pytest.mark.rfc("oidc-core-2-c", "oidc-core-3.1.2.1-k")
def test_oidcc_max_age_10000(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    first = run_flow(gatebell, client)
    second = run_flow(gatebell, client, max_age="10000")
    assert second.token.claims["auth_time"] == first.token.claims["auth_time"]


@pytest.mark.rfc("rfc6749-3.1-e", "oidc-core-3.1.2.2-c")
def test_oidcc_ensure_request_with_unknown_parameter_succeeds(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    run_flow(gatebell, client, extra="foobar")


@pytest.mark.rfc("oidc-core-3.1.2.1-m")
def test_oidcc_id_token_hint(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    hint = sign_in_to_application(gatebell)
    signed = run_flow(gatebell, client, id_token_hint=hint.text, prompt="none")
    assert signed.token.claims["sub"] == hint.claims["sub"]


@pytest.mark.rfc("oidc-core-3.1.2.1-n")
def test_oidcc_login_hint(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    run_flow(gatebell, client, login_hint="buffy@people.example")


@pytest.mark.rfc("oidc-core-3.1.2.1-l", "oidc-core-15.1-a")
def test_oidcc_ui_locales(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    run_flow(gatebell, client, ui_locales="se")


@pytest.mark.rfc("oidc-core-5.5-c", "oidc-core-15.1-a")
def test_oidcc_claims_locales(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    run_flow(gatebell, client, claims_locales="se")


@pytest.mark.rfc("oidc-core-3.1.2.1-o", "oidc-core-15.1-a")
def test_oidcc_ensure_request_with_acr_values_succeeds(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    run_flow(gatebell, client, acr_values="1 2")


@pytest.mark.rfc("rfc6749-4.1.2-c", "oidc-core-3.1.3.2-a", "oidc-core-3.1.3.4-a")
def test_oidcc_codereuse(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    code, _ = used_code(gatebell, client)
    assert_refused(by_basic(gatebell, client, code), "invalid_grant")


@pytest.mark.rfc("rfc6749-4.1.2-d")
def test_oidcc_codereuse_30seconds(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    code, access = used_code(gatebell, client)
    with database_of(gatebell) as session:
        row = session.scalars(select(Authorization).order_by(Authorization.id.desc())).first()
        assert row is not None
        assert row.code_used_at is not None
        row.code_used_at -= timedelta(seconds=30)
    assert_refused(by_basic(gatebell, client, code), "invalid_grant")
    assert not is_token_valid(gatebell, access)


@pytest.mark.rfc("rfc6749-3.1.2.4-b", "oidc-core-3.1.2.1-d")
def test_oidcc_ensure_registered_redirect_uri(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    wrong = f"{client.redirect_uri}/abc"
    assert_refused_on_a_page(
        open_authorization(browser, gatebell, client, scope="openid", redirect_uri=wrong)
    )


@pytest.mark.rfc("rfc6749-3.1-c", "oidc-core-3.1.2.1-a")
def test_oidcc_ensure_post_request_succeeds(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    form = {
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "response_type": "code",
        "scope": "openid",
        "state": STATE,
        "nonce": NONCE,
    }
    # A cross-origin form sends no cookie; the browser sends it with the next request.
    http, browser = gatebell.http(), signed_in(gatebell, alice(gatebell))
    posted = http.post(f"{gatebell.url}/oauth/authorize", data=form, allow_redirects=False)
    assert posted.status_code == 303
    complete_flow(
        gatebell, client, open_and_follow(browser, urljoin(posted.url, posted.headers["Location"]))
    )


@pytest.mark.rfc("rfc6749-2.3.1-b", "oidc-core-3.1.3.1-a", "oidc-core-9-a")
def test_oidcc_server_client_secret_post(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    answer = new_pair(gatebell, client, scope="openid", nonce=NONCE).answer
    assert verify_id_token(gatebell, answer["id_token"]).claims["nonce"] == NONCE


@pytest.mark.rfc("oidc-core-3.1.2.6-b", "oidc-core-6-a", "oidc-core-6-b")
def test_oidcc_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    assert supported(gatebell)["request_parameter_supported"] is False
    browser = signed_in(gatebell, alice(gatebell))
    request = unsigned(gatebell, client, scope="openid", nonce=NONCE)
    brought = parse_redirect(
        open_authorization(browser, gatebell, client, scope="openid", request=request)
    )
    assert (brought["error"], brought["state"]) == ("request_not_supported", STATE)


@pytest.mark.not_offered
@pytest.mark.rfc("oidc-core-5.5-a", "oidc-core-5.5-b")
def test_oidcc_claims_essential(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    assert supported(gatebell)["claims_parameter_supported"] is False
    wanted = '{"userinfo": {"name": {"essential": true}}}'
    # A missing essential claim is not an error (section 5.5.1).
    assert "name" not in run_flow(gatebell, client, claims=wanted).claims


@pytest.mark.rfc("oidc-core-6-b")
def test_oidcc_ensure_request_object_with_redirect_uri(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    inside = unsigned(gatebell, client, scope="openid", redirect_uri=client.redirect_uri)
    outside = f"{client.redirect_uri}/abc"
    wanted = {"scope": "openid", "redirect_uri": outside, "request": inside}
    assert_refused_on_a_page(open_authorization(browser, gatebell, client, **wanted))


@pytest.mark.rfc("oidc-core-12-a", "oidc-core-12.2-a")
def test_oidcc_refresh_token(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    signed = run_flow(gatebell, client, scope="openid offline_access")
    new = parse_token_pair(refresh(gatebell, client, signed.refresh))
    assert new.access != signed.access
    again = verify_id_token(gatebell, new.answer["id_token"]).claims
    for name in ("iss", "sub", "aud", "auth_time"):
        assert again[name] == signed.token.claims[name]
    assert request_userinfo(gatebell, new.access).json()["sub"] == signed.claims["sub"]
    stranger = server_application(gatebell)
    assert_refused(refresh(gatebell, stranger, new.refresh), "invalid_grant")


@pytest.mark.rfc("rfc7636-4.2-a")
def test_oidcc_ensure_request_with_valid_pkce_succeeds(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(open_authorization(browser, gatebell, client, scope="openid", **PKCE))[
        "code"
    ]
    assert_refused(redeem(gatebell, client, code), "invalid_request")
    assert parse_token_pair(redeem(gatebell, client, code, code_verifier=VERIFIER)).answer[
        "id_token"
    ]
