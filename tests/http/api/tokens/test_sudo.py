"""Tests that an administrator's token acts as the user that a request names, or fails."""

from itertools import product
from typing import Any

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.administration import (
    find_last_event,
    find_user_id,
    get_shared_administrator,
)
from tests.support.accounts.people import (
    Person,
    alice,
    bob,
    make_project,
    make_user,
    set_state,
    unique,
)
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.accounts.resource_tokens import day, get_namespace, make_bot_token, script_of
from tests.support.oauth.oauth_wire import exchange, machine
from tests.support.service.live import LiveGatebell
from tests.support.wire.kept_connection import KeptConnection, build_request_head

BOTH = "api sudo"


def sudo_token(gatebell: LiveGatebell, scopes: str = BOTH, *, administers: bool = True) -> str:
    return make_token(
        gatebell, get_shared_administrator(gatebell), scopes=scopes, administers=administers
    ).clear


def send(
    gatebell: LiveGatebell, token: str, method: str, path: str, **sent: Any
) -> requests.Response:
    return Api(gatebell, token).send_request(method, path, **sent)


def as_alice(gatebell: LiveGatebell) -> dict[str, str]:
    return {"Sudo": alice(gatebell).username}


def who(answer: requests.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["username"])


@pytest.mark.both_databases
def test_the_user_can_be_named_in_each_place_by_id_and_by_name(gatebell: LiveGatebell) -> None:
    token, person = sudo_token(gatebell), alice(gatebell)
    number = str(find_user_id(gatebell, person))
    for named in (person.username, person.username.upper(), number):
        for sent in ({"headers": {"Sudo": named}}, {"params": {"sudo": named}}):
            assert who(send(gatebell, token, "GET", "/user", **sent)) == person.username
    both = {"headers": {"Sudo": number}, "params": {"sudo": number}}
    assert who(send(gatebell, token, "GET", "/user", **both)) == person.username
    assert who(send(gatebell, token, "GET", "/user")) == get_shared_administrator(gatebell).username


@pytest.mark.parametrize("place", ["header", "query", "json", "form", "brackets"])
def test_created_objects_belong_to_the_user_and_the_audit_log_names_both(
    gatebell: LiveGatebell, place: str
) -> None:
    person, path = alice(gatebell), unique("made")
    body = {"name": path, "path": path}
    places: dict[str, dict[str, Any]] = {
        "header": {"headers": as_alice(gatebell), "json": body},
        "query": {"params": {"sudo": person.username}, "json": body},
        "json": {"json": {**body, "sudo": find_user_id(gatebell, person)}},
        "form": {"data": {**body, "sudo": person.username}},
        "brackets": {"params": {"sudo[]": person.username}, "json": body},
    }
    made = send(gatebell, sudo_token(gatebell), "POST", "/groups", **places[place])
    assert made.status_code == 201, made.text
    members = Api(gatebell, make_token(gatebell, person).clear).send_request(
        "GET", f"/groups/{path}/members"
    )
    assert [(each["username"], each["access_level"]) for each in members.json()] == [
        (person.username, Role.OWNER)
    ]
    event = find_last_event(gatebell, path)
    assert (event.actor_name, event.actor_id) == (person.username, find_user_id(gatebell, person))
    administrator = get_shared_administrator(gatebell)
    assert event.details["sudo_by"] == administrator.username
    assert event.details["sudo_by_id"] == find_user_id(gatebell, administrator)


def test_a_request_has_only_the_rights_of_the_user(gatebell: LiveGatebell) -> None:
    token, hidden = sudo_token(gatebell), make_project(gatebell, bob(gatebell))
    project = f"/projects/{hidden.replace('/', '%2F')}"
    assert send(gatebell, token, "GET", project).status_code == 200
    for method, path in (("GET", project), ("PUT", project), ("DELETE", project)):
        answer = send(gatebell, token, method, path, headers=as_alice(gatebell), json={})
        assert answer.status_code == 404
    settings = send(gatebell, token, "GET", "/application/settings", headers=as_alice(gatebell))
    assert (settings.status_code, "Only administrators" in settings.text) == (403, True)
    # The request cannot change the administrator's own token, either.
    for method, path in (
        ("POST", "/personal_access_tokens/self/rotate"),
        ("DELETE", "/personal_access_tokens/self"),
    ):
        answer = send(
            gatebell, token, method, path, headers=as_alice(gatebell), json={"expires_at": day(9)}
        )
        assert answer.status_code == 404
    assert send(gatebell, token, "GET", "/user").status_code == 200


def test_another_administrator_needs_the_scope_admin_mode(gatebell: LiveGatebell) -> None:
    other = make_user(gatebell, name="ruth", admin=True)
    for administers, status in ((True, 200), (False, 403)):
        token = sudo_token(gatebell, administers=administers)
        headers = {"Sudo": other.username}
        assert who(send(gatebell, token, "GET", "/user", headers=headers)) == other.username
        answer = send(gatebell, token, "GET", "/application/settings", headers=headers)
        assert answer.status_code == status


def test_requests_without_the_scope_are_rejected_for_every_method(gatebell: LiveGatebell) -> None:
    token, name = sudo_token(gatebell, "api"), alice(gatebell).username
    named = (
        {"headers": {"Sudo": name}},
        {"params": {"sudo": name}},
        {"headers": {"Sudo": get_shared_administrator(gatebell).username}},
    )
    addresses = {
        "/user": ("GET", "HEAD", "PUT"),
        "/groups": ("GET", "POST"),
        "/version": ("GET",),
        "/users/1": ("GET", "PUT", "DELETE"),
    }
    for path, methods in addresses.items():
        for method, sent in product(methods, named):
            answer = send(gatebell, token, method, path, **sent)
            assert answer.status_code == 403, (method, path, answer.text)
            assert method == "HEAD" or answer.json()["scope"] == "sudo"


def test_only_personal_tokens_of_administrators_can_act_as_other_users(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell, admin=True)
    project = make_project(gatebell, alice(gatebell))
    bot = make_bot_token(
        script_of(gatebell, alice(gatebell)),
        get_namespace(gatebell, "groups", project),
        access_level=50,
    )
    for token in (
        make_token(gatebell, alice(gatebell)).clear,
        bot.clear,
        exchange(gatebell, person, scope="api").json()["access_token"],
    ):
        headers = {"Authorization": f"Bearer {token}", "Sudo": bob(gatebell).username}
        answer = machine(gatebell).get(f"{gatebell.url}/api/v4/user", headers=headers)
        assert (answer.status_code, answer.json()["scope"]) == (403, "sudo")
    # Former administrators can no longer act as other users.
    token = make_token(gatebell, person, scopes=BOTH).clear
    assert send(gatebell, token, "GET", "/user", headers=as_alice(gatebell)).status_code == 200
    administrator = make_token(gatebell, get_shared_administrator(gatebell)).clear
    number = find_user_id(gatebell, person)
    send(gatebell, administrator, "PUT", f"/users/{number}", json={"admin": False})
    refused = send(gatebell, token, "GET", "/user", headers=as_alice(gatebell))
    assert (refused.status_code, "Only administrators" in refused.text) == (403, True)


def test_locked_users_and_bots_cannot_be_named(gatebell: LiveGatebell) -> None:
    token = sudo_token(gatebell)
    project = make_project(gatebell, alice(gatebell))
    bot = make_bot_token(
        script_of(gatebell, alice(gatebell)), get_namespace(gatebell, "projects", project)
    )
    answer = send(gatebell, token, "GET", "/user", headers={"Sudo": str(bot.user_id)})
    assert (answer.status_code, "is a bot" in answer.text) == (403, True)
    for state in ("blocked", "locked"):
        person = make_user(gatebell)
        set_state(gatebell, person, state)
        answer = send(gatebell, token, "GET", "/user", headers={"Sudo": person.username})
        assert (answer.status_code, f"is {state}" in answer.text) == (403, True)


NOBODY = ("nobody-of-this-name", "0", "-1", "99999999999999999999999", "%", "x" * 3000)


def test_an_unknown_user_is_an_error(gatebell: LiveGatebell) -> None:
    token = sudo_token(gatebell)
    for named, status in (*((each, 404) for each in NOBODY), ("", 400)):
        for sent in ({"headers": {"Sudo": named}}, {"params": {"sudo": named}}):
            assert send(gatebell, token, "GET", "/user", **sent).status_code == status, named


def test_an_invalid_user_in_the_body_is_an_error(gatebell: LiveGatebell) -> None:
    path, token = unique("never"), sudo_token(gatebell)
    values: tuple[object, ...] = (None, True, [], ["alice"], {"id": 1}, 1.5)
    for value in values:
        body = {"name": path, "path": path, "sudo": value}
        assert send(gatebell, token, "POST", "/groups", json=body).status_code == 400, value
    assert send(gatebell, token, "GET", f"/groups/{path}").status_code == 404


def test_different_users_in_one_request_are_an_error(gatebell: LiveGatebell) -> None:
    token, first, second = sudo_token(gatebell), alice(gatebell), bob(gatebell)
    names = (first.username, second.username)
    for sent in (
        {"headers": {"Sudo": names[0]}, "params": {"sudo": names[1]}},
        {"params": [("sudo", names[0]), ("sudo", names[1])]},
        {"params": {"sudo": names[0]}, "json": {"name": "x", "sudo": names[1]}},
        {"headers": {"Sudo": names[0]}, "data": {"name": "x", "sudo": names[1]}},
    ):
        method = "POST" if "json" in sent or "data" in sent else "GET"
        assert send(gatebell, token, method, "/groups", **sent).status_code == 400
    with KeptConnection(gatebell.port) as connection:
        lines = (f"PRIVATE-TOKEN: {token}", *(f"Sudo: {name}" for name in names))
        connection.socket.sendall(build_request_head("/api/v4/user", *lines))
        assert connection.answer().status in {400, 404}


def test_a_request_without_a_token_is_rejected_if_it_names_a_user(gatebell: LiveGatebell) -> None:
    for path in ("/projects", "/groups", "/user"):
        url = f"{gatebell.url}/api/v4{path}"
        assert machine(gatebell).get(url, headers={"Sudo": "alice"}).status_code == 401
        assert machine(gatebell).get(url, params={"sudo": "alice"}).status_code == 401


def test_the_links_of_a_list_name_the_user_again(gatebell: LiveGatebell) -> None:
    answer = send(
        gatebell,
        sudo_token(gatebell),
        "GET",
        "/users",
        params={"sudo": alice(gatebell).username, "per_page": 1},
    )
    assert f"sudo={alice(gatebell).username}" in answer.headers["Link"]


def test_a_repeated_request_belongs_to_the_named_user(gatebell: LiveGatebell) -> None:
    token, key = sudo_token(gatebell), unique("key")
    paths = [unique("first"), unique("second")]
    people: tuple[Person, ...] = (alice(gatebell), bob(gatebell))
    for person, path in zip(people, paths, strict=True):
        headers = {"Sudo": person.username, "Idempotency-Key": key}
        body = {"name": path, "path": path}
        first = send(gatebell, token, "POST", "/groups", json=body, headers=headers)
        again = send(gatebell, token, "POST", "/groups", json=body, headers=headers)
        assert (first.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
        assert first.json()["full_path"] == again.json()["full_path"] == path
