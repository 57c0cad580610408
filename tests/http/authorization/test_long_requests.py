"""Tests of long authorization requests, which are stored while the user signs in."""

import json
from datetime import timedelta
from urllib.parse import urlencode, urljoin

import pytest
import requests
from sqlalchemy import delete, func, select, update

from domain.core.keyring import Keyring
from models import ReturnUrl, User
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    settings_of,
)
from tests.support.oauth.oauth_wire import (
    Changes,
    assert_refused_on_a_page,
    open_and_follow,
    open_authorization,
    parse_redirect,
    server_application,
    sign_in_on,
    submit_decision,
)
from tests.support.oauth.pushes import pushed
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import code_of, give_app, give_code
from tests.support.wire.html_forms import form_with, submit

#: State of a single-page application, with its own URL and all filters.
STATE_IN_JSON = json.dumps({"to": "/" + "a/b?c=d&" * 300, "n": "1"}, separators=(",", ":"))


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application of Bob without any consents."""
    return make_application(gatebell, bob(gatebell))


@pytest.fixture
def dora(gatebell: LiveGatebell) -> Person:
    """A user who has never signed in."""
    return make_user(gatebell, name="dora")


def assert_short(page: requests.Response) -> None:
    """Check that all URLs of a page and its redirects are short."""
    urls = [each.url for each in (*page.history, page)]
    assert max(map(len, urls[1:] or urls)) < 700, urls


def kept_pages(gatebell: LiveGatebell) -> int:
    with database_of(gatebell) as session:
        return session.scalar(select(func.count(ReturnUrl.id))) or 0


@pytest.mark.both_databases
@pytest.mark.parametrize("changes", [{}, {"prompt": "login"}, {"max_age": "0"}])
def test_a_long_request_is_complete_after_the_sign_in(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person, changes: dict[str, Changes]
) -> None:
    browser = gatebell.http()
    page = open_authorization(browser, gatebell, client, state=STATE_IN_JSON, **changes)
    assert_short(page)
    assert "to continue to" in page.text
    question = sign_in_on(browser, page, dora)
    assert_short(question)
    assert parse_redirect(submit_decision(browser, question))["state"] == STATE_IN_JSON


def test_a_long_request_survives_a_second_factor(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person
) -> None:
    app = give_app(gatebell, dora)
    browser = gatebell.http()
    page = open_authorization(browser, gatebell, client, state=STATE_IN_JSON)
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=dora.username, password=dora.password)
    step = browser.get(urljoin(page.url, answer.headers["Location"]))
    onward = give_code(browser, step, code_of(app))
    question = open_and_follow(browser, urljoin(page.url, onward.headers["Location"]))
    assert parse_redirect(submit_decision(browser, question))["state"] == STATE_IN_JSON


def test_a_long_request_survives_a_required_password_change(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person
) -> None:
    with database_of(gatebell) as session:
        row = User.username == dora.username
        session.execute(update(User).where(row).values(must_change_password=True))
    browser = gatebell.http()
    page = open_authorization(browser, gatebell, client, state=STATE_IN_JSON)
    security = sign_in_on(browser, page, dora)
    new = f"{dora.password} but longer"
    given = {"current_password": dora.password, "new_password": new, "repeat_password": new}
    done = submit(browser, security, form_with(security, "new_password"), **given)
    question = open_and_follow(browser, urljoin(gatebell.url, done.headers["Location"]))
    assert parse_redirect(submit_decision(browser, question))["state"] == STATE_IN_JSON


@pytest.mark.both_databases
@pytest.mark.parametrize("decision", ["authorize", "cancel"])
def test_a_long_pushed_request_can_be_approved_and_denied(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person, decision: str
) -> None:
    browser = open_browser(gatebell, dora)
    url = pushed(gatebell, client, login_hint="d" * 9_000, nonce="n" * 3_000)
    brought = parse_redirect(submit_decision(browser, open_and_follow(browser, url), decision))
    assert ("code" in brought) == (decision == "authorize")


def test_parameters_of_a_pushed_request_never_appear_in_a_url(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person
) -> None:
    browser = open_browser(gatebell, dora)
    page = open_and_follow(browser, pushed(gatebell, client, nonce="the-nonce", state="the-state"))
    form = form_with(page, "decision")
    browser.cookies.clear()
    answer = submit(browser, page, form, decision="authorize")
    again = submit(open_browser(gatebell, dora), page, form, decision="authorize")
    for each in (answer, again):
        assert each.status_code in {302, 303}
        assert "the-nonce" not in each.headers["Location"]
        assert "the-state" not in each.headers["Location"]


def test_slashes_do_not_make_a_request_too_long(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person
) -> None:
    state = "/" * 2_900
    url = f"{gatebell.url}/oauth/authorize?" + urlencode(
        {
            "client_id": client.client_id,
            "redirect_uri": client.redirect_uri,
            "response_type": "code",
            "scope": "read_user",
        }
    )
    browser = open_browser(gatebell, dora)
    answer = submit_decision(browser, open_and_follow(browser, f"{url}&state={state}"))
    assert parse_redirect(answer)["state"] == state
    assert len(answer.headers["Location"]) < 3_200


def test_an_unknown_handle_shows_an_explanation(gatebell: LiveGatebell, dora: Person) -> None:
    browser = open_browser(gatebell, dora)
    page = open_and_follow(browser, f"{gatebell.url}/oauth/authorize?kept={'0' * 32}")
    assert_refused_on_a_page(page)
    assert "has expired" in page.text
    other = browser.get(f"{gatebell.url}/users/sign_in/next/{'0' * 32}")
    assert "was valid for one hour and has expired" in other.text


def test_a_stored_request_expires_after_an_hour(
    gatebell: LiveGatebell, client: ClientCredentials, dora: Person
) -> None:
    browser = gatebell.http()
    page = open_authorization(browser, gatebell, client, state=STATE_IN_JSON)
    with database_of(gatebell) as session:
        session.execute(update(ReturnUrl).values(expires_at=now()))
    assert_refused_on_a_page(sign_in_on(browser, page, dora))


@pytest.mark.both_databases
def test_a_list_with_many_filters_is_shown_after_the_sign_in(
    gatebell: LiveGatebell, dora: Person
) -> None:
    path = "/-/alerts?" + urlencode({"search": 'label="a/b" ' * 200})
    browser = gatebell.http()
    page = browser.get(gatebell.url + path)
    assert_short(page)
    answer = submit(
        browser,
        page,
        form_with(page, "password"),
        login=dora.username,
        password=dora.password,
    )
    onward = browser.get(urljoin(gatebell.url, answer.headers["Location"]), allow_redirects=False)
    assert urljoin(gatebell.url, onward.headers["Location"]) == gatebell.url + path


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "/\\evil.example/"]
)
def test_a_long_url_of_another_site_redirects_to_the_home_page(
    gatebell: LiveGatebell, dora: Person, elsewhere: str
) -> None:
    browser = open_browser(gatebell, dora)
    handle = "e" * 32
    with database_of(gatebell) as session:
        digest = Keyring(settings_of(gatebell).secret_key).compute_digest(handle)
        session.execute(delete(ReturnUrl).where(ReturnUrl.digest == digest))
        path = f"{elsewhere}?{'x' * 2_000}"
        session.add(ReturnUrl(digest=digest, path=path, expires_at=now() + timedelta(hours=1)))
    url = f"{gatebell.url}/users/sign_in/next/{handle}"
    answer = browser.get(url, allow_redirects=False)
    assert answer.headers["Location"] == "/"


def test_a_short_request_is_not_stored(gatebell: LiveGatebell) -> None:
    before = kept_pages(gatebell)
    page = open_authorization(
        gatebell.http(), gatebell, server_application(gatebell), state="s" * 500
    )
    assert 'name="password"' in page.text
    assert kept_pages(gatebell) == before
