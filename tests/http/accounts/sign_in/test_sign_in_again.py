"""Tests of applications that require signed-in users to sign in again."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urljoin

import pytest
import requests
from sqlalchemy import func, select

from domain.accounts.users import get_user
from models import Authorization, SignIn, User
from tests.support.accounts.people import (
    Person,
    database_of,
    make_user,
    open_browser,
    settings_of,
)
from tests.support.accounts.sign_ups import unseal_test_value
from tests.support.oauth.oauth_wire import (
    Changes,
    authorization_url,
    open_and_follow,
    open_authorization,
    parse_redirect,
    server_application,
    sign_in_on,
)
from tests.support.oauth.pushes import pushed
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    code_of,
    give_app,
    give_code,
    is_signed_in,
    wrong_code_of,
)
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

AGAIN: list[dict[str, Changes]] = [{"prompt": "login"}, {"max_age": "0"}]


def sign_ins_of(gatebell: LiveGatebell, person: Person) -> int:
    with database_of(gatebell) as session:
        user = get_user(person.username, session=session)
        found = session.scalar(select(func.count(SignIn.id)).where(SignIn.user_id == user.id))
    return found or 0


def assert_sign_in_required(page: requests.Response) -> None:
    assert page.status_code == 200, page.headers
    assert "<h1>Sign in again</h1>" in page.text


@pytest.mark.parametrize("changes", AGAIN)
def test_an_authorization_request_does_not_sign_the_user_out(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    browser = open_browser(gatebell, charlie)
    page = open_authorization(browser, gatebell, server_application(gatebell), **changes)
    assert_sign_in_required(page)
    assert form_with(page, "login").value("login") == charlie.username
    assert is_signed_in(gatebell, browser)
    wrong = submit(browser, page, form_with(page, "password"), login=charlie.username, password="x")
    assert wrong.status_code == 422
    assert "<h1>Sign in again</h1>" in wrong.text
    assert is_signed_in(gatebell, browser)


@pytest.mark.parametrize("changes", AGAIN)
def test_the_new_sign_in_cannot_be_skipped(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    browser = open_browser(gatebell, charlie)
    client = server_application(gatebell)
    page = open_authorization(browser, gatebell, client, **changes)
    # One URL opens the page after the sign-in early; the others contain a forged time.
    following = form_with(page, "password").action.partition("next=")[2]
    assert_sign_in_required(open_and_follow(browser, urljoin(gatebell.url, unquote(following))))
    for moment in ("2020-01-01T00:00:00+00:00", "", "e30.x.y"):
        assert_sign_in_required(
            open_authorization(browser, gatebell, client, first_asked=moment, **changes)
        )


@pytest.mark.parametrize("changes", AGAIN)
def test_the_first_visit_of_another_request_does_not_count(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    client = server_application(gatebell)
    earlier = open_authorization(gatebell.http(), gatebell, client, state="earlier", **changes)
    action = form_with(earlier, "password").action
    sealed = unquote(unquote(action)).rpartition("first_asked=")[2]
    browser = open_browser(gatebell, charlie)
    page = open_authorization(
        browser, gatebell, client, state="later", first_asked=sealed, **changes
    )
    assert_sign_in_required(page)


@pytest.mark.both_databases
@pytest.mark.rfc("rfc8252-8.7-a", "oidc-core-3.1.2.1-g", "oidc-core-3.1.2.1-k")
@pytest.mark.parametrize("changes", AGAIN)
def test_a_new_sign_in_replaces_the_old_one_and_updates_auth_time(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    browser = open_browser(gatebell, charlie)
    with database_of(gatebell) as session:  # The sign-in happened some hours ago.
        user_id = select(User.id).where(User.username == charlie.username).scalar_subquery()
        row = session.scalars(select(SignIn).where(SignIn.user_id == user_id)).one()
        row.created_at -= timedelta(hours=3)
    page = open_authorization(browser, gatebell, server_application(gatebell), **changes)
    assert "code" in parse_redirect(sign_in_on(browser, page, charlie))
    assert sign_ins_of(gatebell, charlie) == 1
    with database_of(gatebell) as session:
        user = get_user(charlie.username, session=session)
        when = session.scalars(
            select(Authorization.auth_time).where(Authorization.user_id == user.id)
        ).one()
    assert datetime.now(UTC) - when < timedelta(hours=1)


def sign_in_elsewhere(
    browser: requests.Session, page: requests.Response, person: Person, gatebell: LiveGatebell
) -> requests.Response:
    """Sign in at a host whose clock is four seconds behind, and return the next page."""
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=person.username, password=person.password)
    with database_of(gatebell) as session:
        user_id = select(User.id).where(User.username == person.username).scalar_subquery()
        row = session.scalars(select(SignIn).where(SignIn.user_id == user_id)).one()
        row.created_at -= timedelta(seconds=4)
    return open_and_follow(browser, urljoin(page.url, answer.headers["Location"]))


@pytest.mark.parametrize("is_known", [True, False], ids=["signed in", "not signed in"])
@pytest.mark.parametrize("changes", AGAIN)
def test_a_sign_in_recorded_by_another_clock_is_accepted(
    gatebell: LiveGatebell,
    charlie: Person,
    changes: dict[str, Changes],
    is_known: bool,  # noqa: FBT001 - a column of the table
) -> None:
    browser = open_browser(gatebell, charlie) if is_known else gatebell.http()
    client = server_application(gatebell)
    page = open_authorization(browser, gatebell, client, **changes)
    assert "code" in parse_redirect(sign_in_elsewhere(browser, page, charlie, gatebell))
    pushed_page = open_and_follow(browser, pushed(gatebell, client, **changes))
    assert_sign_in_required(pushed_page)
    assert "code" in parse_redirect(sign_in_elsewhere(browser, pushed_page, charlie, gatebell))


def test_the_time_of_the_first_visit_is_kept_through_all_redirects(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = open_browser(gatebell, charlie)
    page = open_authorization(browser, gatebell, server_application(gatebell), prompt="login")
    first = form_with(page, "password").action
    again = open_and_follow(browser, urljoin(gatebell.url, unquote(first.partition("next=")[2])))
    assert form_with(again, "password").action.count("first_asked") == 1
    key = settings_of(gatebell).secret_key
    asked = [first_asked_in(each, key) for each in (first, form_with(again, "password").action)]
    assert asked[0] == asked[1]


def first_asked_in(action: str, key: str) -> Any:
    sealed = unquote(unquote(action)).rpartition("first_asked=")[2]
    return unseal_test_value(sealed, "first visit of an authorization request", key=key)


@pytest.mark.long
@pytest.mark.parametrize("changes", AGAIN)
def test_a_user_stays_signed_in_until_the_second_step_is_repeated(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    browser = open_browser(gatebell, charlie)
    app = give_app(gatebell, charlie)
    page = open_authorization(browser, gatebell, server_application(gatebell), **changes)
    form = form_with(page, "password")
    answer = submit(browser, page, form, login=charlie.username, password=charlie.password)
    step = browser.get(urljoin(page.url, answer.headers["Location"]))
    assert "Two-factor authentication" in step.text
    assert is_signed_in(gatebell, browser)
    assert give_code(browser, step, wrong_code_of(app)).status_code == 422
    # The link that skips the second step leads back to the sign-in page.
    following = form_with(step, "code").action.partition("next=")[2]
    assert_sign_in_required(open_and_follow(browser, urljoin(gatebell.url, unquote(following))))
    onward = give_code(browser, step, code_of(app))
    assert "code" in parse_redirect(
        open_and_follow(browser, urljoin(gatebell.url, onward.headers["Location"]))
    )


@pytest.mark.long
def test_another_user_can_sign_in_and_replaces_the_former_one(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    dora = make_user(gatebell, name="dora")
    browser = open_browser(gatebell, charlie)
    page = open_authorization(browser, gatebell, server_application(gatebell), prompt="login")
    assert "code" in parse_redirect(sign_in_on(browser, page, dora))
    assert (sign_ins_of(gatebell, charlie), sign_ins_of(gatebell, dora)) == (0, 1)


@pytest.mark.long
@pytest.mark.parametrize("changes", AGAIN)
def test_a_pushed_request_does_not_sign_the_user_out(
    gatebell: LiveGatebell, charlie: Person, changes: dict[str, Changes]
) -> None:
    browser = open_browser(gatebell, charlie)
    page = open_and_follow(browser, pushed(gatebell, server_application(gatebell), **changes))
    assert_sign_in_required(page)
    assert is_signed_in(gatebell, browser)
    assert "code" in parse_redirect(sign_in_on(browser, page, charlie))


def test_a_user_who_signed_in_does_not_have_to_select_the_account(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser = gatebell.http()
    page = open_authorization(
        browser, gatebell, server_application(gatebell), prompt="select_account"
    )
    assert "code" in parse_redirect(sign_in_on(browser, page, charlie))


def test_max_age_must_consist_of_ascii_digits(gatebell: LiveGatebell, charlie: Person) -> None:
    browser, client = open_browser(gatebell, charlie), server_application(gatebell)
    for max_age in ("00", "007", "+1", "1.5", "1e3", " 1", "٣", "０", "²"):  # noqa: RUF001 - other digits
        brought = parse_redirect(open_authorization(browser, gatebell, client, max_age=max_age))
        assert (brought["error"], brought["error_description"]) == (
            "invalid_request",
            "max_age must be a number of seconds.",
        ), max_age


def test_head_requests_do_nothing(gatebell: LiveGatebell, charlie: Person) -> None:
    browser = open_browser(gatebell, charlie)
    address = authorization_url(gatebell, server_application(gatebell))
    answer = browser.head(address, allow_redirects=False)
    assert (answer.status_code, answer.headers.get("Location")) == (200, None)
    with database_of(gatebell) as session:
        user = get_user(charlie.username, session=session)
        codes = select(func.count()).where(Authorization.user_id == user.id)
        assert session.scalar(codes) == 0
    assert browser.head(f"{gatebell.url}/oauth/logout", allow_redirects=False).status_code == 200
    assert is_signed_in(gatebell, browser)
