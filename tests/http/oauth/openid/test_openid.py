"""ID tokens and /oauth/userinfo: their claims, and their request parameters."""

import base64
from datetime import UTC, datetime
from hashlib import sha256

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.accounts.users import get_user
from domain.oauth.openid.userinfo import MAX_GROUPS_CLAIM_LENGTH
from domain.projects import namespace_changes
from domain.projects.members import OPERATOR_VIEWER, add_member
from domain.projects.namespace_changes import add_owner, create_group
from models import User
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
    signed_in,
    unique,
)
from tests.support.oauth.oauth_wire import (
    PKCE,
    TokenPair,
    machine,
    new_code,
    new_pair,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    redeem_publicly,
    refresh,
    revoke,
    server_application,
    submit_decision,
)
from tests.support.oauth.openid_wire import (
    SCOPES,
    openid_application,
    request_userinfo,
    sign_in_to_application,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

CONFIGURATION = "/.well-known/openid-configuration"


@pytest.mark.both_databases
@pytest.mark.spec("D7")
@pytest.mark.rfc("rfc9700-4.5.3-a")
@pytest.mark.rfc("oidc-core-2-a", "oidc-core-2-c", "oidc-core-2-d", "oidc-core-2-e")
@pytest.mark.rfc("oidc-core-2-f", "oidc-core-3.1.3.6-a", "oidc-core-10.1-a", "oidc-core-15.1-a")
def test_an_id_token_contains_issuer_subject_audience_and_times(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    before = datetime.now(UTC).timestamp()
    pair = new_pair(gatebell, client, scope="openid read_user", nonce="n-0S6 _Wz?")
    token = verify_id_token(gatebell, pair.answer["id_token"])
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


@pytest.mark.spec("D7")
@pytest.mark.rfc("oidc-core-5.4-a")
@pytest.mark.parametrize("more", ["", "profile", "email", "profile email"])
def test_an_id_token_has_the_same_user_claims_as_userinfo(
    gatebell: LiveGatebell, more: str
) -> None:
    client = openid_application(gatebell)
    erin = make_user(gatebell, name="erin")
    group, _, _ = make_project(gatebell, erin).rpartition("/")
    browser = open_browser(gatebell, erin)
    code = parse_redirect(open_authorization(browser, gatebell, client, scope=f"openid {more}"))[
        "code"
    ]
    pair = parse_token_pair(redeem(gatebell, client, code))
    told = request_userinfo(gatebell, pair.access).json()
    claims = verify_id_token(gatebell, pair.answer["id_token"]).claims
    protocol = {"iss", "aud", "exp", "iat", "auth_time", "acr", "amr", "sid", "at_hash"}
    assert {name: claims[name] for name in claims.keys() - protocol} == told
    assert told["groups"] == [group]
    assert ("preferred_username" in claims) is ("profile" in more)
    assert claims.get("email") == (erin.email if "email" in more else None)
    # After a refresh, the claims are current for the granted scopes.
    with database_of(gatebell) as session:
        session.execute(update(User).where(User.email == erin.email).values(name="Erin the Second"))
    again = parse_token_pair(refresh(gatebell, client, pair.refresh)).answer["id_token"]
    named = "Erin the Second" if "profile" in more else None
    assert verify_id_token(gatebell, again).claims.get("name") == named


@pytest.mark.long
def test_an_id_token_with_many_groups_still_fits_into_a_url(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    erin = make_user(gatebell, name="erin")
    groups = [make_project(gatebell, erin).rpartition("/")[0] for _ in range(3)]
    with database_of(gatebell) as session:
        user = get_user(erin.username, session=session)
        for number in range(MAX_GROUPS_CLAIM_LENGTH // len(groups[0])):
            path = f"{groups[0]}/{number:04}"
            group = create_group(path, reserved=frozenset(), session=session, now=now())
            add_owner(group, user.id, session=session, now=now())
            groups.append(path)
    browser = open_browser(gatebell, erin)
    code = parse_redirect(open_authorization(browser, gatebell, client, scope="openid"))["code"]
    pair = parse_token_pair(redeem(gatebell, client, code))
    # A partial list would look complete, so clients get the groups from userinfo.
    hint = verify_id_token(gatebell, pair.answer["id_token"])
    assert "groups" not in hint.claims
    assert sorted(request_userinfo(gatebell, pair.access).json()["groups"]) == sorted(groups)
    answer = open_authorization(
        browser, gatebell, client, id_token_hint=hint.text, prompt="none", scope="openid"
    )
    assert "code" in parse_redirect(answer)


@pytest.mark.rfc("oidc-core-3.1.2.1-b", "oidc-core-3.1.3.2-a")
def test_without_openid_there_is_no_id_token(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, openid_application(gatebell), scope="read_user profile", nonce="n")
    assert "id_token" not in pair.answer


@pytest.mark.rfc("oidc-core-3.1.3.3-a")
def test_a_public_application_gets_an_id_token(gatebell: LiveGatebell) -> None:
    client = make_application(
        gatebell, bob(gatebell), trusted=True, confidential=False, scopes="openid"
    )
    answer = parse_token_pair(
        redeem_publicly(gatebell, client, new_code(gatebell, client, **PKCE))
    ).answer
    assert verify_id_token(gatebell, answer["id_token"]).claims["aud"] == client.client_id


@pytest.mark.both_databases
@pytest.mark.rfc("oidc-core-12.2-a", "oidc-core-12.2-b")
def test_a_refresh_keeps_auth_time_but_not_the_nonce(
    gatebell: LiveGatebell,
) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid", nonce="once")
    first = verify_id_token(gatebell, pair.answer["id_token"]).claims
    again = parse_token_pair(refresh(gatebell, client, pair.refresh)).answer
    second = verify_id_token(gatebell, again["id_token"]).claims
    assert "nonce" not in second
    for name in ("iss", "sub", "aud", "auth_time"):
        assert second[name] == first[name]
    assert second["at_hash"] != first["at_hash"]


def test_a_refresh_without_the_openid_scope_returns_no_id_token(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid read_user")
    narrower = parse_token_pair(refresh(gatebell, client, pair.refresh, scope="read_user"))
    assert "id_token" not in narrower.answer


@pytest.mark.rfc("rfc6749-4.1.2.1-e", "oidc-core-3.1.2.1-b")
def test_the_openid_scope_must_be_registered(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(browser, gatebell, server_application(gatebell), scope="openid")
    assert parse_redirect(answer)["error"] == "invalid_scope"


def test_every_application_can_request_offline_access(gatebell: LiveGatebell) -> None:
    client = server_application(gatebell)
    pair = new_pair(gatebell, client, scope="read_user offline_access")
    assert pair.answer["scope"] == "read_user offline_access"
    assert parse_token_pair(refresh(gatebell, client, pair.refresh)).refresh


@pytest.mark.rfc("oidc-core-11-a")
def test_offline_access_needs_the_consent_of_the_user(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    browser = signed_in(gatebell, alice(gatebell))
    page = open_authorization(browser, gatebell, client, scope="read_user offline_access")
    assert "Access while you are away" in page.text
    assert parse_redirect(submit_decision(browser, page, "cancel"))["error"] == "access_denied"
    silent = open_authorization(
        browser, gatebell, client, scope="read_user offline_access", prompt="none"
    )
    assert parse_redirect(silent)["error"] == "consent_required"


def test_the_registration_page_does_not_offer_offline_access(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new").text
    assert 'value="openid"' in page
    assert 'value="offline_access"' not in page


@pytest.mark.rfc("oidc-core-3.1.2.1-m", "oidc-core-3.1.2.2-b")
@pytest.mark.parametrize("prompt", ["none", None])
def test_a_hint_of_another_user_returns_no_code(gatebell: LiveGatebell, prompt: str | None) -> None:
    hint = sign_in_to_application(gatebell).text
    browser = open_browser(gatebell, bob(gatebell))
    client = openid_application(gatebell)
    answer = open_authorization(
        browser, gatebell, client, id_token_hint=hint, prompt=prompt, scope="openid"
    )
    assert parse_redirect(answer)["error"] == "login_required"


def test_a_malformed_hint_is_an_invalid_request(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    answer = open_authorization(
        browser, gatebell, openid_application(gatebell), id_token_hint="a.b.c"
    )
    assert parse_redirect(answer)["error"] == "invalid_request"


@pytest.mark.spec("D7")
@pytest.mark.rfc(
    "rfc8414-2-c", "oidc-core-2-e", "oidc-core-5.6-a", "oidc-core-8-a", "oidc-logout-2.1-a"
)
def test_both_metadata_documents_agree(
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


# Tests of /oauth/userinfo.


def tokens_of(gatebell: LiveGatebell, person: Person, scope: str) -> TokenPair:
    client = openid_application(gatebell)
    code = parse_redirect(
        open_authorization(open_browser(gatebell, person), gatebell, client, scope=scope)
    )["code"]
    return parse_token_pair(redeem(gatebell, client, code))


def member_of(gatebell: LiveGatebell, person: Person, *paths: str, of: str) -> None:
    """Create groups, and add the user to the group `of`."""
    with database_of(gatebell) as session:
        for path in paths:
            namespace_changes.create_group(path, reserved=frozenset(), session=session, now=now())
        get_user(person.username, session=session)
        namespace = get_namespace(of, session=session)
        add_member(
            namespace,
            person.username,
            Role.DEVELOPER,
            viewer=OPERATOR_VIEWER,
            session=session,
            now=now(),
        )


@pytest.mark.both_databases
@pytest.mark.spec("D4")
@pytest.mark.rfc("oidc-core-5.1-a", "oidc-core-5.6-a")
def test_each_scope_adds_its_claims(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="carol")
    claims = request_userinfo(gatebell, tokens_of(gatebell, person, SCOPES).access).json()
    picture = claims.pop("picture")
    assert claims == {
        "sub": claims["sub"],
        "groups": [],
        "name": "Carol",
        "nickname": person.username,
        "preferred_username": person.username,
        "profile": f"{gatebell.url}/-/users/{person.username}",
        "email": person.email,
        "email_verified": False,
    }
    with database_of(gatebell) as session:
        changed = update(User).where(User.username == person.username)
        session.execute(changed.values(time_zone="Europe/Berlin"))
    tokens = tokens_of(gatebell, person, SCOPES)
    assert request_userinfo(gatebell, tokens.access).json()["zoneinfo"] == "Europe/Berlin"
    assert (
        verify_id_token(gatebell, tokens.answer["id_token"]).claims["zoneinfo"] == "Europe/Berlin"
    )
    drawn = machine(gatebell).get(picture)
    assert drawn.headers["Content-Type"].startswith("image/svg+xml")
    assert ">C</text>" in drawn.text


@pytest.mark.spec("D4")
@pytest.mark.rfc("oidc-core-5.3.2-c")
@pytest.mark.parametrize(
    ("scope", "names"),
    [("openid", {"sub", "groups"}), ("openid email", {"sub", "groups", "email", "email_verified"})],
)
def test_userinfo_returns_only_granted_claims(
    gatebell: LiveGatebell, scope: str, names: set[str]
) -> None:
    pair = new_pair(gatebell, openid_application(gatebell), scope=scope)
    answer = request_userinfo(gatebell, pair.access)
    assert set(answer.json()) == names
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
def test_the_groups_claim_contains_groups_and_their_subgroups(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="dora")
    top = unique("group_")
    # An underscore is not a wildcard, and a longer name is not a subgroup.
    others = (top.replace("_", "x"), f"{top}-b")
    below = (f"{top}/a", f"{top}/a/b")
    member_of(gatebell, person, *others, top, *below, f"{others[0]}/a", of=top)
    member_of(gatebell, person, of=below[1])
    claims = request_userinfo(gatebell, tokens_of(gatebell, person, "openid").access).json()
    assert claims["groups"] == [top, *below]


@pytest.mark.spec("D4")
@pytest.mark.rfc("rfc6750-2.1-a", "rfc6750-2.2-a", "oidc-core-5.3-b")
def test_userinfo_accepts_tokens_in_header_form_and_query(gatebell: LiveGatebell) -> None:
    token = new_pair(gatebell, openid_application(gatebell), scope=SCOPES).access
    http, url = machine(gatebell), f"{gatebell.url}/oauth/userinfo"
    header = {"Authorization": f"Bearer {token}"}
    claims = http.get(url, headers=header).json()
    assert claims["sub"]
    for answer in (
        http.post(url, headers=header),
        http.post(url, data={"access_token": token}),
        http.get(url, params={"access_token": token}),
    ):
        assert answer.status_code == 200
        assert answer.json() == claims


def assert_challenged(answer: requests.Response, status: int, error: str) -> None:
    assert answer.status_code == status
    assert answer.json()["error"] == error
    assert f'error="{error}"' in answer.headers["WWW-Authenticate"]
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="Gatebell"')
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.rfc("rfc6750-2.2-b", "rfc6750-3-a", "rfc6750-3-c", "oidc-core-5.3.3-a")
def test_without_a_token_the_challenge_names_no_error(gatebell: LiveGatebell) -> None:
    url = f"{gatebell.url}/oauth/userinfo"
    for answer in (
        machine(gatebell).get(url),
        machine(gatebell).post(url),
        # Only a POST may have the token in a form (RFC 6750 section 2.2).
        machine(gatebell).get(url, data={"access_token": "x"}),
        machine(gatebell).post(url, json={"access_token": "x"}),
    ):
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Gatebell"'


@pytest.mark.rfc("rfc6749-7-a", "rfc6750-3.1-c", "oidc-core-5.3.3-a")
def test_userinfo_rejects_a_token_without_the_openid_scope(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, server_application(gatebell))
    answer = request_userinfo(gatebell, pair.access)
    assert_challenged(answer, 403, "insufficient_scope")
    assert answer.headers["WWW-Authenticate"].endswith('scope="openid"')


@pytest.mark.both_databases
@pytest.mark.rfc(
    "rfc6749-1.5-a", "rfc6750-3-a", "rfc6750-3.1-b", "oidc-core-5.3.3-a", "oidc-core-16-a"
)
def test_userinfo_rejects_revoked_and_foreign_credentials(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid")
    personal = gatebell.cli(
        "tokens", "create", alice(gatebell).username, "--name", "x", "--scopes", "read_user"
    )["token"]
    revoke(gatebell, client, pair.access)
    for token in (pair.access, pair.refresh, personal, pair.answer["id_token"], "x"):
        assert_challenged(request_userinfo(gatebell, token), 401, "invalid_token")


@pytest.mark.rfc("rfc6750-2-a", "rfc6750-3.1-a")
def test_different_tokens_in_one_request_are_an_invalid_request(
    gatebell: LiveGatebell,
) -> None:
    client = openid_application(gatebell)
    token, other = (new_pair(gatebell, client, scope="openid").access for _ in range(2))
    url, headers = f"{gatebell.url}/oauth/userinfo", {"Authorization": f"Bearer {token}"}
    answer = machine(gatebell).post(url, headers=headers, data={"access_token": other})
    assert_challenged(answer, 400, "invalid_request")
    same = {"access_token": token}
    assert machine(gatebell).post(url, headers=headers, data=same).status_code == 200
    assert machine(gatebell).post(url, headers=headers, params=same).status_code == 200


@pytest.mark.parametrize("name", ["AA-1", "A-360", "-1", "A-", "A--1"])
def test_an_invalid_picture_name_is_not_found(gatebell: LiveGatebell, name: str) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/pictures/{name}.svg", allow_redirects=False)
    assert answer.status_code == 404
