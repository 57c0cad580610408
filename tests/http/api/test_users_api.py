"""Tests of `/api/v4/users`: searches by all users, and changes by administrators."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
import requests

from domain.access.roles import Role
from domain.accounts.users import get_user
from domain.core.randomness import generate_random_password
from tests.support.accounts.administration import find_last_event, get_shared_administrator
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_project,
    make_user,
    now,
    set_state,
    signed_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token, script_of
from tests.support.accounts.team import give_role
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

PUBLIC = {
    *("id", "username", "name", "state", "public_email", "avatar_url", "web_url", "bot"),
    "created_at",
}
OF_ADMINISTRATORS = {
    *("email", "confirmed_at", "is_admin", "last_sign_in_at", "two_factor_enabled", "time_zone"),
    "identities",
}
PASSWORD = "a guess takes longer than this"


@cache
def token_of(gatebell: LiveGatebell, person: Person) -> str:
    return make_token(gatebell, person).clear


def call(
    gatebell: LiveGatebell,
    method: str,
    path: str = "",
    *,
    person: Person | None = None,
    release: str = "18.0",
    **body: Any,
) -> requests.Response:
    """Send a request as a user, by default as the administrator."""
    token = token_of(gatebell, person or get_shared_administrator(gatebell))
    return machine(gatebell).request(
        method,
        f"{gatebell.url}/api/v4/users{path}",
        headers={"PRIVATE-TOKEN": token, "Platform-Release": release},
        json=body or None,
    )


def id_of(gatebell: LiveGatebell, person: Person) -> int:
    return make_token(gatebell, person).user_id


def create(gatebell: LiveGatebell, **changes: Any) -> requests.Response:
    name = unique("new")
    email = f"{name}@people.example"
    given = {"username": name, "email": email, "name": "New", "password": PASSWORD, **changes}
    return call(gatebell, "POST", **given)


def signs_in(gatebell: LiveGatebell, username: str, password: str) -> requests.Response:
    browser = gatebell.http()
    page = browser.get(f"{gatebell.url}/users/sign_in")
    return submit(browser, page, form_with(page, "password"), login=username, password=password)


@pytest.mark.both_databases
@pytest.mark.spec("G1")
def test_users_find_each_other_by_name_but_cannot_see_addresses(gatebell: LiveGatebell) -> None:
    found_one, asking = make_user(gatebell, name="bob"), alice(gatebell)
    name = found_one.username

    (found,) = call(gatebell, "GET", f"?username={name.upper()}", person=asking).json()
    (searched,) = call(gatebell, "GET", f"?search={name}", person=asking).json()
    shown = call(gatebell, "GET", f"/{found['id']}", person=asking).json()

    assert found == searched == shown
    assert set(found) == PUBLIC
    assert (found["username"], found["state"], found["bot"]) == (name, "active", False)
    assert machine(gatebell).get(found["avatar_url"]).status_code == 200
    query = f"?search={found_one.email}"
    assert call(gatebell, "GET", query, person=asking).json() == []
    (of_root,) = call(gatebell, "GET", query).json()
    assert set(of_root) == PUBLIC | OF_ADMINISTRATORS
    assert (of_root["email"], of_root["is_admin"]) == (found_one.email, False)
    assert call(gatebell, "GET", f"/{found['id']}").json() == of_root


@pytest.mark.both_databases
def test_only_administrators_and_fellow_members_see_locked_users_and_bots(
    gatebell: LiveGatebell,
) -> None:
    owner, locked, stranger = make_user(gatebell), make_user(gatebell), alice(gatebell)
    project = make_project(gatebell, owner)
    bot = make_bot_token(
        script_of(gatebell, owner), get_namespace(gatebell, "projects", project)
    ).user_id
    give_role(gatebell, project, locked, Role.GUEST)
    locked_id = id_of(gatebell, locked)
    set_state(gatebell, locked, "locked")

    for user_id, state in ((locked_id, "blocked"), (bot, "active")):
        assert call(gatebell, "GET", f"/{user_id}", person=stranger).status_code == 404
        for person in (None, owner):
            assert call(gatebell, "GET", f"/{user_id}", person=person).json()["state"] == state
    query = f"?username={locked.username}"
    assert call(gatebell, "GET", query, person=stranger).json() == []
    listed = call(gatebell, "GET", f"{query}&blocked=true&humans=true").json()
    assert [each["id"] for each in listed] == [locked_id]
    assert call(gatebell, "GET", f"{query}&active=true").json() == []


def test_administrators_can_filter_the_list_of_users(gatebell: LiveGatebell) -> None:
    admin, person = make_user(gatebell, name="boss", admin=True), make_user(gatebell, name="boss")
    of_person, of_admin = id_of(gatebell, person), id_of(gatebell, admin)
    since = (now() + timedelta(days=1)).isoformat().replace("+", "%2B")
    expected = {
        "&sort=asc": [of_admin, of_person],
        "&admins=true": [of_admin],
        "&two_factor=enabled": [],
        "&two_factor=disabled&active=true": [of_person, of_admin],
        f"&created_after={since}": [],
        f"&created_before={since}": [of_person, of_admin],
    }
    found = {more: call(gatebell, "GET", f"?search=boss{more}").json() for more in expected}
    ids = {more: [each["id"] for each in listed] for more, listed in found.items()}
    assert ids == expected
    for query in ("admins=true", "two_factor=enabled"):
        assert call(gatebell, "GET", f"?{query}", person=alice(gatebell)).status_code == 403


def test_an_invalid_parameter_of_the_list_is_rejected(gatebell: LiveGatebell) -> None:
    for query in (
        *("active=maybe", "active=true&blocked=true", "order_by=email", "cursor=x"),
        *("order_by=name", "pagination=keyset&cursor=x", "username=%00", "created_after=soon"),
        "per_page=-1",
    ):
        answer = call(gatebell, "GET", f"?{query}")
        assert (answer.status_code, set(answer.json())) == (400, {"error", "errors"}), query


@pytest.mark.both_databases
@pytest.mark.spec("M2")
def test_the_list_has_no_numbered_pages_since_release_17(gatebell: LiveGatebell) -> None:
    ids = [id_of(gatebell, make_user(gatebell, name="paged")) for _ in range(3)]
    token = make_token(gatebell, alice(gatebell)).clear
    headers = {"PRIVATE-TOKEN": token}

    answer = call(gatebell, "GET", "?search=paged&per_page=1")
    seen = [each["id"] for each in answer.json()]
    while following := answer.links.get("next"):
        assert set(answer.links) == {"next"}
        assert "X-Total" not in answer.headers
        answer = machine(gatebell).get(following["url"], headers=headers)
        seen += [each["id"] for each in answer.json()]

    assert [each for each in seen if each in ids] == ids[::-1]
    refused = call(gatebell, "GET", "?page=2")
    assert refused.status_code == 400
    assert "keyset" in refused.json()["error"]
    assert call(gatebell, "GET", "?page=2", release="16.11").headers["X-Total-Pages"]
    assert "X-Total" not in call(gatebell, "GET", "?pagination=offset").headers


@pytest.mark.both_databases
def test_an_account_is_created_with_a_password_that_must_be_changed(gatebell: LiveGatebell) -> None:
    answer = create(gatebell, admin=True)

    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert set(made) == PUBLIC | OF_ADMINISTRATORS
    assert (made["name"], made["is_admin"]) == ("New", True)
    event = find_last_event(gatebell, made["username"])
    assert (event.kind, event.details) == ("user.created", {"administrator": True})
    assert signs_in(gatebell, made["username"], PASSWORD).status_code == 302
    with database_of(gatebell) as session:
        assert get_user(made["username"], session=session).must_change_password


def test_a_generated_password_is_shown_once(gatebell: LiveGatebell) -> None:
    given = {"force_random_password": True, "time_zone": "europe/berlin"}
    answer = create(gatebell, password=None, **given)

    assert answer.headers["Cache-Control"] == "no-store"
    made = answer.json()
    assert made["time_zone"] == "Europe/Berlin"
    assert signs_in(gatebell, made["username"], made["generated_password"]).status_code == 302
    assert "generated_password" not in call(gatebell, "GET", f"/{made['id']}").json()


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"username": None}, "username"),
    ({"username": "a b"}, "username"),
    ({"username": ["x"]}, "username"),
    ({"email": "nowhere"}, "email"),
    ({"email": ""}, "email"),
    ({"name": "a\nb"}, "name"),
    ({"name": "nul\0"}, "name"),
    ({"password": None}, "password"),
    ({"password": "short"}, "password"),
    ({"force_random_password": True}, "password"),
    ({"admin": "maybe"}, "admin"),
    ({"time_zone": "Mars"}, "time_zone"),
)


def test_an_invalid_field_of_a_new_account_is_named(gatebell: LiveGatebell) -> None:
    for changes, field in WRONG:
        answer = create(gatebell, **changes)
        assert answer.status_code == 400, answer.text
        assert [each["field"] for each in answer.json()["errors"]] == [field]


@pytest.mark.both_databases
def test_only_one_of_parallel_accounts_with_a_name_is_created(gatebell: LiveGatebell) -> None:
    name = unique("twin")
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: create(gatebell, username=name), range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


@pytest.mark.both_databases
def test_an_administrator_changes_only_the_given_fields(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    path = f"/{id_of(gatebell, person)}"

    renamed = call(gatebell, "PUT", path, name="Somebody Else").json()
    assert (renamed["name"], renamed["email"]) == ("Somebody Else", person.email)
    moved = call(gatebell, "PUT", path, email=f"x{person.email}", admin=True).json()
    assert (moved["name"], moved["email"], moved["is_admin"]) == (
        "Somebody Else",
        f"x{person.email}",
        True,
    )
    event = find_last_event(gatebell, person.username)
    assert event.details == {"changed": "email, is_admin", "administrator": True}
    unchanged = call(gatebell, "PUT", path, email=f"x{person.email}")
    assert (unchanged.status_code, unchanged.json()) == (200, moved)
    assert find_last_event(gatebell, person.username).id == event.id
    assert call(gatebell, "PUT", path, admin=False).json()["is_admin"] is False
    name = unique("renamed")
    changed = call(gatebell, "PUT", path, username=name, time_zone="europe/berlin").json()
    assert (changed["username"], changed["time_zone"]) == (name, "Europe/Berlin")
    assert find_last_event(gatebell, name).details["before"] == person.username
    assert call(gatebell, "PUT", path, username="a b").status_code == 400
    assert call(gatebell, "PUT", path, time_zone="Mars").status_code == 400


@pytest.mark.both_databases
def test_a_password_that_cannot_be_changed_is_rejected(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    path = f"/{id_of(gatebell, person)}"
    refused = call(gatebell, "PUT", path, name="Somebody Else", password=generate_random_password())
    assert refused.status_code == 400
    assert "`password` cannot be changed." in refused.text
    assert call(gatebell, "GET", path).json()["name"] != "Somebody Else"


def test_administrators_cannot_lock_themselves_out(gatebell: LiveGatebell) -> None:
    admin = make_user(gatebell, admin=True)
    own = f"/{id_of(gatebell, admin)}"
    for method, path, body in (
        ("POST", f"{own}/block", {}),
        ("PUT", own, {"admin": False}),
        ("PUT", own, {"email": "other@people.example"}),
        ("DELETE", own, {}),
    ):
        assert call(gatebell, method, path, person=admin, **body).status_code == 409, path
    taken = call(gatebell, "PUT", f"/{id_of(gatebell, make_user(gatebell))}", email=admin.email)
    assert taken.status_code == 409


def test_a_bot_cannot_be_changed(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell)
    namespace = get_namespace(gatebell, "projects", make_project(gatebell, owner))
    bot = make_bot_token(script_of(gatebell, owner), namespace)
    assert call(gatebell, "PUT", f"/{bot.user_id}", name="x").status_code == 409
    own = machine(gatebell).put(
        f"{gatebell.url}/api/v4/user", headers={"PRIVATE-TOKEN": bot.clear}, json={"name": "x"}
    )
    assert own.status_code == 403


@pytest.mark.both_databases
def test_a_blocked_user_is_signed_out_until_the_unblock(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = make_token(gatebell, person)
    browser = signed_in(gatebell, person)

    def answers() -> tuple[int, int]:
        own = machine(gatebell).get(
            f"{gatebell.url}/api/v4/user", headers={"PRIVATE-TOKEN": token.clear}
        )
        page = browser.get(f"{gatebell.url}/-/user_settings/profile", allow_redirects=False)
        return own.status_code, page.status_code

    assert answers() == (200, 200)
    blocked = call(gatebell, "POST", f"/{token.user_id}/block")
    assert (blocked.status_code, blocked.json()) == (201, True)
    assert answers() == (401, 302)
    assert find_last_event(gatebell, person.username).kind == "user.locked"
    assert call(gatebell, "GET", f"/{token.user_id}").json()["state"] == "blocked"
    unblocked = call(gatebell, "POST", f"/{token.user_id}/unblock")
    assert (unblocked.status_code, unblocked.json()) == (201, True)
    assert answers() == (200, 302)
    assert find_last_event(gatebell, person.username).kind == "user.unlocked"


@pytest.mark.both_databases
def test_users_can_change_their_own_name(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    token = make_token(gatebell, person).clear

    def own(method: str, **body: str) -> requests.Response:
        return machine(gatebell).request(
            method,
            f"{gatebell.url}/api/v4/user",
            headers={"PRIVATE-TOKEN": token},
            json=body or None,
        )

    changed = own("PUT", name="Alice the Second", email="thief@people.example")
    assert changed.status_code == 200
    assert changed.json() == own("GET").json()
    assert (changed.json()["name"], changed.json()["email"]) == ("Alice the Second", person.email)
    for name in ("", "x" * 101, "a\nb"):
        assert own("PUT", name=name).status_code == 400


def test_an_unknown_user_is_not_found(gatebell: LiveGatebell) -> None:
    for user_id in (999_999_999, 2**200):
        assert call(gatebell, "PUT", f"/{user_id}", name="x").status_code == 404
        for method, path in (("GET", ""), ("POST", "/block")):
            assert call(gatebell, method, f"/{user_id}{path}").status_code == 404
        seen = call(gatebell, "GET", f"/{user_id}", person=alice(gatebell))
        assert seen.status_code == 404
