"""The client credentials grant: applications that act as their service account (RFC 6749 4.4)."""

from typing import Any

import pytest
from sqlalchemy import select

from models import AccessToken, User
from tests.support.accounts.administration import find_user_id, submit_form_by_ending
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_application,
    make_project,
    make_user,
    open_browser,
    set_state,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.machines import (
    account_of,
    machine_application,
    machine_token,
    request_machine_token,
)
from tests.support.oauth.oauth_wire import (
    assert_refused,
    is_token_valid,
    machine,
    revoke,
    token_info,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


def api(
    gatebell: LiveGatebell, token: str, path: str, method: str = "GET", **more: Any
) -> tuple[int, Any]:
    answer = machine(gatebell).request(
        method, f"{gatebell.url}/api/v4{path}", headers={"Authorization": f"Bearer {token}"}, **more
    )
    return answer.status_code, answer.json() if answer.content else None


def add(gatebell: LiveGatebell, owner: Person, path: str, username: str, role: int) -> None:
    token = make_token(gatebell, owner).clear
    form = {"username": username, "access_level": role}
    place = f"/projects/{path.replace('/', '%2F')}/members"
    status, body = api(gatebell, token, place, "POST", json=form)
    assert status == 201, body


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-4.4-b")
def test_an_application_acts_as_its_service_account(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell, name="Deploy robot")
    answer = request_machine_token(gatebell, client, scope="read_api read_user")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "scope", "created_at"}
    assert (body["token_type"], body["scope"]) == ("bearer", "read_api read_user")
    status, user = api(gatebell, body["access_token"], "/user")
    assert (status, user["username"]) == (200, account_of(gatebell, client))
    assert user["name"] == "Deploy robot"
    info = token_info(gatebell, body["access_token"]).json()
    assert info["resource_owner_id"] == user["id"]
    assert info["application"] == {"uid": client.client_id}


def test_a_request_without_scope_gets_all_machine_scopes(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell, scopes="read_api openid email offline_access")
    assert request_machine_token(gatebell, client).json()["scope"] == "read_api"


@pytest.mark.rfc("rfc9700-2.3-c")
@pytest.mark.parametrize("scope", ["openid", "offline_access", "admin_mode", "write_alerts", "x"])
def test_user_scopes_and_unknown_scopes_are_rejected(gatebell: LiveGatebell, scope: str) -> None:
    client = machine_application(gatebell, scopes="read_api openid")
    assert_refused(request_machine_token(gatebell, client, scope=scope), "invalid_scope")


def test_an_application_with_only_user_scopes_gets_no_token(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell, scopes="openid email")
    assert_refused(request_machine_token(gatebell, client), "invalid_scope")


@pytest.mark.both_databases
def test_a_service_account_can_do_only_what_its_role_allows(gatebell: LiveGatebell) -> None:
    owner = alice(gatebell)
    path, client = make_project(gatebell, owner), machine_application(gatebell)
    place = f"/projects/{path.replace('/', '%2F')}"
    token = machine_token(gatebell, client)
    assert api(gatebell, token, place)[0] == 404
    add(gatebell, owner, path, account_of(gatebell, client), 30)
    assert api(gatebell, token, place)[0] == 200
    status, found = api(gatebell, token, f"{place}/members/all")
    names = {each["username"] for each in found}
    assert (status, account_of(gatebell, client) in names) == (200, True)
    # The account cannot raise any role, and cannot create tokens that outlive it.
    _, me = api(gatebell, token, "/user")
    widened = {"access_level": 40}
    assert api(gatebell, token, f"{place}/members/{me['id']}", "PUT", json=widened)[0] == 403
    personal = {"name": "x", "scopes": ["api"], "expires_at": "2030-01-01"}
    assert api(gatebell, token, f"{place}/access_tokens", "POST", json=personal)[0] == 403
    assert api(gatebell, token, "/groups", "POST", json={"name": "x", "path": "x"})[0] == 403


def test_a_service_account_cannot_assign_a_role_above_its_own(gatebell: LiveGatebell) -> None:
    owner, friend = alice(gatebell), make_user(gatebell)
    path, client = make_project(gatebell, owner), machine_application(gatebell)
    add(gatebell, owner, path, account_of(gatebell, client), 40)
    token, place = machine_token(gatebell, client), f"/projects/{path.replace('/', '%2F')}"
    _, me = api(gatebell, token, "/user")
    wanted = {"username": friend.username, "access_level": 50}
    assert api(gatebell, token, f"{place}/members", "POST", json=wanted)[0] == 400
    widened = {"access_level": 50}
    assert api(gatebell, token, f"{place}/members/{me['id']}", "PUT", json=widened)[0] == 400
    assert api(gatebell, token, place, "PUT", json={"visibility": "public"})[0] == 403
    another = {"name": "x", "scopes": ["read_api"], "expires_at": "2030-01-01"}
    status, body = api(gatebell, token, f"{place}/access_tokens", "POST", json=another)
    assert (status, body) == (403, {"message": "403 Forbidden: A bot cannot create access tokens."})


@pytest.mark.rfc("rfc6749-4.4-a")
def test_an_unauthorized_client_gets_an_alternative_in_the_error(gatebell: LiveGatebell) -> None:
    plain = make_application(gatebell, alice(gatebell))
    answer = request_machine_token(gatebell, plain)
    assert_refused(answer, "unauthorized_client")
    assert "project or group access token" in answer.json()["error_description"]
    public = make_application(gatebell, alice(gatebell), confidential=False)
    answer = request_machine_token(gatebell, public, client_secret="")
    assert_refused(answer, "unauthorized_client")
    assert "device grant" in answer.json()["error_description"]


def test_a_wrong_secret_is_refused(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell)
    answer = request_machine_token(gatebell, client, client_secret="wrong")
    assert_refused(answer, "invalid_client", 401)


@pytest.mark.both_databases
def test_a_client_credentials_token_can_be_revoked(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell)
    token = machine_token(gatebell, client)
    assert revoke(gatebell, client, token).status_code == 200
    assert not is_token_valid(gatebell, token)


@pytest.mark.both_databases
def test_a_service_account_is_locked_with_its_owner(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="leaver")
    client = machine_application(gatebell, owner)
    token = machine_token(gatebell, client)
    submit_form_by_ending(gatebell, f"/admin/users/{find_user_id(gatebell, owner)}", "/lock")
    assert not is_token_valid(gatebell, token)
    assert_refused(request_machine_token(gatebell, client), "invalid_grant")
    set_state(gatebell, owner, "active")
    assert is_token_valid(gatebell, machine_token(gatebell, client))
    assert not is_token_valid(gatebell, token)


def test_a_service_account_cannot_use_the_password_grant(gatebell: LiveGatebell) -> None:
    name = account_of(gatebell, machine_application(gatebell))
    form = {"grant_type": "password", "username": name, "password": "!"}
    answer = machine(gatebell).post(f"{gatebell.url}/oauth/token", data=form)
    assert_refused(answer, "invalid_grant")


@pytest.mark.both_databases
def test_a_deleted_application_leaves_a_locked_account_without_roles(
    gatebell: LiveGatebell,
) -> None:
    owner = alice(gatebell)
    path, client = make_project(gatebell, owner), machine_application(gatebell, owner)
    name = account_of(gatebell, client)
    add(gatebell, owner, path, name, 30)
    token, browser = machine_token(gatebell, client), open_browser(gatebell, owner)
    page = f"{gatebell.url}/-/user_settings/applications/{client.id}"
    seen = browser.get(page).text
    assert name in seen
    assert f"{path}</a>: Developer" in seen
    asking = browser.get(f"{page}/delete")
    submit(browser, asking, form_to(asking, "/delete"))
    assert not is_token_valid(gatebell, token)
    with database_of(gatebell) as session:
        user = session.scalars(select(User).where(User.username == name)).one()
        assert user.state == "blocked"
        tokens = session.scalars(select(AccessToken).where(AccessToken.user_id == user.id)).all()
        assert not tokens
    members = browser.get(f"{gatebell.url}/{path}/-/settings/members").text
    assert name not in members
