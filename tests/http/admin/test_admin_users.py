"""Tests of `/admin/users`: searching, creating, locking and promoting accounts."""

from dataclasses import replace
from html import unescape

import pytest
import requests
from sqlalchemy import select

from models import User
from tests.support.accounts.administration import (
    find_last_event,
    find_only_group,
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    read_redirected_page,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.other_access import give_access
from tests.support.accounts.people import (
    Person,
    database_of,
    make_user,
    open_browser,
    sign_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import (
    authorization_url,
    is_token_valid,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    refresh,
    server_application,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, forms_in, submit

pytestmark = pytest.mark.one_database("sqlite")

REFUSED = 401


def account_page(gatebell: LiveGatebell, person: Person) -> str:
    return f"/admin/users/{find_user_id(gatebell, person)}"


def do(gatebell: LiveGatebell, person: Person, action: str) -> requests.Response:
    """Press a button on the page of a user."""
    answer: requests.Response = submit_form_by_ending(
        gatebell, account_page(gatebell, person), f"/{action}"
    )
    return answer


def lock(gatebell: LiveGatebell, person: Person) -> None:
    assert do(gatebell, person, "lock").status_code == 302


def whoami(gatebell: LiveGatebell, token: str) -> int:
    answer = requests.get(
        f"{gatebell.url}/api/v4/user", headers={"PRIVATE-TOKEN": token}, timeout=30
    )
    return answer.status_code


def shown_password(page: str) -> str:
    return find_only_group(page, r'<code id="new-password">([^<]+)</code>')


def is_signed_in(gatebell: LiveGatebell, browser: requests.Session) -> bool:
    address = f"{gatebell.url}/-/user_settings/profile"
    return browser.get(address, allow_redirects=False).status_code == 200


def may_sign_in(gatebell: LiveGatebell, person: Person) -> bool:
    try:
        sign_in(gatebell, person)
    except AssertionError:
        return False
    return True


@pytest.mark.long
@pytest.mark.both_databases
def test_a_locked_user_is_signed_out_and_tokens_fail_until_the_unlock(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    token = make_token(gatebell, charlie).clear
    client = server_application(gatebell)
    pair = parse_token_pair(
        redeem(
            gatebell, client, parse_redirect(open_authorization(browser, gatebell, client))["code"]
        )
    )
    assert whoami(gatebell, token) == 200
    code = parse_redirect(open_authorization(browser, gatebell, client))["code"]

    lock(gatebell, charlie)

    assert not is_signed_in(gatebell, browser)
    assert not may_sign_in(gatebell, charlie)
    assert whoami(gatebell, token) == REFUSED
    assert whoami(gatebell, pair.access) == REFUSED
    assert not is_token_valid(gatebell, pair.access)
    assert refresh(gatebell, client, pair.refresh).json()["error"] == "invalid_grant"
    event = find_last_event(gatebell, charlie.username)
    assert (event.kind, event.actor_name) == (
        "user.locked",
        get_shared_administrator(gatebell).username,
    )
    # Codes and authorization requests from before the lock are useless, too.
    assert redeem(gatebell, client, code).json()["error"] == "invalid_grant"
    answer = browser.get(authorization_url(gatebell, client), allow_redirects=False)
    assert "/users/sign_in" in answer.headers["Location"]

    page = read_redirected_page(gatebell, do(gatebell, charlie, "unlock"))
    assert "is unlocked" in page
    assert may_sign_in(gatebell, charlie)
    assert whoami(gatebell, token) == 200
    assert find_last_event(gatebell, charlie.username).kind == "user.unlocked"


@pytest.mark.long
def test_a_reset_password_is_shown_once_and_signs_the_user_out_everywhere(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = read_redirected_page(gatebell, do(gatebell, charlie, "reset_password"))
    password = shown_password(page)

    assert not is_signed_in(gatebell, browser)
    assert not may_sign_in(gatebell, charlie)
    again = get_administrator_browser(gatebell).get(gatebell.url + account_page(gatebell, charlie))
    assert password not in again.text
    assert password not in gatebell.log_text()
    assert find_last_event(gatebell, charlie.username).kind == "password.reset"
    helped = Person(username=charlie.username, email=charlie.email, password=password)
    browser = sign_in(gatebell, helped)
    asked = browser.get(f"{gatebell.url}/groups", allow_redirects=False)
    assert asked.headers["Location"].endswith("/-/user_settings/security")


@pytest.mark.long
def test_a_new_user_gets_a_working_password(gatebell: LiveGatebell) -> None:
    name = unique("dora")
    answer = submit_form_by_field(
        gatebell, "/admin/users/new", "username", username=name, email=f"{name}@people.example"
    )
    password = shown_password(read_redirected_page(gatebell, answer))
    person = Person(username=name, email="", password=password)
    browser = sign_in(gatebell, person)
    asked = browser.get(f"{gatebell.url}/groups", allow_redirects=False)
    assert asked.headers["Location"].endswith("/-/user_settings/security")
    event = find_last_event(gatebell, name)
    assert (event.kind, event.details["administrator"]) == ("user.created", False)
    values = {"username": unique("emil"), "email": f"emil.{name}@people.example", "is_admin": "y"}
    answer = submit_form_by_field(gatebell, "/admin/users/new", "username", **values)
    assert "Administrator" in read_redirected_page(gatebell, answer)


@pytest.mark.long
def test_an_invalid_value_is_explained_next_to_its_field(gatebell: LiveGatebell) -> None:
    name = unique("frida")
    for changes, sentence in (
        ({"username": ""}, "Enter a username."),
        ({"username": "two words"}, "A username can have"),
        ({"username": "nul\0"}, "NUL"),
        ({"email": ""}, "Enter an email address."),
        ({"email": "nobody"}, "is not a valid email address"),
        ({"name": "x" * 101}, "at most 100 characters"),
    ):
        fields = {"username": name, "email": f"{name}@people.example", "name": "Frida", **changes}
        page = submit_form_by_field(gatebell, "/admin/users/new", "username", **fields)
        assert page.status_code == 422, changes
        assert sentence in unescape(page.text), changes
        kept = next(form for form in forms_in(page.text) if form.has("username"))
        assert kept.value("email") == fields["email"], changes


def test_a_taken_name_or_address_is_rejected(gatebell: LiveGatebell, charlie: Person) -> None:
    for taken in (charlie.username, charlie.username.upper()):
        page = submit_form_by_field(
            gatebell, "/admin/users/new", "username", username=taken, email="new@people.example"
        )
        assert page.status_code == 422
        assert "already exists" in page.text
    page = submit_form_by_field(
        gatebell, "/admin/users/new", "username", username=unique("gus"), email=charlie.email
    )
    assert page.status_code == 422


@pytest.mark.long
def test_the_administrator_role_can_be_given_and_taken(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    assert browser.get(f"{gatebell.url}/admin").status_code == 404
    do(gatebell, charlie, "make_administrator")
    assert browser.get(f"{gatebell.url}/admin").status_code == 200
    do(gatebell, charlie, "unmake_administrator")
    assert browser.get(f"{gatebell.url}/admin").status_code == 404
    event = find_last_event(gatebell, charlie.username)
    assert (event.kind, event.details["administrator"]) == ("user.changed", False)


@pytest.mark.long
def test_a_reset_needs_a_decision_about_the_users_tokens(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    access, browser = give_access(gatebell, charlie), open_browser(gatebell, charlie)
    path = account_page(gatebell, charlie)
    assert (
        "1 personal access token"
        in get_administrator_browser(gatebell).get(gatebell.url + path).text
    )
    for answer in (None, "", "perhaps"):
        refused = submit_form_by_ending(gatebell, path, "/reset_password", tokens=answer)
        assert "Choose whether the personal access tokens" in read_redirected_page(
            gatebell, refused
        )
    assert access.is_open(gatebell) == (True, True)
    assert browser.get(f"{gatebell.url}/groups", allow_redirects=False).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(
    ("boxes", "left"),
    [
        ({"tokens": "keep"}, (False, True)),
        ({"keep_applications": "on", "tokens": "keep"}, (True, True)),
        ({"tokens": "revoke"}, (False, False)),
    ],
)
def test_a_reset_password_signs_applications_out_unless_they_are_kept(
    gatebell: LiveGatebell, charlie: Person, boxes: dict[str, str], left: tuple[bool, bool]
) -> None:
    access = give_access(gatebell, charlie)
    page_path = account_page(gatebell, charlie)
    assert submit_form_by_ending(gatebell, page_path, "/reset_password", **boxes).status_code == 302
    assert access.is_open(gatebell) == left


def test_administrators_cannot_lock_reset_or_demote_themselves(gatebell: LiveGatebell) -> None:
    browser, me = (
        get_administrator_browser(gatebell),
        account_page(gatebell, get_shared_administrator(gatebell)),
    )
    page = browser.get(gatebell.url + me)
    token = next(each.value("csrf_token") for each in forms_in(page.text) if each.has("csrf_token"))
    for action in ("lock", "reset_password", "unmake_administrator"):
        assert f"/{action}" not in page.text
        answer = browser.post(f"{gatebell.url}{me}/{action}", data={"csrf_token": token})
        assert answer.status_code == 409, action
    assert is_signed_in(gatebell, browser)


@pytest.mark.both_databases
def test_a_user_is_found_by_name_address_and_state(gatebell: LiveGatebell) -> None:
    hans = make_user(gatebell, name="hans")

    def found(query: str) -> bool:
        page = get_administrator_browser(gatebell).get(f"{gatebell.url}/admin/users?{query}")
        return f"<bdi>{hans.username}</bdi></a>" in page.text

    assert found(f"search={hans.username.upper()}")
    assert found(f"search={hans.email}")
    assert not found(f"search={hans.username}x")
    assert not found(f"group=administrators&search={hans.username}")
    lock(gatebell, hans)
    assert found(f"group=locked&search={hans.email}")


@pytest.mark.both_databases
def test_the_list_has_next_and_previous_pages(gatebell: LiveGatebell) -> None:
    word = unique("page")
    people = [make_user(gatebell, name=word) for _ in range(21)]
    browser = get_administrator_browser(gatebell)
    first = browser.get(f"{gatebell.url}/admin/users?search={word}")
    assert people[-1].username in first.text
    assert f">{people[0].username}<" not in first.text
    older = find_only_group(first.text, r'href="([^"]+)" rel="next"')
    second = browser.get(gatebell.url + older)
    assert f">{people[0].username}<" in second.text
    newer = find_only_group(second.text, r'href="([^"]+)" rel="prev"')
    assert people[-1].username in browser.get(gatebell.url + newer).text


@pytest.mark.long
@pytest.mark.both_databases
def test_an_administrator_can_change_names_address_and_time_zone(gatebell: LiveGatebell) -> None:
    person, other = make_user(gatebell), make_user(gatebell, name="bob")
    name = unique("renamed")
    page = get_administrator_browser(gatebell).get(
        f"{gatebell.url}{account_page(gatebell, person)}/edit"
    )
    form, browser = form_with(page, "time_zone"), get_administrator_browser(gatebell)
    for taken in ({"username": other.username.upper()}, {"email": other.email}):
        refused = submit(browser, page, form, **taken)
        assert refused.status_code == 422, taken
        assert "taken" in refused.text or "has this email address" in refused.text
    for bad in ({"username": "a b"}, {"username": ""}, {"time_zone": "Mars"}, {"name": "x" * 101}):
        assert submit(browser, page, form, **bad).status_code == 422, bad
    values = {"username": name, "name": "Renamed", "time_zone": "Europe/Berlin"}
    assert submit(browser, page, form, **values).status_code == 302
    with database_of(gatebell) as session:
        found = session.scalar(select(User).where(User.username == name))
        assert found is not None
        kept = (found.name, found.time_zone, found.email)
    assert kept == ("Renamed", "Europe/Berlin", person.email)
    details = find_last_event(gatebell, name).details
    assert details == {"changed": "username, name, time_zone", "before": person.username}
    assert may_sign_in(gatebell, replace(person, username=name))
