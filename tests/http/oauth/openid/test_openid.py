"""ID tokens, what is in them, and what may be asked for along with them."""

import base64
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from sqlalchemy import update

from domain.accounts.users import get_user
from domain.oauth.openid.userinfo import MOST_GROUP_CHARACTERS
from domain.projects.creation import create_group, make_owner
from models import User
from tests.support.accounts.people import (
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    signed_in,
)
from tests.support.oauth.oauth_wire import (
    PKCE,
    ask,
    assert_refused,
    decide,
    landing,
    machine,
    new_code,
    new_pair,
    pair_in,
    phone_application,
    redeem,
    redeem_publicly,
    refresh,
    server_application,
)
from tests.support.oauth.openid_wire import checked, openid_application, sign_in_with, userinfo
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

CONFIGURATION = "/.well-known/openid-configuration"


@pytest.mark.both_databases
@pytest.mark.spec("D7")
@pytest.mark.rfc(
    "rfc9700-4.5.3-a",
    "oidc-core-2-a",
    "oidc-core-2-c",
    "oidc-core-2-d",
    "oidc-core-2-e",
    "oidc-core-2-f",
    "oidc-core-3.1.3.6-a",
    "oidc-core-10.1-a",
    "oidc-core-15.1-a",
)
def test_an_id_token_says_who_signed_in_for_whom_and_when(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    before = datetime.now(UTC).timestamp()
    pair = new_pair(gatebell, client, scope="openid read_user", nonce="n-0S6 _Wz?")
    token = checked(gatebell, pair.answer["id_token"])
    owner = machine(gatebell).get(
        f"{gatebell.url}/api/v4/user", headers={"Authorization": f"Bearer {pair.access}"}
    )
    assert token.header == {"typ": "JWT", "alg": "RS256", "kid": token.header["kid"]}
    assert token.claims["iss"] == gatebell.url
    assert token.claims["aud"] == client.client_id
    assert token.claims["sub"] == str(owner.json()["id"])
    assert token.claims["nonce"] == "n-0S6 _Wz?"
    assert token.claims["exp"] - token.claims["iat"] == 3600
    assert int(before) <= token.claims["iat"] <= datetime.now(UTC).timestamp()
    assert token.claims["auth_time"] <= token.claims["iat"]
    half = sha256(pair.access.encode()).digest()[:16]
    assert token.claims["at_hash"] == base64.urlsafe_b64encode(half).decode().rstrip("=")


@pytest.mark.rfc("oidc-core-2-d", "oidc-core-2-g")
def test_a_nonce_that_was_not_asked_is_not_answered(gatebell: LiveGatebell) -> None:
    # Others put Alice into groups, and with many an ID token leaves them out.
    assert set(sign_in_with(gatebell).claims) - {"groups"} == {
        *("iss", "sub", "aud", "exp", "iat", "auth_time", "acr", "amr", "sid", "at_hash")
    }


@pytest.mark.spec("D7")
@pytest.mark.rfc("oidc-core-5.4-a")
@pytest.mark.parametrize("more", ["", "profile", "email", "profile email"])
def test_an_id_token_says_of_the_user_what_userinfo_says(gatebell: LiveGatebell, more: str) -> None:
    client = openid_application(gatebell)
    erin = make_user(gatebell, name="erin")
    group, _, _ = make_project(gatebell, erin).rpartition("/")
    browser = open_browser(gatebell, erin)
    code = landing(ask(browser, gatebell, client, scope=f"openid {more}"))["code"]
    pair = pair_in(redeem(gatebell, client, code))
    told = userinfo(gatebell, pair.access).json()
    claims = checked(gatebell, pair.answer["id_token"]).claims
    protocol = {"iss", "aud", "exp", "iat", "auth_time", "acr", "amr", "sid", "at_hash"}
    assert {name: claims[name] for name in claims.keys() - protocol} == told
    assert told["groups"] == [group]
    assert ("preferred_username" in claims) is ("profile" in more)
    assert claims.get("email") == (erin.email if "email" in more else None)
    # The day after: it says what is so then, of the scopes that were granted.
    with database_of(gatebell) as session:
        session.execute(update(User).where(User.email == erin.email).values(name="Erin the Second"))
    again = pair_in(refresh(gatebell, client, pair.refresh)).answer["id_token"]
    named = "Erin the Second" if "profile" in more else None
    assert checked(gatebell, again).claims.get("name") == named


def test_an_id_token_stays_short_enough_for_an_address(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    erin = make_user(gatebell, name="erin")
    groups = [make_project(gatebell, erin).rpartition("/")[0] for _ in range(3)]
    with database_of(gatebell) as session:
        user = get_user(erin.username, session=session)
        for number in range(MOST_GROUP_CHARACTERS // len(groups[0])):
            path = f"{groups[0]}/{number:04}"
            group = create_group(path, reserved=frozenset(), session=session, now=now())
            make_owner(group, user.id, session=session, now=now())
            groups.append(path)
    browser = open_browser(gatebell, erin)
    code = landing(ask(browser, gatebell, client, scope="openid"))["code"]
    pair = pair_in(redeem(gatebell, client, code))
    # A part of the groups would look like the whole; whoever needs them asks userinfo.
    hint = checked(gatebell, pair.answer["id_token"])
    assert "groups" not in hint.claims
    assert sorted(userinfo(gatebell, pair.access).json()["groups"]) == sorted(groups)
    answer = ask(browser, gatebell, client, id_token_hint=hint.text, prompt="none", scope="openid")
    assert "code" in landing(answer)


@pytest.mark.rfc("oidc-core-3.1.2.1-b", "oidc-core-3.1.3.2-a")
def test_without_openid_there_is_no_id_token(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, openid_application(gatebell), scope="read_user profile", nonce="n")
    assert "id_token" not in pair.answer


@pytest.mark.rfc("oidc-core-3.1.3.3-a")
def test_a_public_application_gets_one_as_well(gatebell: LiveGatebell) -> None:
    client = make_application(
        gatebell, bob(gatebell), trusted=True, confidential=False, scopes="openid"
    )
    answer = pair_in(redeem_publicly(gatebell, client, new_code(gatebell, client, **PKCE))).answer
    assert checked(gatebell, answer["id_token"]).claims["aud"] == client.client_id


@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-12.2-a", "oidc-core-12.2-b")
def test_a_refresh_repeats_when_the_user_signed_in_but_not_the_nonce(
    gatebell: LiveGatebell,
) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid", nonce="once")
    first = checked(gatebell, pair.answer["id_token"]).claims
    again = pair_in(refresh(gatebell, client, pair.refresh)).answer
    second = checked(gatebell, again["id_token"]).claims
    assert "nonce" not in second
    for name in ("iss", "sub", "aud", "auth_time"):
        assert second[name] == first[name]
    assert second["at_hash"] != first["at_hash"]


def test_a_refresh_that_gives_up_openid_gets_no_id_token(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid read_user")
    narrower = pair_in(refresh(gatebell, client, pair.refresh, scope="read_user"))
    assert "id_token" not in narrower.answer


@pytest.mark.rfc("rfc6749-4.1.2.1-e", "oidc-core-3.1.2.1-b")
def test_openid_needs_registration(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = ask(browser, gatebell, server_application(gatebell), scope="openid")
    assert landing(answer)["error"] == "invalid_scope"


def test_offline_access_may_be_asked_for_by_everybody(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_user offline_access")
    assert pair.answer["scope"] == "read_user offline_access"
    assert pair_in(refresh(gatebell, client, pair.refresh)).refresh


@pytest.mark.rfc("oidc-core-11-a")
def test_offline_access_is_granted_by_the_person_and_nobody_else(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    page = ask(browser, gatebell, client, scope="read_user offline_access")
    assert "Access while you are away" in page.text
    assert landing(decide(browser, page, "cancel"))["error"] == "access_denied"
    silent = ask(browser, gatebell, client, scope="read_user offline_access", prompt="none")
    assert landing(silent)["error"] == "consent_required"


def test_nobody_is_registered_for_offline_access_on_the_page(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new").text
    assert 'value="openid"' in page
    assert 'value="offline_access"' not in page


@pytest.mark.rfc("oidc-core-3.1.2.6-b", "oidc-core-6-a", "oidc-core-6-b")
@pytest.mark.parametrize("name", ["request", "request_uri"])
def test_parameters_inside_of_a_jwt_are_refused(gatebell: LiveGatebell, name: str) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = ask(browser, gatebell, openid_application(gatebell), **{name: "https://a.example/"})
    assert landing(answer)["error"] == f"{name}_not_supported"


def test_a_hint_about_who_is_signed_in_changes_nothing(gatebell: LiveGatebell) -> None:
    hint = sign_in_with(gatebell).text
    browser = signed_in(gatebell, alice(gatebell))
    client = openid_application(gatebell)
    answer = ask(browser, gatebell, client, id_token_hint=hint, prompt="none", scope="openid")
    assert "code" in landing(answer)


@pytest.mark.rfc("oidc-core-3.1.2.1-m", "oidc-core-3.1.2.2-b")
@pytest.mark.parametrize("prompt", ["none", None])
def test_a_hint_about_somebody_else_gets_no_code(
    gatebell: LiveGatebell, prompt: str | None
) -> None:
    hint = sign_in_with(gatebell).text
    browser = open_browser(gatebell, bob(gatebell))
    client = openid_application(gatebell)
    answer = ask(browser, gatebell, client, id_token_hint=hint, prompt=prompt, scope="openid")
    assert landing(answer)["error"] == "login_required"


def test_a_hint_that_is_none_is_an_invalid_request(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = ask(browser, gatebell, openid_application(gatebell), id_token_hint="a.b.c")
    assert landing(answer)["error"] == "invalid_request"


@pytest.mark.spec("D7")
@pytest.mark.rfc(
    "rfc8414-2-c", "oidc-core-2-e", "oidc-core-5.6-a", "oidc-core-8-a", "oidc-logout-2.1-a"
)
def test_the_provider_describes_itself_and_says_the_same_in_both_places(
    gatebell: LiveGatebell,
) -> None:
    http = machine(gatebell)
    provider = http.get(gatebell.url + CONFIGURATION).json()
    server = http.get(f"{gatebell.url}/.well-known/oauth-authorization-server").json()
    assert provider["issuer"] == gatebell.url
    assert server.items() <= provider.items()
    assert provider["id_token_signing_alg_values_supported"] == ["RS256"]
    assert provider["subject_types_supported"] == ["public"]
    assert provider["request_uri_parameter_supported"] is False
    assert {"openid", "profile", "email", "offline_access"} <= set(provider["scopes_supported"])
    assert {"sub", "groups", "nonce", "email_verified"} <= set(provider["claims_supported"])
    assert provider["introspection_endpoint_auth_methods_supported"] == [
        "client_secret_basic",
        "client_secret_post",
        "private_key_jwt",
    ]
    for name in ("jwks_uri", "userinfo_endpoint", "introspection_endpoint", "end_session_endpoint"):
        assert http.get(provider[name]).status_code != 404, name


def test_scripts_of_any_origin_may_read_the_description(gatebell: LiveGatebell) -> None:
    answer = machine(gatebell).get(
        gatebell.url + CONFIGURATION, headers={"Origin": "https://a.example"}
    )
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "max-age" in answer.headers["Cache-Control"]
    assert "Set-Cookie" not in answer.headers


@pytest.mark.rfc("oidc-core-3.1.3.4-a")
def test_a_refused_code_gets_no_id_token(gatebell: LiveGatebell) -> None:
    client = phone_application(gatebell)
    answer = redeem_publicly(gatebell, client, "gbc-nonsense")
    assert_refused(answer, "invalid_grant")
