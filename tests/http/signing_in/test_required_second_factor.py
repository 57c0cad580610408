"""A second factor that the instance requires: of administrators or everybody, at once or later."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from html import unescape
from urllib.parse import urljoin

import pytest
import requests

from models import User
from tests.http.signing_in.test_second_factors import set_up
from tests.support.accounts.people import (
    CALLBACK,
    Person,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.oauth.oauth_wire import ask, ask_at, decide, landing, sign_in_on
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.signing_in.openid_provider import FakeProvider, add_provider, sign_in_through
from tests.support.signing_in.passkey_wire import give_passkey
from tests.support.signing_in.second_factors import assert_signed_in, give_app
from tests.support.wire.html_forms import form_to, form_with, submit
from tests.support.wire.page_text import words

SECURITY = "/-/user_settings/security"
PROFILE = "/-/user_settings/profile"
Start = Callable[..., LiveGatebell]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def start(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts services that require a second factor, each kind once."""
    made: dict[tuple[str, str], LiveGatebell] = {}
    with ExitStack() as opened:

        def start(whom: str, begins: str = "") -> LiveGatebell:
            settings = {
                "SECOND_FACTOR_REQUIRED": whom,
                "SECOND_FACTOR_REQUIRED_FROM": begins,
            }
            if (whom, begins) not in made:
                service = new_service(request.param, host="localhost", only="app", **settings)
                made[whom, begins] = opened.enter_context(running(service))
            return made[whom, begins]

        yield start


def day(days: int) -> str:
    return (now() + timedelta(days=days)).date().isoformat()


def opened(service: LiveGatebell, browser: requests.Session, path: str) -> str:
    """Return where a page leads, or its own path if it is shown."""
    answer = browser.get(service.url + path, allow_redirects=False)
    return answer.headers.get("Location", path) if answer.status_code == 302 else path


def token_for_password(service: LiveGatebell, person: Person) -> requests.Response:
    data = {"grant_type": "password", "username": person.username, "password": person.password}
    return service.http().post(f"{service.url}/oauth/token", data=data)


def test_whoever_has_none_can_set_one_up_and_nothing_else(start: Start) -> None:
    service = start("everybody")
    person = make_user(service)
    browser = open_browser(service, person)
    for path in ("/", PROFILE, "/help", "/groups/new", f"{SECURITY}/recovery_codes/renew"):
        assert opened(service, browser, path) == SECURITY, path
    client = make_application(service, person)
    assert ask(browser, service, client).url == service.url + SECURITY
    page = browser.get(service.url + SECURITY)
    assert "This installation requires two-factor authentication" in words(page)
    for path in (SECURITY, f"{SECURITY}/authenticator"):
        assert opened(service, browser, path) == path
    assert token_for_password(service, person).json()["error"] == "invalid_grant"
    assert submit(browser, page, form_to(page, "/users/sign_out")).status_code == 302


@pytest.mark.parametrize("lacks", ["second factor", "password of their own"])
def test_an_application_that_asks_in_silence_is_answered(start: Start, lacks: str) -> None:
    service = start("everybody" if lacks == "second factor" else "nobody")
    person = make_user(service)
    client = make_application(service, person, trusted=True)
    browser = open_browser(service, person)
    if lacks != "second factor":
        with database_of(service) as session:
            mine = session.query(User).filter_by(username=person.username)
            mine.update({"must_change_password": True})
    landed = ask(browser, service, client, prompt="none").headers["Location"]
    assert landed.startswith(CALLBACK)
    assert "error=login_required" in landed
    assert ask(browser, service, client).url == service.url + SECURITY


@pytest.mark.parametrize("factor", [give_app, give_passkey])
def test_whoever_has_one_notices_nothing(
    start: Start, factor: Callable[[LiveGatebell, Person], object]
) -> None:
    service = start("everybody")
    person = make_user(service)
    factor(service, person)
    browser = open_browser(service, person)
    assert opened(service, browser, PROFILE) == PROFILE
    assert "requires two-factor" not in browser.get(service.url + PROFILE).text


def test_a_new_app_opens_the_pages_at_once(start: Start) -> None:
    service = start("everybody")
    person = make_user(service)
    browser = open_browser(service, person)
    page = browser.get(f"{service.url}{SECURITY}/authenticator")
    form = form_with(page, "code")
    assert form is not None
    wrong = submit(browser, page, form, current_password=person.password, code="000000")
    assert wrong.status_code == 422
    assert opened(service, browser, PROFILE) == SECURITY
    give_app(service, person)
    assert opened(service, browser, PROFILE) == PROFILE


@pytest.mark.parametrize("lacks", ["second factor", "password of their own", "both"])
def test_after_setting_up_what_is_missing_one_goes_on_to_the_application(
    start: Start, lacks: str
) -> None:
    service = start("nobody" if lacks == "password of their own" else "everybody")
    person = make_user(service)
    client = make_application(service, person)
    browser = service.http()
    page = ask(browser, service, client, state="kept")
    if lacks != "second factor":
        with database_of(service) as session:
            mine = session.query(User).filter_by(username=person.username)
            mine.update({"must_change_password": True})
    page, password = sign_in_on(browser, page, person), person.password
    assert page.url == service.url + SECURITY
    if lacks != "second factor":
        old, password = password, "kettle orbit lantern velvet"
        typed = {"new_password": password, "repeat_password": password}
        form = form_with(page, "new_password")
        answer = submit(browser, page, form, current_password=old, **typed)
        page = ask_at(browser, urljoin(page.url, answer.headers["Location"]))
    if lacks != "password of their own":
        assert page.url == service.url + SECURITY
        _, answer = set_up(service, browser, password)
        codes = browser.get(urljoin(page.url, answer.headers["Location"]))
        (onward,) = re.findall(r'href="([^"]*)">I have saved my codes', codes.text)
        page = ask_at(browser, urljoin(page.url, unescape(onward)))
    assert landing(decide(browser, page))["state"] == "kept"


def test_of_administrators_alone(start: Start) -> None:
    service = start("administrators")
    person, administrator = make_user(service), make_user(service, admin=True)
    assert opened(service, open_browser(service, person), PROFILE) == PROFILE
    assert token_for_password(service, person).status_code == 200
    assert opened(service, open_browser(service, administrator), "/admin") == SECURITY
    assert token_for_password(service, administrator).json()["error"] == "invalid_grant"


def test_until_its_day_people_are_told(start: Start) -> None:
    begins = day(3)
    service = start("everybody", begins)
    person = make_user(service)
    browser = open_browser(service, person)
    page = browser.get(service.url + PROFILE)
    assert f"From {begins} on, this installation requires two-factor" in words(page)
    assert token_for_password(service, person).status_code == 200
    give_app(service, person)
    assert begins not in browser.get(service.url + PROFILE).text
    assert begins not in service.http().get(f"{service.url}/users/sign_in").text


def test_from_its_day_on_it_holds(start: Start) -> None:
    for begins in (day(0), day(-400)):
        service = start("everybody", begins)
        browser = open_browser(service, make_user(service))
        assert opened(service, browser, PROFILE) == SECURITY


def test_tokens_that_exist_go_on(start: Start) -> None:
    service = start("everybody")
    headers = {"PRIVATE-TOKEN": make_token(service, make_user(service)).clear}
    assert service.http().get(f"{service.url}/api/v4/user", headers=headers).status_code == 200


def test_whoever_lost_it_sets_up_another_after_a_command(start: Start) -> None:
    service = start("administrators")
    administrator = make_user(service, admin=True)
    give_app(service, administrator)
    browser = open_browser(service, administrator)
    assert opened(service, browser, PROFILE) == PROFILE
    service.cli("users", "remove-second-factors", administrator.username)
    browser = open_browser(service, administrator)
    assert opened(service, browser, PROFILE) == SECURITY
    assert opened(service, browser, f"{SECURITY}/authenticator") == f"{SECURITY}/authenticator"


@pytest.mark.one_database("sqlite")
@pytest.mark.parametrize("wrong", ["tomorrow", "2027-02-30", "01/02/2027"])
def test_a_wrong_day_is_refused_with_an_example(start: Start, wrong: str) -> None:
    service = start("everybody")
    done = service.run_cli("settings", "set", "second_factor_required_from", wrong)
    assert done.returncode != 0
    assert "a date such as 2027-01-31" in done.stdout + done.stderr


def test_who_signs_in_through_a_provider_needs_one_unless_that_is_trusted_to_have_asked(
    start: Start, provider: FakeProvider
) -> None:
    service = start("everybody")
    trusted = add_provider(service, provider.url, "--creates-accounts", "--trusts-second-factor")
    other, browser = add_provider(service, provider.url, "--creates-accounts"), service.http()
    for slug, methods, leads_to in (
        (trusted, ["pwd", "otp"], PROFILE),
        (trusted, ["pwd"], SECURITY),
        (other, ["pwd", "otp"], SECURITY),
    ):
        provider.is_about(amr=methods)
        browser = service.http()
        assert_signed_in(sign_in_through(service, provider, slug, browser))
        assert opened(service, browser, PROFILE) == leads_to
    # Without a password, a recent sign-in is enough to set one up.
    page = browser.get(f"{service.url}{SECURITY}/authenticator")
    form = form_with(page, "code")
    assert not form.has("current_password")
    assert "expired" not in submit(browser, page, form, code="000000").text
    again = browser.get(f"{service.url}/users/sign_in?again=yes", allow_redirects=False)
    assert again.status_code == 200
