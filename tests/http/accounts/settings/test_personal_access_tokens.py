"""Tests that create, rotate and revoke personal access tokens, in the API and on their page."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from html import unescape
from typing import Any

import pytest
import requests

from tests.support.accounts.people import bob, make_application, make_user, now, open_browser
from tests.support.accounts.personal_tokens import Api, MadeToken, change, make_token
from tests.support.oauth.oauth_wire import new_pair
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("sqlite")

# API


DAY = timedelta(days=1)


def day(days: int) -> str:
    return (now() + days * DAY).date().isoformat()


def status(gatebell: LiveGatebell, token: str) -> int:
    return Api(gatebell, token).send_request("GET", "/user").status_code


@pytest.mark.spec("G4")
@pytest.mark.parametrize("path", ["self", "id"])
def test_rotating_returns_a_new_token_and_revokes_the_old_one(
    gatebell: LiveGatebell, path: str
) -> None:
    old = make_token(gatebell, make_user(gatebell), name="backup", scopes="api read_user")
    script = Api(gatebell, old.clear)

    answer = script.send_token_request("POST", f"/{old.id if path == 'id' else path}/rotate")

    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    new = answer.json()
    assert new["token"].startswith("gbp-")
    assert new["id"] != old.id
    assert (new["name"], new["scopes"]) == ("backup", ["api", "read_user"])
    assert (new["user_id"], new["active"], new["last_used_at"]) == (old.user_id, True, None)
    # Clients of GitLab's API expect a lifetime of a week if they give no date.
    assert new["expires_at"] == day(7)
    refused = script.send_request("GET", "/user")
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
        answer = script.send_token_request("POST", "/self/rotate", **options)
        assert answer.json()["expires_at"] == day(30), body


@pytest.mark.spec("G4")
def test_an_invalid_expiry_is_rejected_and_the_token_stays_valid(gatebell: LiveGatebell) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)

    days: tuple[Any, ...] = (day(-1), day(0), day(366), "soon", "2026-13-01", 5, ["x"], {})
    for expires_at in days:
        answer = script.send_token_request("POST", "/self/rotate", json={"expires_at": expires_at})
        assert answer.status_code == 400, expires_at
        assert set(answer.json()) == {"error", "errors"}, expires_at

    assert script.send_request("GET", "/user").status_code == 200


@pytest.mark.spec("G4")
@pytest.mark.parametrize("dead", ["revoked_at", "expires_at"])
def test_an_inactive_token_is_not_rotated(gatebell: LiveGatebell, dead: str) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    old = make_token(gatebell, alice)
    change(gatebell, old.id, **{dead: now() - DAY})

    answer = script.send_token_request("POST", f"/{old.id}/rotate")

    assert answer.status_code == 400
    assert "Create a new token" in answer.json()["error"]
    assert len(script.list_token_ids()) == 2


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_only_one_of_parallel_rotations_succeeds(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    old = make_token(gatebell, alice)

    with ThreadPoolExecutor(12) as pool:
        answers = list(
            pool.map(lambda _: script.send_token_request("POST", f"/{old.id}/rotate"), range(12))
        )

    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 11]
    assert len(script.list_token_ids(state="active")) == 2


@pytest.mark.spec("G4")
def test_an_oauth_token_is_not_rotated(gatebell: LiveGatebell) -> None:
    everything = make_application(gatebell, bob(gatebell), trusted=True, scopes="api")
    script = Api(gatebell, new_pair(gatebell, everything).access)

    answer = script.send_token_request("POST", "/self/rotate")

    assert answer.status_code == 405
    assert answer.headers["Allow"] == ""
    assert answer.json()["message"].startswith("405 Method Not Allowed")
    assert script.send_request("GET", "/user").status_code == 200


@pytest.mark.spec("G5")
def test_only_tokens_with_the_api_scope_can_change_tokens(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    other = make_token(gatebell, alice)

    for scope in ("read_api", "read", "read_user", "write_alerts"):
        script = Api(gatebell, make_token(gatebell, alice, scopes=scope).clear)
        refused = [
            script.send_token_request("POST", "/self/rotate"),
            script.send_token_request("POST", f"/{other.id}/rotate"),
            script.send_token_request("DELETE", f"/{other.id}"),
            script.send_request("POST", f"/users/{other.user_id}/personal_access_tokens"),
        ]
        told = {(each.status_code, each.json()["scope"]) for each in refused}
        assert told == {(403, "api")}, scope

    assert status(gatebell, other.clear) == 200


@pytest.mark.spec("G4", "G5")
@pytest.mark.parametrize("scope", ["api", "read_user"])
def test_any_token_can_revoke_itself(gatebell: LiveGatebell, scope: str) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell), scopes=scope).clear)

    answer = script.send_token_request("DELETE", "/self")

    assert (answer.status_code, answer.content) == (204, b"")
    assert script.send_token_request(path="/self").json()["error"] == "invalid_token"


@pytest.mark.spec("G4")
def test_a_token_can_revoke_another_token_of_its_user(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    other = make_token(gatebell, alice)

    first, again = (script.send_token_request("DELETE", f"/{other.id}") for _ in range(2))

    assert (first.status_code, again.status_code) == (204, 204)
    assert status(gatebell, other.clear) == 401
    token = script.send_token_request(path=f"/{other.id}").json()
    assert (token["revoked"], token["active"]) == (True, False)


@pytest.mark.spec("G4")
def test_users_cannot_change_the_tokens_of_others(gatebell: LiveGatebell) -> None:
    script = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)
    bobs = make_token(gatebell, bob(gatebell))

    answers = [
        script.send_token_request("POST", f"/{bobs.id}/rotate"),
        script.send_token_request("DELETE", f"/{bobs.id}"),
        script.send_token_request("DELETE", "/999999999"),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.text for answer in answers}) == 1
    assert status(gatebell, bobs.clear) == 200


@pytest.mark.spec("G4")
def test_administrators_rotate_and_revoke_the_tokens_of_others(gatebell: LiveGatebell) -> None:
    root = Api(gatebell, make_token(gatebell, make_user(gatebell, admin=True)).clear)
    alices = make_token(gatebell, make_user(gatebell))

    rotated = root.send_token_request("POST", f"/{alices.id}/rotate").json()
    revoked = root.send_token_request("DELETE", f"/{rotated['id']}")

    assert rotated["user_id"] == alices.user_id
    assert revoked.status_code == 204
    assert status(gatebell, rotated["token"]) == 401


def root_and_user_token(gatebell: LiveGatebell) -> tuple[Api, MadeToken]:
    """Return an administrator's client, and a user's token."""
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
def test_administrators_can_create_tokens_for_users_with_a_lifetime_of_a_year(
    gatebell: LiveGatebell, body: dict[str, Any]
) -> None:
    root, alices = root_and_user_token(gatebell)

    answer = root.send_request("POST", f"/users/{alices.user_id}/personal_access_tokens", **body)

    assert answer.status_code == 201, answer.text
    token = answer.json()
    assert token["scopes"] == ["read_api", "read_user"]
    assert token["user_id"] == alices.user_id
    assert date.fromisoformat(token["expires_at"]) - now().date() == 365 * DAY
    assert status(gatebell, token["token"]) == 200


@pytest.mark.spec("G4")
def test_only_administrators_can_create_tokens_for_users(gatebell: LiveGatebell) -> None:
    root, alices = root_and_user_token(gatebell)
    body = {"name": "ci", "scopes": ["api"]}

    own = Api(gatebell, alices.clear)
    refused = own.send_request("POST", f"/users/{alices.user_id}/personal_access_tokens", json=body)
    assert refused.status_code == 403
    for user_id in ("999999999", "9" * 30):
        unknown = root.send_request("POST", f"/users/{user_id}/personal_access_tokens", json=body)
        assert unknown.status_code == 404


NO_TOKEN = (
    *(b"", b"{", b"[]", b"null", b'"x"', b"NaN", b"\xff", b"[" * 100_000, b'{"name":"\\ud800"}'),
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
def test_an_invalid_request_to_create_a_token_is_rejected_with_a_message(
    gatebell: LiveGatebell,
) -> None:
    root, alices = root_and_user_token(gatebell)

    for body in NO_TOKEN:
        answer = root.send_request(
            "POST",
            f"/users/{alices.user_id}/personal_access_tokens",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 400, (body[:99], answer.text)
        assert set(answer.json()) <= {"error", "errors"}, body[:99]
        assert answer.json()["error"], body[:99]

    assert root.list_token_ids(user_id=alices.user_id) == [alices.id]


# Page


PAGE = "/-/user_settings/access_tokens"


def shown_token(page: requests.Response) -> str:
    """Return the token that a page shows."""
    found = re.search(r'<code id="new-token">(gbp-[^<]+)</code>', page.text)
    assert found, page.text
    return found.group(1)


def create(
    browser: requests.Session, gatebell: LiveGatebell, **values: str | list[str]
) -> requests.Response:
    page = browser.get(f"{gatebell.url}{PAGE}/new")
    given: dict[str, str | list[str]] = {"name": "backup", "scopes": ["read_user"], **values}
    return submit(browser, page, form_with(page, "name"), **given)


@pytest.mark.spec("G4")
def test_a_created_token_is_shown_once_and_works(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    assert "No access tokens yet" in browser.get(gatebell.url + PAGE).text

    answer = create(browser, gatebell)
    assert answer.status_code == 302, answer.text
    page = browser.get(gatebell.url + PAGE)

    assert page.headers["Cache-Control"] == "no-store"
    token = shown_token(page)
    assert Api(gatebell, token).send_request("GET", "/user").status_code == 200
    again = browser.get(gatebell.url + PAGE)
    assert token not in again.text
    assert "gbp-" not in again.text
    assert "1 active token." in again.text
    # The page shows descriptions of scopes, and the names of scopes in hints.
    assert "Read your profile" in words(again)
    assert 'title="read_user: ' in again.text


@pytest.mark.spec("G4")
def test_a_token_without_an_expiry_expires_after_a_year(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))

    create(browser, gatebell, expires_at="")

    token = shown_token(browser.get(gatebell.url + PAGE))
    seen = Api(gatebell, token).send_token_request(path="/self").json()
    assert seen["expires_at"] == (now() + 365 * DAY).date().isoformat()


@pytest.mark.spec("G4")
def test_an_expiry_of_up_to_a_year_can_be_chosen(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    wanted = (now() + 9 * DAY).date().isoformat()

    create(browser, gatebell, expires_at=wanted)

    page = browser.get(gatebell.url + PAGE)
    seen = Api(gatebell, shown_token(page)).send_token_request(path="/self").json()
    assert seen["expires_at"] == wanted
    assert "Expires soon" in page.text


@pytest.mark.spec("G4")
def test_an_invalid_value_is_explained_next_to_its_field(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    today, too_late = ((now() + days * DAY).date().isoformat() for days in (0, 366))
    mistakes: tuple[tuple[dict[str, str | list[str]], str], ...] = (
        ({"expires_at": "0"}, "Enter a date such as"),
        ({"expires_at": today}, "The expiry date must be from"),
        ({"expires_at": too_late}, "The expiry date must be from"),
        ({"expires_at": "9999-12-31"}, "The expiry date must be from"),
        ({"name": " "}, "Enter a name that describes"),
        ({"name": "x" * 101}, "at most 100 characters"),
        ({"name": "a\x07b"}, "must not contain control characters"),
        ({"scopes": []}, "Choose at least one scope"),
        ({"scopes": ["openid"]}, "not a valid choice"),
        ({"scopes": ["root"]}, "not a valid choice"),
    )

    for values, sentence in mistakes:
        answer = create(browser, gatebell, **values)
        assert answer.status_code == 422, values
        assert sentence in words(answer), values
        assert "There is a problem" in answer.text, values

    assert "No active tokens" in browser.get(gatebell.url + PAGE).text


@pytest.mark.spec("G5")
def test_scopes_for_applications_only_are_not_offered(gatebell: LiveGatebell) -> None:
    page = open_browser(gatebell, make_user(gatebell)).get(f"{gatebell.url}{PAGE}/new")

    offered = set(re.findall(r'name="scopes" value="(\w+)"', page.text))

    assert {"api", "read_api", "read_user", "read_alerts", "write_alerts"} <= offered
    assert not offered & {"openid", "profile", "email", "offline_access"}


@pytest.mark.spec("G4")
def test_rotating_keeps_the_lifetime_and_revokes_the_old_token(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    old = make_token(gatebell, alice, name="nightly", lifetime=40 * DAY)
    browser = open_browser(gatebell, alice)

    page = browser.get(gatebell.url + PAGE)
    answer = submit(browser, page, form_to(page, f"/{old.id}/rotate"))

    assert answer.status_code == 302
    new = Api(gatebell, shown_token(browser.get(gatebell.url + PAGE)))
    assert Api(gatebell, old.clear).send_request("GET", "/user").status_code == 401
    seen = new.send_token_request(path="/self").json()
    assert (seen["name"], seen["scopes"]) == ("nightly", ["api"])
    assert seen["expires_at"] == (now() + 40 * DAY).date().isoformat()


@pytest.mark.spec("G4")
def test_a_revoked_token_is_invalid_and_moves_to_the_inactive_tab(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice, name="nightly")
    make_token(gatebell, alice, name="ended", expires_at=now() - DAY)
    browser = open_browser(gatebell, alice)

    page = browser.get(gatebell.url + PAGE)
    assert "ended" not in words(page)
    submit(browser, page, form_to(page, f"/{made.id}/revoke"))

    assert Api(gatebell, made.clear).send_request("GET", "/user").status_code == 401
    after = browser.get(gatebell.url + PAGE)
    assert "Token nightly revoked." in after.text
    assert "You have no active tokens" in after.text
    second = words(browser.get(f"{gatebell.url}{PAGE}?state=inactive"))
    assert "nightly" in second
    assert "Revoked" in second
    assert "ended" in second
    assert "Expired" in second


@pytest.mark.spec("G4")
def test_a_token_that_was_revoked_in_the_meantime_is_not_rotated(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice)
    browser = open_browser(gatebell, alice)
    page = browser.get(gatebell.url + PAGE)
    Api(gatebell, made.clear).send_token_request("DELETE", "/self")

    answer = submit(browser, page, form_to(page, f"/{made.id}/rotate"))

    assert answer.status_code == 302
    after = browser.get(gatebell.url + PAGE)
    assert "revoked or has expired" in after.text
    assert "No active tokens" in after.text


@pytest.mark.spec("G4")
@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_users_and_administrators_cannot_change_the_tokens_of_others_on_the_page(
    gatebell: LiveGatebell, action: str
) -> None:
    bobs = make_token(gatebell, bob(gatebell))
    browser = open_browser(gatebell, make_user(gatebell, name="root", admin=True))
    page = browser.get(gatebell.url + PAGE)
    token = form_to(page, "/users/sign_out").value("csrf_token")

    for number in (bobs.id, 999_999_999, 10**30):
        address = f"{gatebell.url}{PAGE}/{number}/{action}"
        answer = browser.post(address, data={"csrf_token": token}, allow_redirects=False)
        assert answer.status_code == 404

    assert Api(gatebell, bobs.clear).send_request("GET", "/user").status_code == 200


@pytest.mark.spec("G4")
def test_markup_in_a_token_name_is_escaped(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))

    create(browser, gatebell, name="<script>alert(1)</script>{{7*7}}")

    page = browser.get(gatebell.url + PAGE)
    assert "<script>alert" not in page.text
    assert "<script>alert(1)</script>{{7*7}}" in unescape(page.text)


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_long_token_lists_have_pages(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    for number in range(22):
        make_token(gatebell, alice, name=f"token-{number:02}-")
    browser = open_browser(gatebell, alice)

    def names(page: requests.Response) -> list[str]:
        return re.findall(r"<bdi>(token-\d\d)-</bdi>", page.text)

    def follow(page: requests.Response, relation: str) -> requests.Response:
        found = re.search(rf'href="([^"]+)" rel="{relation}"', page.text)
        assert found, page.text
        return browser.get(gatebell.url + unescape(found.group(1)))

    first = browser.get(gatebell.url + PAGE)
    second = follow(first, "next")

    assert names(first) == [f"token-{number:02}" for number in range(21, 1, -1)]
    assert names(second) == ["token-01", "token-00"]
    assert names(follow(second, "prev")) == names(first)
    forged = browser.get(f"{gatebell.url}{PAGE}?before=x")
    assert forged.status_code == 400
