"""Who signed in: GET and POST /oauth/userinfo."""

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from domain.accounts.users import get_user
from domain.projects import creation
from domain.projects.members import OPERATOR, add_member
from models import User
from tests.support.accounts.namespaces import get_namespace
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    now,
    open_browser,
    unique,
)
from tests.support.oauth.oauth_wire import (
    TokenPair,
    ask,
    landing,
    machine,
    new_pair,
    pair_in,
    redeem,
    revoke,
    server_application,
)
from tests.support.oauth.openid_wire import SCOPES, checked, openid_application, userinfo
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def tokens_of(gatebell: LiveGatebell, person: Person, scope: str) -> TokenPair:
    client = openid_application(gatebell)
    code = landing(ask(open_browser(gatebell, person), gatebell, client, scope=scope))["code"]
    return pair_in(redeem(gatebell, client, code))


def member_of(gatebell: LiveGatebell, person: Person, *paths: str, of: str) -> None:
    """Make groups, and the person a member of one of them."""
    with database_of(gatebell) as session:
        for path in paths:
            creation.create_group(path, reserved=frozenset(), session=session, now=now())
        get_user(person.username, session=session)
        namespace = get_namespace(of, session=session)
        add_member(
            namespace, person.username, Role.DEVELOPER, by=OPERATOR, session=session, now=now()
        )


@pytest.mark.both_databases
@pytest.mark.spec("D4")
@pytest.mark.rfc("oidc-core-5.1-a", "oidc-core-5.6-a")
def test_each_scope_opens_its_claims(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="carol")
    claims = userinfo(gatebell, tokens_of(gatebell, person, SCOPES).access).json()
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
    assert userinfo(gatebell, tokens.access).json()["zoneinfo"] == "Europe/Berlin"
    assert checked(gatebell, tokens.answer["id_token"]).claims["zoneinfo"] == "Europe/Berlin"
    drawn = machine(gatebell).get(picture)
    assert drawn.headers["Content-Type"].startswith("image/svg+xml")
    assert ">C</text>" in drawn.text


@pytest.mark.spec("D4")
@pytest.mark.rfc("oidc-core-5.3.2-c")
@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("openid", {"sub", "groups"}),
        ("openid email", {"sub", "groups", "email", "email_verified"}),
    ],
)
def test_what_was_not_granted_is_not_told(
    gatebell: LiveGatebell, scope: str, names: set[str]
) -> None:
    pair = new_pair(gatebell, openid_application(gatebell), scope=scope)
    answer = userinfo(gatebell, pair.access)
    assert set(answer.json()) == names
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.both_databases
def test_groups_are_those_one_is_in_and_those_below_them(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell, name="dora")
    top = unique("group_")
    # An underscore is no wildcard, and a longer name is no group below.
    others = (top.replace("_", "x"), f"{top}-b")
    below = (f"{top}/a", f"{top}/a/b")
    member_of(gatebell, person, *others, top, *below, f"{others[0]}/a", of=top)
    member_of(gatebell, person, of=below[1])
    claims = userinfo(gatebell, tokens_of(gatebell, person, "openid").access).json()
    assert claims["groups"] == [top, *below]


@pytest.mark.spec("D4")
@pytest.mark.rfc("rfc6750-2.1-a", "rfc6750-2.2-a", "oidc-core-5.3-b")
def test_a_token_may_come_by_header_form_and_query(gatebell: LiveGatebell) -> None:
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
        # A form belongs to a POST (RFC 6750 section 2.2).
        machine(gatebell).get(url, data={"access_token": "x"}),
        machine(gatebell).post(url, json={"access_token": "x"}),
    ):
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Gatebell"'


@pytest.mark.rfc("rfc6749-7-a", "rfc6750-3.1-c", "oidc-core-5.3.3-a")
def test_a_token_without_openid_opens_nothing(gatebell: LiveGatebell) -> None:
    pair = new_pair(gatebell, server_application(gatebell))
    answer = userinfo(gatebell, pair.access)
    assert_challenged(answer, 403, "insufficient_scope")
    assert answer.headers["WWW-Authenticate"].endswith('scope="openid"')


@pytest.mark.both_databases
@pytest.mark.rfc(
    "rfc6749-1.5-a", "rfc6750-3-a", "rfc6750-3.1-b", "oidc-core-5.3.3-a", "oidc-core-16-a"
)
def test_dead_and_foreign_credentials_open_nothing(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    pair = new_pair(gatebell, client, scope="openid")
    personal = gatebell.cli(
        "tokens", "create", alice(gatebell).username, "--name", "x", "--scopes", "read_user"
    )["token"]
    revoke(gatebell, client, pair.access)
    for token in (pair.access, pair.refresh, personal, pair.answer["id_token"], "x"):
        assert_challenged(userinfo(gatebell, token), 401, "invalid_token")


@pytest.mark.rfc("rfc6750-2-a", "rfc6750-3.1-a")
def test_a_token_sent_twice_is_an_invalid_request(gatebell: LiveGatebell) -> None:
    token = new_pair(gatebell, openid_application(gatebell), scope="openid").access
    answer = machine(gatebell).post(
        f"{gatebell.url}/oauth/userinfo",
        headers={"Authorization": f"Bearer {token}"},
        data={"access_token": token},
    )
    assert_challenged(answer, 400, "invalid_request")


@pytest.mark.parametrize("name", ["AA-1", "A-360", "-1", "A-", "A--1"])
def test_a_picture_that_nobody_has_is_none(gatebell: LiveGatebell, name: str) -> None:
    answer = machine(gatebell).get(f"{gatebell.url}/-/pictures/{name}.svg", allow_redirects=False)
    assert answer.status_code == 404
