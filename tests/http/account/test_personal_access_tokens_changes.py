"""Personal access tokens made, rotated and revoked through the API."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest

from tests.support.accounts.people import bob, make_application, make_user, now
from tests.support.accounts.personal_tokens import Api, MadeToken, change, make_token
from tests.support.oauth.oauth_wire import new_pair
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

DAY = timedelta(days=1)


def day(days: int) -> str:
    return (now() + days * DAY).date().isoformat()


def status(gatebell: LiveGatebell, token: str) -> int:
    return Api(gatebell, token).send("GET", "/user").status_code


@pytest.mark.spec("G4")
@pytest.mark.parametrize("path", ["self", "id"])
def test_rotating_gives_a_new_token_and_kills_the_old_one(
    gatebell: LiveGatebell, path: str
) -> None:
    old = make_token(gatebell, make_user(gatebell), name="backup", scopes="api read_user")
    script = Api(gatebell, old.clear)

    answer = script.tokens("POST", f"/{old.id if path == 'id' else path}/rotate")

    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    new = answer.json()
    assert new["token"].startswith("gbp-")
    assert new["id"] != old.id
    assert (new["name"], new["scopes"]) == ("backup", ["api", "read_user"])
    assert (new["user_id"], new["active"], new["last_used_at"]) == (old.user_id, True, None)
    # The API's clients count on a week when they ask for no day.
    assert new["expires_at"] == day(7)
    refused = script.send("GET", "/user")
    assert refused.status_code == 401
    assert refused.json()["error"] == "invalid_token"
    assert "revoked" in refused.json()["error_description"]
    assert status(gatebell, new["token"]) == 200


@pytest.mark.spec("G4")
def test_the_expiry_of_a_rotated_token_can_be_chosen(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    for body in ("json", "data", "params"):
        script = Api(gatebell, make_token(gatebell, alice).clear)
        options: dict[str, Any] = {body: {"expires_at": day(30)}}
        answer = script.tokens("POST", "/self/rotate", **options)
        assert answer.json()["expires_at"] == day(30), body


@pytest.mark.spec("G4")
def test_a_day_that_cannot_be_is_refused_and_the_token_lives_on(gatebell: LiveGatebell) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)

    days: tuple[Any, ...] = (day(-1), day(0), day(366), "soon", "2026-13-01", 5, ["x"], {})
    for expires_at in days:
        answer = script.tokens("POST", "/self/rotate", json={"expires_at": expires_at})
        assert answer.status_code == 400, expires_at
        assert set(answer.json()) == {"error", "errors"}, expires_at

    assert script.send("GET", "/user").status_code == 200


@pytest.mark.spec("G4")
@pytest.mark.parametrize("dead", ["revoked_at", "expires_at"])
def test_a_dead_token_is_not_rotated(gatebell: LiveGatebell, dead: str) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    old = make_token(gatebell, alice)
    change(gatebell, old.id, **{dead: now() - DAY})

    answer = script.tokens("POST", f"/{old.id}/rotate")

    assert answer.status_code == 400
    assert "Create a new one" in answer.json()["error"]
    assert len(script.listed()) == 2


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_of_parallel_rotations_one_wins(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    old = make_token(gatebell, alice)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: script.tokens("POST", f"/{old.id}/rotate"), range(12)))

    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 11]
    assert len(script.listed(state="active")) == 2


@pytest.mark.spec("G4")
def test_an_oauth_token_is_not_rotated(gatebell: LiveGatebell) -> None:
    everything = make_application(gatebell, bob(gatebell), trusted=True, scopes="api")
    script = Api(gatebell, new_pair(gatebell, everything).access)

    answer = script.tokens("POST", "/self/rotate")

    assert answer.status_code == 405
    assert answer.headers["Allow"] == ""
    assert answer.json()["message"].startswith("405 Method Not Allowed")
    assert script.send("GET", "/user").status_code == 200


@pytest.mark.spec("G5")
def test_only_the_scope_api_changes_tokens(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    other = make_token(gatebell, alice)

    for scope in ("read_api", "read", "read_user", "write_alerts"):
        script = Api(gatebell, make_token(gatebell, alice, scopes=scope).clear)
        refused = [
            script.tokens("POST", "/self/rotate"),
            script.tokens("POST", f"/{other.id}/rotate"),
            script.tokens("DELETE", f"/{other.id}"),
            script.send("POST", f"/users/{other.user_id}/personal_access_tokens"),
        ]
        told = {(each.status_code, each.json()["scope"]) for each in refused}
        assert told == {(403, "api")}, scope

    assert status(gatebell, other.clear) == 200


@pytest.mark.spec("G4", "G5")
@pytest.mark.parametrize("scope", ["api", "read_user"])
def test_any_token_may_revoke_itself(gatebell: LiveGatebell, scope: str) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell), scopes=scope).clear)

    answer = script.tokens("DELETE", "/self")

    assert (answer.status_code, answer.content) == (204, b"")
    assert script.tokens(path="/self").json()["error"] == "invalid_token"


@pytest.mark.spec("G4")
def test_a_token_revokes_another_one_of_its_user(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    other = make_token(gatebell, alice)

    first, again = (script.tokens("DELETE", f"/{other.id}") for _ in range(2))

    assert (first.status_code, again.status_code) == (204, 204)
    assert status(gatebell, other.clear) == 401
    token = script.tokens(path=f"/{other.id}").json()
    assert (token["revoked"], token["active"]) == (True, False)


@pytest.mark.spec("G4")
def test_nobody_changes_the_tokens_of_others(gatebell: LiveGatebell) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)
    bobs = make_token(gatebell, bob(gatebell))

    answers = [
        script.tokens("POST", f"/{bobs.id}/rotate"),
        script.tokens("DELETE", f"/{bobs.id}"),
        script.tokens("DELETE", "/999999999"),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.text for answer in answers}) == 1
    assert status(gatebell, bobs.clear) == 200


@pytest.mark.spec("G4")
def test_administrators_rotate_and_revoke_the_tokens_of_others(gatebell: LiveGatebell) -> None:
    root = Api(gatebell, make_token(gatebell, make_user(gatebell, admin=True)).clear)
    alices = make_token(gatebell, make_user(gatebell))

    rotated = root.tokens("POST", f"/{alices.id}/rotate").json()
    revoked = root.tokens("DELETE", f"/{rotated['id']}")

    assert rotated["user_id"] == alices.user_id
    assert revoked.status_code == 204
    assert status(gatebell, rotated["token"]) == 401


def of_root(gatebell: LiveGatebell) -> tuple[Api, MadeToken]:
    """Return an administrator's script, and a token of somebody's."""
    root = make_token(gatebell, make_user(gatebell, name="root", admin=True))
    return Api(gatebell, root.clear), make_token(gatebell, make_user(gatebell))


@pytest.mark.spec("G4")
@pytest.mark.parametrize(
    "body",
    [
        {"json": {"name": "ci", "scopes": ["read_user", "read_api"]}},
        {"data": {"name": "ci", "scopes[]": ["read_user", "read_api"]}},
        {"data": {"name": "ci", "scopes": "read_user,read_api"}},
    ],
)
def test_administrators_create_tokens_for_users_which_live_for_a_year(
    gatebell: LiveGatebell, body: dict[str, Any]
) -> None:
    root, alices = of_root(gatebell)

    answer = root.send("POST", f"/users/{alices.user_id}/personal_access_tokens", **body)

    assert answer.status_code == 201, answer.text
    token = answer.json()
    assert token["scopes"] == ["read_api", "read_user"]
    assert token["user_id"] == alices.user_id
    assert date.fromisoformat(token["expires_at"]) - now().date() == 365 * DAY
    assert status(gatebell, token["token"]) == 200


@pytest.mark.spec("G4")
def test_only_administrators_create_tokens_for_users(gatebell: LiveGatebell) -> None:
    root, alices = of_root(gatebell)
    body = {"name": "ci", "scopes": ["api"]}

    own = Api(gatebell, alices.clear)
    refused = own.send("POST", f"/users/{alices.user_id}/personal_access_tokens", json=body)
    assert refused.status_code == 403
    for user_id in ("999999999", "9" * 30):
        unknown = root.send("POST", f"/users/{user_id}/personal_access_tokens", json=body)
        assert unknown.status_code == 404


NO_TOKEN = (
    *(
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"NaN",
        b"\xff",
        b"[" * 100_000,
        b'{"name":"\\ud800"}',
    ),
    b'{"scopes":["api"]}',
    b'{"name":"","scopes":["api"]}',
    b'{"name":5,"scopes":["api"]}',
    b'{"name":"a\\u0000b","scopes":["api"]}',
    b'{"name":"' + b"x" * 101 + b'","scopes":["api"]}',
    b'{"name":"a"}',
    b'{"name":"a","scopes":[]}',
    b'{"name":"a","scopes":5}',
    b'{"name":"a","scopes":[5]}',
    b'{"name":"a","scopes":["root"]}',
    b'{"name":"a","scopes":["openid"]}',
    b'{"name":"a","scopes":["api"],"expires_at":"never"}',
)


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_body_that_makes_no_token_is_refused_in_words(gatebell: LiveGatebell) -> None:
    root, alices = of_root(gatebell)

    for body in NO_TOKEN:
        answer = root.send(
            "POST",
            f"/users/{alices.user_id}/personal_access_tokens",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 400, (body[:99], answer.text)
        assert set(answer.json()) <= {"error", "errors"}, body[:99]
        assert answer.json()["error"], body[:99]

    assert root.listed(user_id=alices.user_id) == [alices.id]
