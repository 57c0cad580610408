"""Tests of reading `/api/v4/personal_access_tokens`."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.accounts.people import Person, make_user, now
from tests.support.accounts.personal_tokens import ADDRESS, Api, change, make_token
from tests.support.oauth.oauth_wire import machine, new_pair, server_application
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

DAY = timedelta(days=1)
FIELDS = {
    *("id", "name", "revoked", "created_at", "scopes", "user_id", "last_used_at", "active"),
    *("expires_at", "description"),
}


def api(gatebell: LiveGatebell, person: Person, scopes: str = "api") -> Api:
    return Api(gatebell, make_token(gatebell, person, name="the one in use", scopes=scopes).clear)


@pytest.mark.spec("G4")
def test_a_listed_token_has_the_fields_of_the_gitlab_api(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice, name="backup", scopes="read_alerts read_api")

    listed = Api(gatebell, made.clear).send_token_request().json()

    assert [set(each) for each in listed] == [FIELDS]
    (token,) = listed
    assert token["id"] == made.id
    assert token["name"] == "backup"
    assert token["scopes"] == ["read_api", "read_alerts"]
    assert token["user_id"] == made.user_id
    assert (token["active"], token["revoked"]) == (True, False)
    assert token["expires_at"] == (now() + 100 * DAY).date().isoformat()
    assert datetime.fromisoformat(token["created_at"]).tzinfo == UTC


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_users_see_only_their_own_tokens_newest_first(gatebell: LiveGatebell) -> None:
    alice, bob = make_user(gatebell), make_user(gatebell, name="bob")
    first, second = make_token(gatebell, alice), make_token(gatebell, alice)
    other = make_token(gatebell, bob)
    script = Api(gatebell, second.clear)

    assert script.list_token_ids() == [second.id, first.id]
    assert script.list_token_ids(user_id=second.user_id) == [second.id, first.id]
    assert script.list_token_ids(user_id=other.user_id) == []


@pytest.mark.spec("G4")
def test_administrators_see_all_tokens_and_can_filter_by_user(gatebell: LiveGatebell) -> None:
    alices = make_token(gatebell, make_user(gatebell))
    root = api(gatebell, make_user(gatebell, name="root", admin=True), "read_api")

    assert root.list_token_ids(user_id=alices.user_id) == [alices.id]
    assert alices.id in root.list_token_ids(per_page=100)
    assert root.send_token_request(path=f"/{alices.id}").json()["user_id"] == alices.user_id
    assert root.send_token_request(path="/999999999").status_code == 404


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_the_list_of_tokens_can_be_filtered(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    script = api(gatebell, alice)
    own = script.send_token_request(path="/self").json()["id"]
    long_ago = now() - 50 * DAY
    old = make_token(gatebell, alice, name="Old 100%", created_at=long_ago, last_used_at=long_ago)
    dead = make_token(gatebell, alice, name="dead", revoked_at=now())
    over = make_token(gatebell, alice, name="over", expires_at=now() - DAY)
    border = (now() - 10 * DAY).isoformat()

    expected: dict[tuple[str, str], list[int]] = {
        ("state", "active"): [old.id, own],
        ("state", "inactive"): [over.id, dead.id],
        ("revoked", "true"): [dead.id],
        ("revoked", "false"): [over.id, old.id, own],
        ("search", "oLd 100%"): [old.id],
        **{("search", each): [] for each in ("_", "\x00", "'; --", "\N{PILE OF POO}")},
        ("created_before", border): [old.id],
        ("created_after", border): [over.id, dead.id, own],
        ("last_used_before", border): [old.id],
        ("last_used_after", border): [own],
        ("expires_before", now().date().isoformat()): [over.id],
        ("expires_after", (now() + 99 * DAY).date().isoformat()): [dead.id, old.id, own],
    }
    assert {query: script.list_token_ids(**dict([query])) for query in expected} == expected


SORTED = {
    "created_asc": "abc",
    "created_desc": "cba",
    "name_asc": "bac",
    "name_desc": "cab",
    "expires_asc": "cab",
    "expires_desc": "bac",
    "last_used_asc": "abc",
    "last_used_desc": "bac",
}


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_the_list_of_tokens_can_be_sorted_with_unused_tokens_last(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    ago = {letter: now() - days * DAY for letter, days in (("a", 9), ("b", 8), ("c", 7))}
    made = {
        "a": make_token(gatebell, alice, name="m", lifetime=20 * DAY, last_used_at=ago["a"]),
        "b": make_token(gatebell, alice, name="k", lifetime=30 * DAY, last_used_at=ago["b"]),
        "c": make_token(gatebell, alice, name="z", lifetime=10 * DAY),
    }
    for letter, token in made.items():
        change(gatebell, token.id, created_at=ago[letter])
    letters = {token.id: letter for letter, token in made.items()}
    root = api(gatebell, make_user(gatebell, name="root", admin=True))

    found = {sort: root.list_token_ids(user_id=made["a"].user_id, sort=sort) for sort in SORTED}

    assert {sort: "".join(map(letters.__getitem__, ids)) for sort, ids in found.items()} == SORTED


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_the_list_of_tokens_has_linked_pages(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = [make_token(gatebell, alice).id for _ in range(4)]
    script = api(gatebell, alice)

    answer = script.send_token_request(params={"per_page": 2, "page": 2, "state": "active"})

    assert [each["id"] for each in answer.json()] == made[2:0:-1]
    headers = {name: answer.headers[f"X-{name}"] for name in ("Total", "Total-Pages", "Page")}
    assert headers == {"Total": "5", "Total-Pages": "3", "Page": "2"}
    assert answer.headers["X-Per-Page"] == "2"
    assert (answer.headers["X-Prev-Page"], answer.headers["X-Next-Page"]) == ("1", "3")
    assert set(answer.links) == {"prev", "next", "first", "last"}
    last = script.gatebell.url + ADDRESS + "?state=active&page=3&per_page=2"
    assert answer.links["last"]["url"] == answer.links["next"]["url"] == last
    followed = machine(gatebell).get(last, headers={"PRIVATE-TOKEN": script.token})
    assert [each["id"] for each in followed.json()] == made[:1]
    assert followed.headers["X-Next-Page"] == ""
    assert set(followed.links) == {"prev", "first", "last"}
    beyond = script.send_token_request(params={"page": 7, "per_page": 5000})
    assert (beyond.json(), beyond.headers["X-Per-Page"]) == ([], "100")
    assert set(beyond.links) == {"first", "last"}


@pytest.mark.spec("G1")
@pytest.mark.rfc("rfc6750-5.3-b")
def test_a_link_to_the_next_page_does_not_contain_the_token(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    token = make_token(gatebell, alice).clear
    make_token(gatebell, alice)

    query: dict[str, str | int] = {"access_token": token, "per_page": 1, "search": "s"}
    answer = machine(gatebell).get(gatebell.url + ADDRESS, params=query)

    assert answer.status_code == 200
    assert token not in str(answer.headers)
    asked = parse_qs(urlsplit(answer.links["next"]["url"]).query)
    assert asked == {"search": ["s"], "page": ["2"], "per_page": ["1"]}


UNREADABLE = (
    *("state=alive", "revoked=perhaps", "sort=name", "sort=token_asc"),
    *("page=-1", "page=x", "page=99999999999999999999", "per_page=-1", "per_page=²"),
    *("user_id=me", "user_id=99999999999999999999", "created_after=yesterday"),
    *("expires_before=2026-02-30", "last_used_after=0001-01-01T00:00:00%2B14:00"),
)


@pytest.mark.spec("G4")
def test_an_invalid_parameter_is_named(gatebell: LiveGatebell) -> None:
    script = api(gatebell, make_user(gatebell))

    for query in UNREADABLE:
        answer = script.send_token_request(path=f"?{query}")
        assert answer.status_code == 400, (query, answer.text)
        assert set(answer.json()) == {"error", "errors"}
        assert answer.json()["error"].startswith(f"`{query.partition('=')[0]}`")


@pytest.mark.spec("G4")
def test_a_token_of_another_user_looks_like_an_unknown_token(gatebell: LiveGatebell) -> None:
    script = api(gatebell, make_user(gatebell))
    other = make_token(gatebell, make_user(gatebell, name="bob"))

    foreign = script.send_token_request(path=f"/{other.id}")

    assert foreign.status_code == 404
    unknown = script.send_token_request(path="/999999999")
    assert (unknown.status_code, unknown.json()) == (404, foreign.json())
    assert script.send_token_request(path="/99999999999999999999999").status_code == 404


@pytest.mark.spec("G4")
def test_an_oauth_token_can_list_personal_access_tokens_but_not_itself(
    gatebell: LiveGatebell,
) -> None:
    access = new_pair(gatebell, server_application(gatebell)).access
    script = Api(gatebell, access)

    assert script.send_token_request().status_code == 200
    for method in ("GET", "DELETE"):
        assert script.send_token_request(method, "/self").status_code == 404
    assert script.send_request("GET", "/user").status_code == 200


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_the_last_use_is_recorded_to_the_minute(gatebell: LiveGatebell) -> None:
    made = make_token(gatebell, make_user(gatebell))
    script = Api(gatebell, made.clear)

    script.send_request("GET", "/user")
    first = datetime.fromisoformat(script.send_token_request(path="/self").json()["last_used_at"])
    assert abs(now() - first) < timedelta(seconds=30)

    for ago, is_kept in ((timedelta(seconds=20), True), (timedelta(minutes=2), False)):
        moment = (now() - ago).replace(microsecond=0)
        change(gatebell, made.id, last_used_at=moment)
        script.send_request("GET", "/user")
        seen = datetime.fromisoformat(
            script.send_token_request(path="/self").json()["last_used_at"]
        )
        assert (seen == moment) is is_kept


@pytest.mark.spec("G4")
def test_a_rejected_request_does_not_count_as_use(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    small = make_token(gatebell, alice, scopes="read_repository")
    assert Api(gatebell, small.clear).send_request("GET", "/user").status_code == 403

    token = api(gatebell, alice).send_token_request(path=f"/{small.id}").json()

    assert token["last_used_at"] is None
