"""Tests of the user settings page of applications, from registration to deletion, and their use."""

import re
from html import unescape

import pytest
import requests
from sqlalchemy import select

from models import Application
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    Person,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    signed_in,
    unique,
)
from tests.support.oauth.device_wire import approve, codes, poll
from tests.support.oauth.oauth_wire import (
    assert_refused,
    assert_refused_on_a_page,
    is_token_valid,
    new_code,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    redeem,
    refresh,
    revoke,
    submit_decision,
)
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

pytestmark = pytest.mark.one_database("postgres")

PAGES = "/-/user_settings/applications"


def register(
    gatebell: LiveGatebell, browser: requests.Session, **changes: str | list[str] | None
) -> requests.Response:
    """Submit the form with typical values and these changes."""
    page = browser.get(f"{gatebell.url}{PAGES}/new")
    fields: dict[str, str | list[str] | None] = {
        "name": "Deploy Board",
        "redirect_uris": CALLBACK,
        "scopes": ["read_user"],
        **changes,
    }
    return submit(browser, page, form_with(page, "redirect_uris"), **fields)


def follow(
    gatebell: LiveGatebell, browser: requests.Session, answer: requests.Response
) -> requests.Response:
    assert answer.status_code == 302, answer.text
    return browser.get(gatebell.url + answer.headers["Location"])


def secrets_on(page: requests.Response) -> set[str]:
    return set(re.findall(r"gbs-[0-9A-Za-z]+", page.text))


def credentials_on(page: requests.Response) -> ClientCredentials:
    """Return the credentials from the page after a registration."""
    (secret,) = secrets_on(page)
    found = re.search(r"\b[0-9a-f]{64}\b", page.text)
    assert found
    return ClientCredentials(
        id=int(page.url.rpartition("/")[2]),
        client_id=found[0],
        secret=secret,
        redirect_uri=CALLBACK,
        scopes="read_user",
    )


@pytest.mark.spec("F1", "F2")
@pytest.mark.rfc("rfc8252-8.4-a")
def test_an_application_is_registered_and_its_credentials_work(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    page = follow(gatebell, browser, register(gatebell, browser))
    assert "no-store" in page.headers["Cache-Control"]
    client = credentials_on(page)
    visitor = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(submit_decision(visitor, open_authorization(visitor, gatebell, client)))[
        "code"
    ]
    assert is_token_valid(gatebell, parse_token_pair(redeem(gatebell, client, code)).access)


@pytest.mark.advisory("CVE-2020-10187", "CVE-2023-45151")
@pytest.mark.spec("F2")
def test_the_secret_is_shown_once_and_stored_as_a_digest(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    page = follow(gatebell, browser, register(gatebell, browser))
    client = credentials_on(page)
    again = browser.get(page.url)
    assert client.client_id in again.text
    assert secrets_on(again) == set()
    assert client.secret not in again.text
    with database_of(gatebell) as session:
        row = session.scalars(select(Application).where(Application.uid == client.client_id)).one()
        kept = repr([getattr(row, column.name) for column in row.__table__.columns])
    assert client.client_id in kept
    assert client.secret not in kept
    # Users who authorize the application cannot see the secret, either.
    visitor = signed_in(gatebell, alice(gatebell))
    submit_decision(visitor, open_authorization(visitor, gatebell, client))
    listed = visitor.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    assert client.secret not in listed.text


@pytest.mark.spec("A10")
def test_the_page_recommends_state(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    assert "state" in browser.get(f"{gatebell.url}{PAGES}/{client.id}").text


@pytest.mark.long
@pytest.mark.spec("F1")
def test_the_list_contains_only_the_users_own_applications(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    name = unique("mine & only <b>")
    register(gatebell, browser, name=name)
    assert name in unescape(browser.get(gatebell.url + PAGES).text)
    assert name not in browser.get(gatebell.url + PAGES).text
    others = signed_in(gatebell, alice(gatebell)).get(gatebell.url + PAGES)
    assert name not in unescape(others.text)


@pytest.mark.spec("A8", "F1")
def test_several_redirect_uris_can_be_registered_one_per_line(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    uris = f"{CALLBACK}\r\n\r\n  http://127.0.0.1/cb \ncom.example.app:/cb\n{CALLBACK}"
    client = credentials_on(
        follow(gatebell, browser, register(gatebell, browser, redirect_uris=uris))
    )
    edit = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    kept = form_with(edit, "redirect_uris").value("redirect_uris")
    assert kept.split() == [CALLBACK, "http://127.0.0.1/cb", "com.example.app:/cb"]


REFUSED: tuple[dict[str, str | list[str] | None], ...] = (
    {"name": ""},
    {"name": "   "},
    {"name": "x" * 101},
    {"name": "a\x00b"},
    {"redirect_uris": "nonsense"},
    {"redirect_uris": "view-source:https://client.example/"},
    {"redirect_uris": "javascript:alert(1)"},
    {"redirect_uris": f"{CALLBACK}\nhttps://client.example/#here"},
    {"redirect_uris": "https://user@client.example/"},
    {"redirect_uris": "https://client.example/?code=1"},
    {"redirect_uris": "https://client.example;sandbox/"},
    {"redirect_uris": "https://client.example/\x00"},
    {"redirect_uris": "https://client.example/" + "x" * 3000},
    {"scopes": None},
    {"scopes": ["nonsense"]},
    {"scopes": ["read_user", "nonsense"]},
    {"scopes": ["read_user api"]},
    {"scopes": ["a\x00b"]},
)


@pytest.mark.advisory("CVE-2020-26938", "CVE-2024-21637")
@pytest.mark.spec("F1", "F3")
@pytest.mark.rfc("rfc6749-3.1.2.2-a")
@pytest.mark.parametrize("changes", REFUSED, ids=range(len(REFUSED)))
def test_an_invalid_registration_is_rejected_on_the_page(
    gatebell: LiveGatebell, browser: requests.Session, changes: dict[str, str | list[str] | None]
) -> None:
    answer = register(gatebell, browser, **changes)
    assert answer.status_code == 422, answer.text
    assert 'role="alert"' in answer.text
    assert secrets_on(answer) == set()


def test_each_invalid_redirect_uri_is_reported(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    uris = f"nonsense\n{CALLBACK}\njavascript:alert(1)\nhttps://client.example/#here"
    page = register(gatebell, browser, redirect_uris=uris)
    assert page.status_code == 422
    for uri in ("nonsense", "javascript:alert(1)", "https://client.example/#here"):
        assert page.text.count(f'<a href="#redirect_uris">&#34;{uri}&#34;') == 1
    assert page.text.count('<a href="#redirect_uris">') == 3
    form = form_with(page, "redirect_uris")
    assert form.value("redirect_uris").split() == uris.split()


@pytest.mark.spec("A8")
@pytest.mark.rfc("rfc6749-3.1.2.1-a", "rfc9700-2.6-c")
def test_an_unencrypted_redirect_uri_is_accepted_with_a_warning(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    plain = register(gatebell, browser, redirect_uris="http://client.example/cb")
    assert "without https" in follow(gatebell, browser, plain).text
    local = register(gatebell, browser, redirect_uris="http://127.0.0.1/cb\nhttp://localhost/cb")
    assert "without https" not in follow(gatebell, browser, local).text


@pytest.mark.both_databases
@pytest.mark.spec("F4")
def test_an_edit_takes_effect_immediately(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    form = form_with(page, "redirect_uris")
    new = "https://elsewhere.example/cb"
    answer = submit(browser, page, form, name="Renamed", redirect_uris=new, scopes=["read_api"])
    shown = follow(gatebell, browser, answer)
    assert "Renamed" in shown.text
    assert secrets_on(shown) == set()
    visitor = signed_in(gatebell, alice(gatebell))
    assert_refused_on_a_page(open_authorization(visitor, gatebell, client))
    moved = submit_decision(
        visitor, open_authorization(visitor, gatebell, client, redirect_uri=new, scope="read_api")
    )
    assert "code" in parse_redirect(moved)
    assert (
        parse_redirect(open_authorization(visitor, gatebell, client, redirect_uri=new))["error"]
        == "invalid_scope"
    )


@pytest.mark.spec("F4")
def test_a_rejected_edit_changes_nothing(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    form = form_with(page, "redirect_uris")
    answer = submit(browser, page, form, name="Renamed", redirect_uris="javascript:x")
    assert answer.status_code == 422
    again = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    assert form_with(again, "redirect_uris").filled() == [
        (name, value if name != "csrf_token" else form_with(again, "name").value("csrf_token"))
        for name, value in form.fields
    ]


@pytest.mark.both_databases
@pytest.mark.spec("F4")
def test_a_renewed_secret_replaces_the_old_one_and_is_shown_once(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    pair = parse_token_pair(redeem(gatebell, client, new_code(gatebell, client)))
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}")
    answer = submit(browser, page, form_to(page, "/renew_secret"), overlap="now")
    renewed = follow(gatebell, browser, answer)
    (secret,) = secrets_on(renewed)
    assert secrets_on(browser.get(renewed.url)) == set()
    assert_refused(refresh(gatebell, client, pair.refresh), "invalid_client", 401)
    new = refresh(gatebell, client, pair.refresh, client_secret=secret)
    assert is_token_valid(gatebell, parse_token_pair(new).access)


@pytest.mark.long
@pytest.mark.advisory("CVE-2024-25619")
@pytest.mark.both_databases
@pytest.mark.spec("F4")
def test_deleting_an_application_revokes_its_codes_and_tokens(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    code = new_code(gatebell, client)
    pair = parse_token_pair(redeem(gatebell, client, new_code(gatebell, client)))
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}/delete")
    assert is_token_valid(gatebell, pair.access)
    answer = submit(browser, page, form_to(page, f"{client.id}/delete"))
    assert follow(gatebell, browser, answer).status_code == 200
    assert not is_token_valid(gatebell, pair.access)
    assert_refused(redeem(gatebell, client, code), "invalid_client", 401)
    visitor = signed_in(gatebell, alice(gatebell))
    assert_refused_on_a_page(open_authorization(visitor, gatebell, client))
    assert browser.get(f"{gatebell.url}{PAGES}/{client.id}").status_code == 404


@pytest.mark.parametrize("ending", ["", "/edit", "/delete"])
def test_an_application_of_another_user_is_not_found(
    gatebell: LiveGatebell, client: ClientCredentials, ending: str
) -> None:
    other = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}{PAGES}/{client.id}"
    assert other.get(address + ending).status_code == 404
    token = form_with(other.get(f"{gatebell.url}{PAGES}/new"), "name").value("csrf_token")
    form = {
        "csrf_token": token,
        "name": "Mine now",
        "redirect_uris": "https://evil.example/",
        "scopes": "read_user",
    }
    for action in ("/edit", "/renew_secret", "/delete"):
        assert other.post(address + action, form).status_code == 404
    assert redeem(gatebell, client, new_code(gatebell, client)).status_code == 200


@pytest.mark.parametrize("number", ["0", "99999999", "9" * 18, "9" * 30])
def test_an_unknown_application_id_is_not_found(
    gatebell: LiveGatebell, browser: requests.Session, number: str
) -> None:
    assert browser.get(f"{gatebell.url}{PAGES}/{number}").status_code == 404


def test_an_application_for_devices_needs_no_redirect_uri(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    page = follow(gatebell, browser, register(gatebell, browser, redirect_uris=""))
    assert "None. Users cannot sign in with this application in a browser" in page.text
    telly = credentials_on(page)
    told = codes(gatebell, telly, client_secret=telly.secret)
    visitor = signed_in(gatebell, alice(gatebell))
    approve(visitor, gatebell, told["user_code"])
    answer = poll(gatebell, telly, told["device_code"], client_secret=telly.secret)
    assert is_token_valid(gatebell, answer.json()["access_token"])
    assert_refused_on_a_page(open_authorization(visitor, gatebell, telly))
    assert_refused_on_a_page(open_authorization(visitor, gatebell, telly, redirect_uri=""))
    # An edit can add a redirect URI later.
    edit = browser.get(f"{gatebell.url}{PAGES}/{telly.id}/edit")
    submit(browser, edit, form_with(edit, "redirect_uris"), redirect_uris=CALLBACK)
    assert open_authorization(visitor, gatebell, telly).status_code == 200


def test_unsupported_scopes_are_not_offered(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    offered = browser.get(f"{gatebell.url}{PAGES}/new").text
    for scope in ("read_registry", "write_registry"):
        assert f'value="{scope}"' not in offered


def test_git_scopes_are_offered_and_kept(gatebell: LiveGatebell, browser: requests.Session) -> None:
    offered = browser.get(f"{gatebell.url}{PAGES}/new").text
    for scope in ("read_repository", "write_repository"):
        assert f'value="{scope}"' in offered
    old = make_application(gatebell, bob(gatebell), scopes="read_user read_repository")
    page = browser.get(f"{gatebell.url}{PAGES}/{old.id}/edit")
    assert 'value="read_repository"' in page.text
    submit(browser, page, form_with(page, "redirect_uris"), name="Renamed")
    visitor = signed_in(gatebell, alice(gatebell))
    asked = open_authorization(visitor, gatebell, old, scope="read_user read_repository")
    assert asked.status_code == 200


# Use of an application: users, active tokens, and time of the last use


def authorize(
    gatebell: LiveGatebell, client: ClientCredentials, person: Person
) -> tuple[requests.Session, str]:
    """Authorize an application, and return the user's browser and the refresh token."""
    browser = open_browser(gatebell, person)
    code = parse_redirect(submit_decision(browser, open_authorization(browser, gatebell, client)))[
        "code"
    ]
    return browser, parse_token_pair(redeem(gatebell, client, code)).refresh


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("F1")
def test_the_pages_count_users_and_active_tokens(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    page = f"{gatebell.url}{PAGES}/{client.id}"
    owners = open_browser(gatebell, owner)
    assert "Not used yet" in words(owners.get(page))

    _, first = authorize(gatebell, client, make_user(gatebell))
    browser, second = authorize(gatebell, client, make_user(gatebell, name="bob"))
    parse_redirect(
        open_authorization(browser, gatebell, client)
    )  # Bob authorizes again, without a consent page.
    refresh(gatebell, client, first)

    assert re.search(r"Last used [0-9:]{5} \(just now\)", words(owners.get(page)))
    shown = words(owners.get(page))
    assert "2 users authorized the application, which has 2 active tokens" in shown
    row = words(owners.get(gatebell.url + PAGES))
    assert re.search(r"Deploy Board .* 2 2 [0-9:]{5} \(just now\)", row), row

    assert revoke(gatebell, client, second).status_code == 200
    assert "2 users authorized the application, which has 1 active token" in words(owners.get(page))
    mine = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")
    # The application used no token afterwards, but it has the user's consent.
    assert "Approval remembered" in mine.text


@pytest.mark.long
@pytest.mark.spec("F5")
def test_a_user_who_revokes_an_application_is_no_longer_counted(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="owner")
    client = make_application(gatebell, owner)
    browser, _ = authorize(gatebell, client, make_user(gatebell))
    page = browser.get(f"{gatebell.url}/-/user_settings/authorized_applications")

    submit(browser, page, form_to(page, "/revoke"))

    shown = words(open_browser(gatebell, owner).get(f"{gatebell.url}{PAGES}/{client.id}"))
    assert "It has no active authorizations or tokens." in shown


@pytest.mark.long
def test_a_password_grant_counts_like_a_consent(gatebell: LiveGatebell) -> None:
    owner, alice = make_user(gatebell, name="owner"), make_user(gatebell)
    client = make_application(gatebell, owner, scopes="api")
    form = {
        "grant_type": "password",
        "client_id": client.client_id,
        "client_secret": client.secret,
        "username": alice.username,
        "password": alice.password,
    }
    assert post_token(gatebell, form).status_code == 200

    shown = words(open_browser(gatebell, owner).get(f"{gatebell.url}{PAGES}/{client.id}"))
    assert "1 user authorized the application, which has 1 active token" in shown
