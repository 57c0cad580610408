"""The page of personal access tokens."""

import re
from datetime import timedelta
from html import unescape

import pytest
import requests

from tests.support.accounts.people import bob, make_user, now, open_browser
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

PAGE = "/-/user_settings/access_tokens"
DAY = timedelta(days=1)


def shown_token(page: requests.Response) -> str:
    """Return the token that a page shows."""
    found = re.search(r'<code id="new-token">(gbp-[^<]+)</code>', page.text)
    assert found, page.text
    return found.group(1)


def words(page: requests.Response) -> str:
    """Return what a page says, without its markup."""
    return unescape(re.sub(r"<[^>]+>", "", page.text))


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
    assert Api(gatebell, token).send("GET", "/user").status_code == 200
    again = browser.get(gatebell.url + PAGE)
    assert token not in again.text
    assert "gbp-" not in again.text
    assert "1 active token." in again.text
    # Scopes are said in words; their names are in the hints.
    assert "Read your profile" in words(again)
    assert 'title="read_user: ' in again.text


@pytest.mark.spec("G4")
def test_a_token_without_an_expiry_gets_one_a_year_ahead(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))

    create(browser, gatebell, expires_at="")

    token = shown_token(browser.get(gatebell.url + PAGE))
    seen = Api(gatebell, token).tokens(path="/self").json()
    assert seen["expires_at"] == (now() + 365 * DAY).date().isoformat()


@pytest.mark.spec("G4")
def test_an_expiry_of_up_to_a_year_can_be_chosen(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    wanted = (now() + 9 * DAY).date().isoformat()

    create(browser, gatebell, expires_at=wanted)

    page = browser.get(gatebell.url + PAGE)
    seen = Api(gatebell, shown_token(page)).tokens(path="/self").json()
    assert seen["expires_at"] == wanted
    assert "Expires soon" in page.text


@pytest.mark.spec("G4")
def test_what_makes_no_token_is_explained_beside_its_field(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    today, too_late = ((now() + days * DAY).date().isoformat() for days in (0, 366))
    mistakes: tuple[tuple[dict[str, str | list[str]], str], ...] = (
        ({"expires_at": "0"}, "Enter a date such as"),
        ({"expires_at": today}, "The expiry must be a day from"),
        ({"expires_at": too_late}, "The expiry must be a day from"),
        ({"expires_at": "9999-12-31"}, "The expiry must be a day from"),
        ({"name": " "}, "Enter a name that describes"),
        ({"name": "x" * 101}, "at most 100 characters"),
        ({"name": "a\x07b"}, "may not contain control characters"),
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
def test_scopes_that_only_make_sense_for_applications_are_not_offered(
    gatebell: LiveGatebell,
) -> None:
    page = open_browser(gatebell, make_user(gatebell)).get(f"{gatebell.url}{PAGE}/new")

    offered = set(re.findall(r'name="scopes" value="(\w+)"', page.text))

    assert {"api", "read_api", "read_user", "read_alerts", "write_alerts"} <= offered
    assert not offered & {"openid", "profile", "email", "offline_access"}


@pytest.mark.spec("G4")
def test_rotating_shows_a_new_value_for_as_long_and_kills_the_old_one(
    gatebell: LiveGatebell,
) -> None:
    alice = make_user(gatebell)
    old = make_token(gatebell, alice, name="nightly", lifetime=40 * DAY)
    browser = open_browser(gatebell, alice)

    page = browser.get(gatebell.url + PAGE)
    answer = submit(browser, page, form_to(page, f"/{old.id}/rotate"))

    assert answer.status_code == 302
    new = Api(gatebell, shown_token(browser.get(gatebell.url + PAGE)))
    assert Api(gatebell, old.clear).send("GET", "/user").status_code == 401
    seen = new.tokens(path="/self").json()
    assert (seen["name"], seen["scopes"]) == ("nightly", ["api"])
    assert seen["expires_at"] == (now() + 40 * DAY).date().isoformat()


@pytest.mark.spec("G4")
def test_a_revoked_token_is_dead_and_moves_to_the_second_tab(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice, name="nightly")
    make_token(gatebell, alice, name="ended", expires_at=now() - DAY)
    browser = open_browser(gatebell, alice)

    page = browser.get(gatebell.url + PAGE)
    assert "ended" not in words(page)
    submit(browser, page, form_to(page, f"/{made.id}/revoke"))

    assert Api(gatebell, made.clear).send("GET", "/user").status_code == 401
    after = browser.get(gatebell.url + PAGE)
    assert "The token nightly is revoked." in after.text
    assert "You have no active tokens" in after.text
    second = words(browser.get(f"{gatebell.url}{PAGE}?state=inactive"))
    assert "nightly" in second
    assert "Revoked" in second
    assert "ended" in second
    assert "Expired" in second


@pytest.mark.spec("G4")
def test_a_token_that_died_meanwhile_is_not_rotated(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice)
    browser = open_browser(gatebell, alice)
    page = browser.get(gatebell.url + PAGE)
    Api(gatebell, made.clear).tokens("DELETE", "/self")

    answer = submit(browser, page, form_to(page, f"/{made.id}/rotate"))

    assert answer.status_code == 302
    after = browser.get(gatebell.url + PAGE)
    assert "revoked or has expired" in after.text
    assert "No active tokens" in after.text


@pytest.mark.spec("G4")
@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_nobody_touches_the_tokens_of_others_not_even_an_administrator_here(
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

    assert Api(gatebell, bobs.clear).send("GET", "/user").status_code == 200


@pytest.mark.spec("G4")
def test_a_form_without_its_token_changes_nothing(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice)
    browser = open_browser(gatebell, alice)

    for action in ("rotate", "revoke"):
        answer = browser.post(f"{gatebell.url}{PAGE}/{made.id}/{action}", allow_redirects=False)
        assert answer.status_code == 400

    assert Api(gatebell, made.clear).send("GET", "/user").status_code == 200


@pytest.mark.spec("G4")
def test_the_page_is_for_people_who_signed_in(gatebell: LiveGatebell) -> None:
    answer = gatebell.http().get(gatebell.url + PAGE, allow_redirects=False)

    assert answer.status_code == 302
    assert "/users/sign_in" in answer.headers["Location"]


@pytest.mark.spec("G4")
def test_a_name_of_markup_is_shown_as_it_is(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))

    create(browser, gatebell, name="<script>alert(1)</script>{{7*7}}")

    page = browser.get(gatebell.url + PAGE)
    assert "<script>alert" not in page.text
    assert "<script>alert(1)</script>{{7*7}}" in unescape(page.text)


@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_many_tokens_come_in_pages(gatebell: LiveGatebell) -> None:
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
