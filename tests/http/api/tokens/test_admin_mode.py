"""Tests of the scope `admin_mode`; without it, administrators' tokens have ordinary rights."""

from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import select, update

from models import Application, PersonalAccessToken, SignIn, User
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
)
from tests.support.accounts.people import (
    ClientCredentials,
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
)
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.resource_tokens import day, get_namespace, post, script_of
from tests.support.oauth.device_wire import codes, enter_code, poll
from tests.support.oauth.oauth_wire import (
    exchange,
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

#: Address that only administrators can read and change.
SETTINGS = "/application/settings"


def api_of(gatebell: LiveGatebell, person: Person, scopes: str) -> Api:
    return Api(gatebell, make_token(gatebell, person, scopes=scopes, administers=False).clear)


def bearer(
    gatebell: LiveGatebell, token: str, method: str, path: str, **sent: Any
) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{gatebell.url}/api/v4{path}"
    return machine(gatebell).request(method, url, headers=headers, **sent)


def assert_needs_admin_mode(answer: requests.Response) -> None:
    assert answer.status_code == 403, answer.text
    body = answer.json()
    assert (body["error"], body["scope"]) == ("insufficient_scope", "admin_mode")


def administered(gatebell: LiveGatebell, **options: Any) -> ClientCredentials:
    """Return an application of the instance with the scopes `api` and `admin_mode`."""
    made = make_application(
        gatebell, get_shared_administrator(gatebell), scopes="api read_user", **options
    )
    with database_of(gatebell) as session:
        row = session.get_one(Application, made.id)
        row.is_instance_wide, row.scopes = True, "api read_user admin_mode"
    return made


def approved(
    gatebell: LiveGatebell, client: ClientCredentials, person: Person, **ticked: str
) -> dict[str, str]:
    """Approve the application's request, and return the parameters of the redirect."""
    browser = signed_in(gatebell, person)
    page = open_authorization(browser, gatebell, client, scope="api admin_mode")
    form = form_with(page, "decision")
    return parse_redirect(submit(browser, page, form, decision="authorize", **ticked))


# tests/http/api/test_permissions.py tests which operations need the scope.
def test_an_administrator_without_the_scope_has_ordinary_rights(gatebell: LiveGatebell) -> None:
    script, hidden = (
        api_of(gatebell, get_shared_administrator(gatebell), "api"),
        make_project(gatebell, bob(gatebell)),
    )
    number = find_user_id(gatebell, bob(gatebell))
    assert_needs_admin_mode(script.send_request("PUT", f"/users/{number}", json={"admin": True}))
    assert script.send_request("GET", f"/projects/{hidden.replace('/', '%2F')}").status_code == 404
    assert "is_admin" not in script.send_request("GET", f"/users/{number}").json()
    # The user's own data still show that the user is an administrator.
    assert script.send_request("GET", "/user").json()["is_admin"] is True
    mine = {
        each["user_id"] for each in script.send_request("GET", "/personal_access_tokens").json()
    }
    assert mine == {find_user_id(gatebell, get_shared_administrator(gatebell))}


def test_the_scope_does_not_make_a_user_an_administrator(gatebell: LiveGatebell) -> None:
    made = make_token(gatebell, alice(gatebell))
    with database_of(gatebell) as session:
        session.get_one(PersonalAccessToken, made.id).scopes = "api admin_mode"
    refused = Api(gatebell, made.clear).send_request("GET", SETTINGS)
    assert (refused.status_code, "Only administrators" in refused.text) == (403, True)


@pytest.mark.parametrize("scope", ["admin_mode", "sudo"])
def test_other_users_cannot_create_tokens_with_the_scope(
    gatebell: LiveGatebell, scope: str
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/access_tokens/new")
    assert f'value="{scope}"' not in page.text
    form = form_with(page, "expires_at")
    answer = submit(browser, page, form, name="x", scopes=scope)
    assert answer.status_code == 422
    refusal = f"Only personal access tokens of administrators can have the {scope} scope."
    assert refusal in answer.text
    offered = (
        get_administrator_browser(gatebell)
        .get(f"{gatebell.url}/-/user_settings/access_tokens/new")
        .text
    )
    assert f'value="{scope}"' in offered
    body = {"name": "x", "scopes": ["api", scope], "expires_at": day(9)}
    administrator = api_of(gatebell, get_shared_administrator(gatebell), "api admin_mode")
    path = f"/users/{find_user_id(gatebell, alice(gatebell))}/personal_access_tokens"
    assert administrator.send_request("POST", path, json=body).status_code == 400
    namespace = get_namespace(
        gatebell, "projects", make_project(gatebell, get_shared_administrator(gatebell))
    )
    assert (
        post(
            script_of(gatebell, get_shared_administrator(gatebell)),
            namespace,
            scopes=["api", scope],
        ).status_code
        == 400
    )


def test_a_token_cannot_rotate_a_token_with_more_rights(gatebell: LiveGatebell) -> None:
    small = api_of(gatebell, get_shared_administrator(gatebell), "api")
    for scopes in ("api admin_mode", "api sudo"):
        large = make_token(
            gatebell, get_shared_administrator(gatebell), scopes=scopes, administers=False
        )
        path = f"/personal_access_tokens/{large.id}/rotate"
        refused = small.send_request("POST", path, json={"expires_at": day(9)})
        assert (refused.status_code, refused.json()["scope"]) == (403, scopes.split()[1])
        assert Api(gatebell, large.clear).send_request("GET", "/user").status_code == 200


@pytest.mark.both_databases
def test_older_tokens_keep_their_rights_and_are_listed_with_a_warning(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell, name="ruth", admin=True)
    made = make_token(gatebell, person, name="from-before", administers=False)
    keep = update(PersonalAccessToken).where(PersonalAccessToken.id == made.id)
    with database_of(gatebell) as session:
        session.execute(keep.values(keeps_admin_mode=True))
    script = Api(gatebell, made.clear)
    assert script.send_request("GET", SETTINGS).status_code == 200
    rotated = script.send_request(
        "POST", "/personal_access_tokens/self/rotate", json={"expires_at": day(9)}
    )
    assert Api(gatebell, rotated.json()["token"]).send_request("GET", SETTINGS).status_code == 200
    browser = signed_in(gatebell, person)
    listed = browser.get(f"{gatebell.url}/-/user_settings/access_tokens").text
    assert "Administrator rights without admin_mode" in listed
    overview = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin").text
    assert f"@{person.username}</a>: access token <bdi>from-before</bdi>" in overview
    # A token without the scope cannot obtain one that has it.
    small = api_of(gatebell, person, "api")
    path = f"/personal_access_tokens/{rotated.json()['id']}/rotate"
    assert_needs_admin_mode(small.send_request("POST", path, json={"expires_at": day(8)}))


def test_an_administrator_grants_the_scope_with_a_checkbox(gatebell: LiveGatebell) -> None:
    client = administered(gatebell)
    without = approved(gatebell, client, get_shared_administrator(gatebell))
    pair = parse_token_pair(redeem(gatebell, client, without["code"]))
    assert pair.answer["scope"] == "api"
    assert_needs_admin_mode(bearer(gatebell, pair.access, "GET", SETTINGS))
    # A refresh cannot extend the scope.
    assert refresh(gatebell, client, pair.refresh, scope="api admin_mode").status_code == 400
    granted = approved(gatebell, client, get_shared_administrator(gatebell), admin_mode="yes")
    pair = parse_token_pair(redeem(gatebell, client, granted["code"]))
    assert pair.answer["scope"] == "api admin_mode"
    assert bearer(gatebell, pair.access, "GET", SETTINGS).status_code == 200
    narrow = parse_token_pair(refresh(gatebell, client, pair.refresh, scope="api"))
    assert_needs_admin_mode(bearer(gatebell, narrow.access, "GET", SETTINGS))


def test_other_users_see_no_checkbox_and_grant_the_other_scopes(gatebell: LiveGatebell) -> None:
    client, browser = administered(gatebell), signed_in(gatebell, alice(gatebell))
    page = open_authorization(browser, gatebell, client, scope="api admin_mode")
    assert 'name="admin_mode"' not in page.text
    code = approved(gatebell, client, alice(gatebell), admin_mode="yes")["code"]
    assert parse_token_pair(redeem(gatebell, client, code)).answer["scope"] == "api"
    alone = parse_redirect(open_authorization(browser, gatebell, client, scope="admin_mode"))
    assert alone["error"] == "invalid_scope"


@pytest.mark.parametrize("options", [{}, {"trusted": True}])
def test_an_old_sign_in_cannot_grant_the_scope(
    gatebell: LiveGatebell, options: dict[str, bool]
) -> None:
    client, person = administered(gatebell, **options), make_user(gatebell, admin=True)
    browser = open_browser(gatebell, person)
    page = open_authorization(browser, gatebell, client, scope="api admin_mode", prompt="consent")
    with database_of(gatebell) as session:
        mine = select(User.id).where(User.username == person.username)
        session.execute(
            update(SignIn)
            .where(SignIn.user_id.in_(mine))
            .values(created_at=now() - timedelta(days=2))
        )
    again = open_authorization(browser, gatebell, client, scope="api admin_mode")
    assert 'name="password"' in again.text
    silent = parse_redirect(
        open_authorization(browser, gatebell, client, scope="api admin_mode", prompt="none")
    )
    assert silent["error"] == "login_required"
    late = submit(
        browser, page, form_with(page, "decision"), decision="authorize", admin_mode="yes"
    )
    assert late.headers["Location"].startswith("/users/sign_in?again=yes")
    # Ordinary scopes need no recent sign-in.
    assert (
        'name="decision"'
        in open_authorization(browser, gatebell, client, scope="api", prompt="consent").text
    )


def test_a_device_gets_the_scope_with_a_checkbox(gatebell: LiveGatebell) -> None:
    client = administered(gatebell, confidential=False)
    browser = signed_in(gatebell, get_shared_administrator(gatebell))
    for ticked, scope in (({}, "api"), ({"admin_mode": "yes"}, "api admin_mode")):
        given = codes(gatebell, client, scope="api admin_mode")
        page = enter_code(browser, gatebell, given["user_code"])
        submit(browser, page, form_with(page, "decision"), decision="approve", **ticked)
        assert poll(gatebell, client, given["device_code"]).json()["scope"] == scope


@pytest.mark.long
def test_the_password_grant_without_an_application_does_not_give_the_scope(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell, admin=True)
    token = exchange(gatebell, person).json()["access_token"]
    assert bearer(gatebell, token, "GET", SETTINGS).status_code == 403
    # Only applications of the instance can have the scope, so no one gets it without an
    # application.
    for scope in ("api admin_mode", "admin_mode"):
        refused = exchange(gatebell, person, scope=scope)
        assert refused.json()["error"] == "invalid_scope"


def test_only_applications_of_the_instance_can_have_the_scope(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/applications/new")
    form = form_with(page, "redirect_uris")
    answer = submit(
        browser,
        page,
        form,
        name="Mine",
        redirect_uris="https://x.example/",
        scopes="admin_mode",
    )
    assert answer.status_code == 422
    metadata = machine(gatebell).get(f"{gatebell.url}/.well-known/openid-configuration").json()
    assert "admin_mode" not in metadata["scopes_supported"]
    script = api_of(gatebell, get_shared_administrator(gatebell), "api admin_mode")
    body = {"name": "Board", "redirect_uri": "https://x.example/", "scopes": "api admin_mode"}
    assert script.send_request("POST", "/applications", json=body).status_code == 201
    # The request fails even if a user's application requests the scope.
    own = make_application(gatebell, alice(gatebell), scopes="api")
    answer = open_authorization(
        signed_in(gatebell, get_shared_administrator(gatebell)),
        gatebell,
        own,
        scope="api admin_mode",
    )
    assert parse_redirect(answer)["error"] == "invalid_scope"


OUTLIVING: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("POST", "/users", {"username": "x", "email": "x@people.example", "name": "x"}),
    ("PUT", "/users/{id}", {"admin": True}),
    (
        *("POST", "/applications"),
        {"name": "x", "redirect_uri": "https://x.example/", "scopes": "api"},
    ),
    ("POST", "/applications/{application}/renew-secret", {}),
    ("POST", "/audit_streams", {"url": "https://x.example/"}),
)


def test_an_application_cannot_create_objects_that_outlive_its_access(
    gatebell: LiveGatebell,
) -> None:
    client, number = administered(gatebell), find_user_id(gatebell, alice(gatebell))
    code = approved(gatebell, client, get_shared_administrator(gatebell), admin_mode="yes")["code"]
    token = parse_token_pair(redeem(gatebell, client, code)).access
    administrator_id = find_user_id(gatebell, get_shared_administrator(gatebell))
    tokens = f"/users/{administrator_id}/personal_access_tokens"
    wanted = {"name": "made", "scopes": ["api", "admin_mode"], "expires_at": day(9)}
    made = bearer(gatebell, token, "POST", tokens, json=wanted).json()["token"]
    for method, path, body in OUTLIVING:
        address = path.format(id=number, application=client.id)
        for each in (token, made):
            refused = bearer(gatebell, each, method, address, json=body)
            assert (refused.status_code, "Applications cannot do this" in refused.text) == (
                403,
                True,
            ), path
    with database_of(gatebell) as session:
        assert session.get_one(User, number).is_admin is False
