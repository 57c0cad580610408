"""Tests of password resets by emailed links."""

import re
from functools import partial
from html import unescape

import pytest
import requests

from domain.accounts.lifecycle.password_reset import RESET_LINK_LIFETIME, RESET_LINK_PURPOSE
from domain.audit.events import EventKind
from domain.core.randomness import generate_random_password
from models import User
from tests.http.accounts.settings.test_copied_cookies import change_password
from tests.support.accounts.administration import find_user_id, submit_form_by_ending
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    open_browser,
    set_state,
    try_to_sign_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import script_of
from tests.support.accounts.sign_ups import seal_test_value, unseal_test_value
from tests.support.database.audit_log import get_event_about_user, list_events_about_user
from tests.support.mail.email_links import (
    list_messages,
    new_address,
    read_stored_address,
    request_new_address,
)
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.sign_in.openid_provider import FakeProvider, add_provider, sign_in_through
from tests.support.sign_in.second_factors import assert_signed_in, give_app
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

ASK = "/users/password/new"
SIGN_IN = "/users/sign_in"
MAIL = {"MAIL_URL": "smtp://127.0.0.1:9"}


def ask_for(service: LiveGatebell, login: str) -> tuple[requests.Session, requests.Response]:
    """Request a link in a new browser."""
    browser = service.http()
    page = browser.get(service.url + ASK)
    return browser, submit(browser, page, form_with(page, "login"), login=login)


def links_to(service: LiveGatebell, email: str) -> list[str]:
    """Return the links that were sent to an address, newest first."""
    found = (
        re.search(r"http\S+/users/password/\S+", each) for each in list_messages(service, email)
    )
    return [each[0] for each in found if each]


def link_for(service: LiveGatebell, person: Person) -> str:
    assert ask_for(service, person.username)[1].status_code == 302
    return links_to(service, person.email)[0]


def choose(service: LiveGatebell, link: str, new: str, **more: str) -> requests.Response:
    """Follow a link in a new browser and choose a password."""
    browser = service.http()
    page = browser.get(link)
    assert page.status_code == 200, page.url
    values = {"new_password": new, "repeat_password": new} | more
    return submit(browser, page, form_with(page, "new_password"), **values)


def can_sign_in(service: LiveGatebell, login: str, password: str) -> bool:
    return try_to_sign_in(service, login, password).status_code == 302


def is_rejected(service: LiveGatebell, link: str) -> bool:
    """Return whether a link redirects to the request form with an error."""
    browser = service.http()
    answer = browser.get(link)
    reason = words(answer).partition("Reset your password")[0]
    return answer.url == service.url + ASK and "link" in reason


@pytest.mark.long
def test_a_link_sets_a_new_password_that_replaces_the_old_one(mailing: LiveGatebell) -> None:
    person, new = make_user(mailing), generate_random_password()
    elsewhere = open_browser(mailing, person)
    door = mailing.http()
    page = door.get(f"{mailing.url}{SIGN_IN}?next=/-/user_settings/profile")
    asked = re.search(r'href="([^"]+)">Forgot your password', page.text)
    assert asked is not None
    page = door.get(mailing.url + unescape(asked[1]))
    answer = submit(door, page, form_with(page, "login"), login=f" {person.email.upper()} ")
    assert answer.headers["Location"] == f"{SIGN_IN}?next=/-/user_settings/profile"
    assert "a link was sent to its email address" in words(door.get(mailing.url + SIGN_IN))
    (message,) = list_messages(mailing, person.email)
    assert f"@{person.username}, from the IP address 127.0.0.1." in message
    assert get_event_about_user(mailing, person, EventKind.PASSWORD_LINK_SENT).actor_name == ""

    (link,) = links_to(mailing, person.email)
    answer = choose(mailing, link, new)
    assert answer.status_code == 302
    assert answer.headers["Location"] == SIGN_IN
    assert not can_sign_in(mailing, person.username, person.password)
    assert can_sign_in(mailing, person.email, new)
    profile = elsewhere.get(f"{mailing.url}/-/user_settings/profile", allow_redirects=False)
    assert profile.status_code == 302, "other browsers are signed out"
    assert read_stored_address(mailing, person) == (person.email, True), (
        "whoever has the link reads the mail"
    )
    kinds = [each.kind for each in list_events_about_user(mailing, person)]
    assert {"password.changed", "email.confirmed"} <= set(kinds)
    assert is_rejected(mailing, link), "it works once"


@pytest.mark.advisory("CVE-2022-35924", "CVE-2023-7028")
def test_a_link_is_sent_only_to_the_address_of_the_account(mailing: LiveGatebell) -> None:
    victim, thief = make_user(mailing), make_user(mailing)
    both = (f"{victim.email},{thief.email}", f"{victim.email} {thief.email}")
    for login in ([victim.email, thief.email], *([each] for each in both)):
        browser = mailing.http()
        page = browser.get(mailing.url + ASK)
        token = form_with(page, "login").value("csrf_token")
        fields = [("csrf_token", token), *(("login", each) for each in login)]
        fields += [("login[]", thief.email), ("email", thief.email)]
        assert browser.post(mailing.url + ASK, data=fields).status_code < 500
    assert links_to(mailing, thief.email) == []
    # The first value counts if the form contains a name twice.
    assert len(links_to(mailing, victim.email)) == 1


@pytest.mark.advisory("CVE-2023-49097")
def test_headers_cannot_change_the_host_of_a_link(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    browser = mailing.http()
    forged = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    page = browser.get(mailing.url + ASK, headers=forged)
    fields = form_with(page, "login").filled(login=person.username)
    for headers in (forged, {**forged, "Host": "evil.example"}):
        assert browser.post(mailing.url + ASK, data=fields, headers=headers).status_code < 500
    links = links_to(mailing, person.email)
    assert links
    assert all(each.startswith(f"{mailing.url}/") for each in links)


def test_the_page_of_a_link_is_not_cached_and_changes_nothing(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    link = link_for(mailing, person)
    for _ in range(2):
        page = mailing.http().get(link)
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] in {"no-referrer", "same-origin"}
    assert mailing.http().head(link).status_code == 200
    assert can_sign_in(mailing, person.username, person.password)


@pytest.mark.parametrize("state", ["nobody", "locked", "blocked", "a bot"])
def test_the_response_does_not_show_if_an_account_exists(mailing: LiveGatebell, state: str) -> None:
    person = make_user(mailing)
    if state in {"locked", "blocked"}:
        set_state(mailing, person, state)
    if state == "a bot":
        with database_of(mailing) as session:
            session.query(User).filter_by(username=person.username).update({"kind": "bot"})
    login = unique("nobody") if state == "nobody" else person.username
    browser, answer = ask_for(mailing, login)
    known, same = ask_for(mailing, alice(mailing).username)
    assert (answer.status_code, answer.headers["Location"]) == (302, same.headers["Location"])
    shown = words(browser.get(mailing.url + SIGN_IN))
    assert shown == words(known.get(mailing.url + SIGN_IN))
    assert list_messages(mailing, person.email) == []


@pytest.mark.parametrize("change", ["their own", "an administrator's", "address", "lock", "link"])
def test_changes_of_the_account_end_the_link(mailing: LiveGatebell, change: str) -> None:
    person = make_user(mailing)
    link = link_for(mailing, person)
    if change == "their own":
        change_password(mailing, open_browser(mailing, person), person)
    elif change == "an administrator's":
        submit_form_by_ending(
            mailing, f"/admin/users/{find_user_id(mailing, person)}", "/reset_password"
        )
    elif change == "address":
        mailing.cli("users", "change", person.username, "--email", new_address())
    elif change == "lock":
        mailing.cli("users", "lock", person.username)
    else:
        other = link_for(mailing, person)
        assert choose(mailing, other, generate_random_password()).status_code == 302
    assert is_rejected(mailing, link)


def test_the_link_of_a_locked_account_works_again_after_the_unlock(mailing: LiveGatebell) -> None:
    person, new = make_user(mailing), generate_random_password()
    link = link_for(mailing, person)
    set_state(mailing, person, "locked")
    assert is_rejected(mailing, link)
    set_state(mailing, person, "active")
    assert choose(mailing, link, new).status_code == 302


def test_a_link_works_for_an_hour_and_only_for_its_account(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    link = link_for(mailing, person)
    page, _, text = link.rpartition("/")
    value, hour = unseal_test_value(text, RESET_LINK_PURPOSE), RESET_LINK_LIFETIME.total_seconds()
    fresh = seal_test_value(value, RESET_LINK_PURPOSE, age=hour - 30)
    assert mailing.http().get(f"{page}/{fresh}").status_code == 200
    for wrong in (
        seal_test_value(value, RESET_LINK_PURPOSE, age=hour + 30),
        seal_test_value(value, "invitation"),
        seal_test_value([find_user_id(mailing, alice(mailing)), value[1]], RESET_LINK_PURPOSE),
        *(text[:-3], f"{text}x", "x", f"{text[:-40]}%00"),
    ):
        assert is_rejected(mailing, f"{page}/{wrong}"), wrong


@pytest.mark.long
def test_the_page_offers_to_revoke_tokens(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    kept, ended = make_token(mailing, person), make_user(mailing)
    page = mailing.http().get(link_for(mailing, ended))
    assert "revoke_tokens" not in page.text, "there is none"
    assert choose(mailing, link_for(mailing, person), generate_random_password()).status_code == 302
    asked = partial(requests.get, f"{mailing.url}/api/v4/user", timeout=10)
    assert asked(headers={"PRIVATE-TOKEN": kept.clear}).status_code == 200
    answer = choose(
        mailing, link_for(mailing, person), generate_random_password(), revoke_tokens="y"
    )
    assert answer.status_code == 302
    assert asked(headers={"PRIVATE-TOKEN": kept.clear}).status_code == 401
    last = list_events_about_user(mailing, person, EventKind.PASSWORD_CHANGED)[0]
    assert last.details["tokens_revoked"] == 1


@pytest.mark.long
def test_a_password_reset_cancels_a_requested_address_change(mailing: LiveGatebell) -> None:
    person, wished = make_user(mailing), new_address()
    request_new_address(mailing, person, wished)
    assert choose(mailing, link_for(mailing, person), generate_random_password()).status_code == 302
    assert script_of(mailing, person).send_request("GET", "/user").json()["email"] == person.email
    assert "has to be confirmed" not in mailing.http().get(mailing.url + SIGN_IN).text


@pytest.mark.long
@pytest.mark.parametrize(
    ("new", "again", "why"),
    [
        ("short", "short", "at least"),
        ("", "", "Enter a new password"),
        ("a long enough phrase", "another one", "do not match"),
    ],
)
def test_a_rejected_password_does_not_use_up_the_link(
    mailing: LiveGatebell, new: str, again: str, why: str
) -> None:
    person = make_user(mailing)
    link = link_for(mailing, person)
    answer = choose(mailing, link, new, repeat_password=again)
    assert answer.status_code == 422
    assert why in words(answer)
    assert choose(mailing, link, generate_random_password()).status_code == 302


@pytest.mark.long
def test_a_password_reset_keeps_the_second_factor(mailing: LiveGatebell) -> None:
    person, new = make_user(mailing), generate_random_password()
    give_app(mailing, person)
    assert choose(mailing, link_for(mailing, person), new).status_code == 302
    answer = try_to_sign_in(mailing, person.username, new)
    assert answer.headers["Location"].startswith("/users/two_factor")


@pytest.mark.long
def test_a_user_with_too_many_guesses_can_sign_in_after_a_reset(mailing: LiveGatebell) -> None:
    person, new = make_user(mailing), generate_random_password()
    while try_to_sign_in(mailing, person.username, "a wrong one").status_code != 429:
        pass
    assert choose(mailing, link_for(mailing, person), new).status_code == 302
    assert can_sign_in(mailing, person.username, new)


@pytest.mark.both_databases
def test_only_one_of_parallel_uses_of_a_link_sets_the_password(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    link = link_for(mailing, person)
    new = [generate_random_password() for _ in range(4)]
    browsers = [mailing.http() for _ in new]
    pages = [browser.get(link) for browser in browsers]
    run_simultaneously(
        [
            partial(
                submit,
                browser,
                page,
                form_with(page, "new_password"),
                new_password=each,
                repeat_password=each,
            )
            for browser, page, each in zip(browsers, pages, new, strict=True)
        ]
    )
    assert sum(can_sign_in(mailing, person.username, each) for each in new) == 1
    assert len(list_events_about_user(mailing, person, EventKind.PASSWORD_CHANGED)) == 1


@pytest.mark.long
def test_reset_emails_to_one_address_are_limited(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    for _ in range(30):
        assert ask_for(mailing, person.username)[1].status_code == 302
    count = len(list_messages(mailing, person.email))
    assert 1 <= count < 30
    assert len(list_events_about_user(mailing, person, EventKind.PASSWORD_LINK_SENT)) == count


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_too_many_requests_for_links_are_rejected(new_service: NewService) -> None:
    few = {"SIGN_IN_ATTEMPTS_PER_ADDRESS": "3"}
    with running(new_service("sqlite", only="app", **MAIL, **few)) as service:
        answers = [ask_for(service, unique("nobody"))[1] for _ in range(5)]
        assert [each.status_code for each in answers] == [302, 302, 302, 429, 429]
        assert int(answers[-1].headers["Retry-After"]) > 0
        assert "Too many attempts" in words(answers[-1])


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_without_a_mail_server_the_page_refers_to_an_administrator(new_service: NewService) -> None:
    with running(new_service("sqlite", only="app")) as service:
        browser = service.http()
        page = browser.get(service.url + ASK)
        assert "Ask an administrator to reset your password" in words(page)
        token = form_with(browser.get(service.url + SIGN_IN), "csrf_token").value("csrf_token")
        sent = {"csrf_token": token, "login": "admin"}
        answer = browser.post(service.url + ASK, data=sent, allow_redirects=False)
        assert answer.status_code == 409
        assert "does not send emails" in words(answer)


@pytest.mark.long
def test_a_user_without_a_password_can_set_one_with_the_link(
    mailing: LiveGatebell, provider: FakeProvider
) -> None:
    slug = add_provider(mailing, provider.url, "--creates-accounts")
    assert_signed_in(sign_in_through(mailing, provider, slug))
    new = generate_random_password()
    name, email = provider.person["preferred_username"], provider.person["email"]
    person = Person(username=name, email=email, password=new)
    link = link_for(mailing, person)
    assert choose(mailing, link, new).status_code == 302
    assert_signed_in(try_to_sign_in(mailing, name, new))
    assert mailing.http().get(link).url.endswith(ASK)
    assert_signed_in(sign_in_through(mailing, provider, slug))
