"""Tests of signing up: links to email addresses, new accounts, and approval by administrators."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
import requests
from sqlalchemy import delete

from domain.accounts.lifecycle.sign_up import SIGN_UP_LINK_PURPOSE
from domain.accounts.sign_up import SIGN_UP_LINK_LIFETIME
from domain.audit.events import EventKind
from domain.core.randomness import generate_random_password
from models import AuditEvent, Mail, User
from tests.conftest import KINDS
from tests.support.accounts.administration import (
    find_last_event,
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    submit_form_by_ending,
)
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_application,
    make_user,
    now,
    open_browser,
    set_state,
    sign_in,
    try_to_sign_in,
    unique,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.sign_ups import (
    ASK,
    create_account_from_link,
    make_newcomer,
    request_sign_up_link,
    seal_test_value,
    sign_up_link,
    sign_up_links,
    unseal_test_value,
)
from tests.support.database.audit_log import get_event_about_user
from tests.support.mail.email_links import list_messages, read_stored_address
from tests.support.oauth.oauth_wire import (
    open_and_follow,
    open_authorization,
    parse_redirect,
    submit_decision,
)
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.live_settings import changed_settings
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

SIGN_IN = "/users/sign_in"
PROFILE = "/-/user_settings/profile"
MAIL = {"MAIL_URL": "smtp://127.0.0.1:9"}


@pytest.fixture
def service(mailing: LiveGatebell) -> LiveGatebell:
    """A service where everyone can sign up."""
    return mailing


def is_known(service: LiveGatebell, username: str) -> bool:
    with database_of(service) as session:
        return session.query(User).filter_by(username=username).count() == 1


def rejection(service: LiveGatebell, link: str) -> str:
    """Return the message of the sign-in page after a rejected link."""
    browser = service.http()
    answer = browser.get(link, allow_redirects=False)
    assert answer.headers.get("Location") == SIGN_IN, answer.status_code
    return words(browser.get(service.url + SIGN_IN)).partition("Sign in")[0]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_sign_up_link_leads_to_a_signed_in_account(service: LiveGatebell) -> None:
    person, browser = make_newcomer(), service.http()
    assert 'href="/users/sign_up">Sign up' in browser.get(service.url + SIGN_IN).text
    answer = request_sign_up_link(service, f" {person.email} ", browser=browser)
    assert answer.headers["Location"] == SIGN_IN
    said = words(browser.get(service.url + SIGN_IN))
    assert f"Check your email: a link was sent to {person.email}." in said
    assert not is_known(service, person.username)

    (link,) = sign_up_links(service, person.email)
    page = service.http().get(link)
    assert page.headers["Cache-Control"] == "no-store"
    assert person.email in words(page)
    assert service.http().head(link).status_code == 200
    assert not is_known(service, person.username), "only the form makes an account"
    answer = create_account_from_link(service, link, person, browser=browser, name="Dora Day")
    assert answer.headers["Location"] == "/"
    assert "Dora Day" in browser.get(service.url + PROFILE).text
    assert read_stored_address(service, person) == (person.email, True), (
        "whoever has the link reads the mail"
    )
    assert get_event_about_user(service, person, EventKind.USER_CREATED).actor_name == ""
    sign_in(service, person)
    assert "An account for" in rejection(service, link)


def test_a_sign_up_returns_to_the_consent_page_in_the_same_browser(service: LiveGatebell) -> None:
    client = make_application(service, alice(service))
    person, browser = make_newcomer(), service.http()
    page = open_authorization(browser, service, client)
    way = page.text.partition('No account yet? <a href="')[2].partition('"')[0]
    way = way.replace("&amp;", "&")
    assert request_sign_up_link(service, person.email, browser=browser, path=way).status_code == 302
    link = sign_up_links(service, person.email)[0]
    assert "/oauth/authorize" not in service.http().get(link).text, "another browser goes home"
    answer = create_account_from_link(service, link, person, browser=browser)
    asked = open_and_follow(browser, service.url + answer.headers["Location"])
    assert "code" in parse_redirect(submit_decision(browser, asked))


@pytest.mark.parametrize("way", ["https://evil.example/", "//evil.example", "/x/../..//evil"])
def test_a_sign_up_does_not_redirect_to_other_sites(service: LiveGatebell, way: str) -> None:
    person, browser = make_newcomer(), service.http()
    path = f"{ASK}?next={quote(way, safe='')}"
    assert (
        request_sign_up_link(service, person.email, browser=browser, path=path).status_code == 302
    )
    link = sign_up_links(service, person.email)[0]
    answer = create_account_from_link(service, f"{link}?next={way}", person, browser=browser)
    assert answer.headers["Location"] == "/"


@pytest.mark.parametrize("spelling", ["as it is", "other case", "look-alike letters"])
def test_the_response_does_not_show_if_an_address_has_an_account(
    service: LiveGatebell, spelling: str
) -> None:
    person = make_user(service)
    typed = person.email
    if spelling == "other case":
        typed = person.email.upper()
    elif spelling == "look-alike letters":
        typed = person.email.replace("a", "\uff41", 1)
    browsers = [service.http() for _ in range(2)]
    nobody = make_newcomer().email
    answers = [
        request_sign_up_link(service, email, browser=browser)
        for email, browser in zip((typed, nobody), browsers, strict=True)
    ]
    assert {(each.status_code, each.headers["Location"]) for each in answers} == {(302, SIGN_IN)}
    said = [words(each.get(service.url + SIGN_IN)) for each in browsers]
    assert said[0].replace(typed, "") == said[1].replace(nobody, "")
    (message,) = list_messages(service, person.email)
    assert f"You already have an account: @{person.username}." in message
    assert "/users/password/new" in message
    assert typed == person.email or list_messages(service, typed) == [], "only the owner is told"
    assert sign_up_links(service, person.email) == []


@pytest.mark.parametrize(
    "wrong", ["", "nobody", "a@b", "a@b\x00.example", f"{'a' * 300}@b.example"]
)
def test_an_invalid_address_is_rejected_and_shown_again(service: LiveGatebell, wrong: str) -> None:
    answer = request_sign_up_link(service, wrong)
    assert answer.status_code == 422
    assert form_with(answer, "email").value("email") == wrong


def test_a_sign_up_link_works_for_a_day_and_only_for_signing_up(service: LiveGatebell) -> None:
    person = make_newcomer()
    link = sign_up_link(service, person.email)
    text, day = link.rpartition("/")[2], SIGN_UP_LINK_LIFETIME.total_seconds()
    value = unseal_test_value(text, SIGN_UP_LINK_PURPOSE)

    def made(*args: object, **how: object) -> str:
        return f"{service.url}{ASK}/{seal_test_value(*args, **how)}"  # type: ignore[arg-type]

    assert service.http().get(made(value, SIGN_UP_LINK_PURPOSE, age=day - 30)).status_code == 200
    for wrong in (
        made(value, SIGN_UP_LINK_PURPOSE, age=day + 30),
        made(value, "forgotten password"),
        made(value, SIGN_UP_LINK_PURPOSE, key="another key of forty characters, or more"),
        *(f"{service.url}{ASK}/{each}" for each in (text[:-3], f"{text}x", "x", f"{text}%00")),
    ):
        assert "This link has expired or is incomplete." in rejection(service, wrong), wrong


def test_a_sign_up_link_does_not_work_again_after_the_account_is_deleted(
    service: LiveGatebell,
) -> None:
    person, again = make_newcomer(), make_newcomer()
    link = sign_up_link(service, person.email)
    assert create_account_from_link(service, link, person).status_code == 302
    service.cli("users", "delete", person.username, "--delete-applications")
    answer = create_account_from_link(service, link, again)
    assert answer.headers["Location"] == SIGN_IN
    assert not is_known(service, again.username)


@pytest.mark.long
@pytest.mark.both_databases
def test_only_one_of_parallel_sign_ups_creates_an_account(service: LiveGatebell) -> None:
    email = make_newcomer().email
    links = [sign_up_link(service, email) for _ in range(2)] * 2
    people = [
        Person(
            username=unique("dora"), email=email, password=f"{generate_random_password()} and more"
        )
        for _ in links
    ]
    browsers = [service.http() for _ in links]
    pages = [browser.get(link) for browser, link in zip(browsers, links, strict=True)]
    answers = run_simultaneously(
        [
            partial(
                submit,
                browser,
                page,
                form_with(page, "new_password"),
                username=person.username,
                new_password=person.password,
                repeat_password=person.password,
            )
            for browser, page, person in zip(browsers, pages, people, strict=True)
        ]
    )
    assert [each.status_code for each in answers] == [302] * 4
    assert sorted(each.headers["Location"] for each in answers) == ["/", *[SIGN_IN] * 3]
    assert sum(is_known(service, each.username) for each in people) == 1


@pytest.mark.long
def test_a_taken_username_is_rejected_and_other_fields_are_kept(service: LiveGatebell) -> None:
    person, taken = make_newcomer(), make_user(service)
    link = sign_up_link(service, person.email)
    answer = create_account_from_link(
        service, link, person, username=taken.username.upper(), name="Dora Day"
    )
    assert answer.status_code == 422
    assert "This username is taken. Choose another name." in words(answer)
    assert form_with(answer, "name").value("name") == "Dora Day"
    assert create_account_from_link(service, link, person).status_code == 302


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"new_password": "short", "repeat_password": "short"}, "at least"),
        ({"repeat_password": "another one"}, "do not match"),
        ({"username": "no spaces please"}, "letters a to z"),
        ({"username": "a\x00b"}, "NUL"),
        ({"name": "x" * 101}, "at most 100"),
    ],
)
def test_a_rejected_form_does_not_use_up_the_link(
    service: LiveGatebell, values: dict[str, Any], why: str
) -> None:
    person = make_newcomer()
    link = sign_up_link(service, person.email)
    answer = create_account_from_link(service, link, person, **values)
    assert answer.status_code == 422
    assert why in words(answer)
    assert create_account_from_link(service, link, person).status_code == 302


@pytest.mark.long
def test_the_new_account_replaces_an_existing_sign_in(service: LiveGatebell) -> None:
    person, browser = make_newcomer(), open_browser(service, alice(service))
    assert create_account_from_link(
        service, sign_up_link(service, person.email), person, browser=browser
    ).is_redirect
    assert person.username in browser.get(service.url + PROFILE).text


@pytest.mark.long
def test_sign_up_emails_to_one_address_are_limited(service: LiveGatebell) -> None:
    email = make_newcomer().email
    other = email.replace("dora", "DORA")
    for spelling in (email, other) * 8:
        assert request_sign_up_link(service, spelling).status_code == 302
    assert [len(list_messages(service, each)) for each in (email, other)] == [5, 5]


@pytest.mark.one_database("sqlite")
def test_too_many_sign_up_attempts_are_rejected(new_service: NewService) -> None:
    few = {"SIGN_IN_ATTEMPTS_PER_ADDRESS": "4", "SIGN_UP": "open"}
    with running(new_service("sqlite", only="app", **MAIL, **few)) as service:
        person, taken = make_newcomer(), make_user(service)
        link = sign_up_link(service, person.email)
        tries = [
            create_account_from_link(service, link, person, username=taken.username, name="Dora")
            for _ in range(4)
        ]
        assert [each.status_code for each in tries] == [422, 422, 422, 429]
        assert form_with(tries[-1], "name").value("name") == "Dora"
        answer = request_sign_up_link(service, make_newcomer().email)
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
        assert "Too many attempts" in words(answer)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_only_addresses_of_allowed_domains_can_sign_up(service: LiveGatebell) -> None:
    domains = {"sign_up": "domains", "sign_up_email_domains": "people.example, b\u00fccher.example"}
    former = sign_up_link(service, make_newcomer(domain="else.example").email)
    with changed_settings(service, **domains):
        page = service.http().get(service.url + ASK)
        assert "ends with @bücher.example or @people.example" in words(page)
        for wrong in ("else.example", "sub.people.example", "people.example.evil.example"):
            answer = request_sign_up_link(service, make_newcomer(domain=wrong).email)
            assert answer.status_code == 422, wrong
            assert "cannot sign up with an email address of this domain" in words(answer)
        person = make_newcomer(domain="PEOPLE.example")
        assert request_sign_up_link(service, person.email).status_code == 302
        (link,) = sign_up_links(service, person.email.replace("PEOPLE", "people"))
        assert create_account_from_link(service, link, person).headers["Location"] == "/"
        odd = make_newcomer(domain="xn--bcher-kva.example")
        assert request_sign_up_link(service, odd.email).status_code == 302
        assert "can no longer sign up with" in rejection(service, former)
    with changed_settings(service, sign_up="off"):
        assert "can no longer sign up with" in rejection(service, former)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_a_new_account_must_set_up_a_required_second_factor(service: LiveGatebell) -> None:
    person, browser = make_newcomer(), service.http()
    with changed_settings(service, second_factor_required="everybody"):
        create_account_from_link(
            service, sign_up_link(service, person.email), person, browser=browser
        )
        assert browser.get(service.url + PROFILE).url == f"{service.url}/-/user_settings/security"


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_there_is_no_sign_up_page_if_sign_up_is_off(new_service: NewService) -> None:
    for settings in (MAIL, {"SIGN_UP": "open"}, {"SIGN_UP": "domains", **MAIL}):
        with running(new_service("sqlite", only="app", **settings)) as service:
            assert service.http().get(service.url + ASK).status_code == 404
            assert "/users/sign_up" not in service.http().get(service.url + SIGN_IN).text
            warned = service.run_cli("doctor").stdout
            assert ("SIGN_UP has no effect" in warned) == ("SIGN_UP" in settings)


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_the_audit_log_contains_no_links_and_no_addresses_of_strangers(
    service: LiveGatebell,
) -> None:
    email = make_newcomer().email
    link = sign_up_link(service, email)
    with database_of(service) as session:
        kind = EventKind.SIGN_UP_LINK_SENT.value
        events = session.query(AuditEvent).filter_by(kind=kind).all()
        assert events
        assert all(email not in f"{each.subject} {each.details}" for each in events)
        assert all(link not in f"{each.subject} {each.details}" for each in events)


@pytest.mark.long
def test_sign_up_emails_are_deleted_after_the_link_expired(service: LiveGatebell) -> None:
    person, later, unsent = make_newcomer(), make_newcomer(), make_newcomer()
    for each in (person, later, unsent):
        sign_up_link(service, each.email)
    past = now() - SIGN_UP_LINK_LIFETIME - timedelta(minutes=1)
    with database_of(service) as session:
        mail = session.query(Mail)
        mail.filter(Mail.recipient != later.email).update({"created_at": past})
        mail.filter(Mail.recipient != unsent.email).update({"send_at": None})
    service.cli("prune")
    assert list_messages(service, person.email) == []
    assert len(list_messages(service, later.email)) == 1
    assert len(list_messages(service, unsent.email)) == 1, "it is still tried"


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_an_export_contains_the_sign_up_email_without_its_link(service: LiveGatebell) -> None:
    person = make_newcomer()
    link = sign_up_link(service, person.email)
    create_account_from_link(service, link, person)
    exported = str(service.cli("users", "export", person.username))
    assert "wants to create an account" in exported
    assert link.rpartition("/")[2] not in exported


# Accounts that need approval by an administrator


@pytest.fixture(scope="module", params=KINDS)
def running_service(
    new_service: NewService, request: pytest.FixtureRequest
) -> Iterator[LiveGatebell]:
    """A service where sign-ups need approval, and where no worker sends the emails."""
    with running(new_service(request.param, only="app", SIGN_UP="approval", **MAIL)) as live:
        yield live


@pytest.fixture
def approving(running_service: LiveGatebell) -> LiveGatebell:
    """The service with one administrator, without pending users and emails."""
    get_shared_administrator(running_service)
    with database_of(running_service) as session:
        session.query(User).filter_by(state="pending").update({"state": "locked"})
        session.execute(delete(Mail))
    return running_service


def pending_user(approving: LiveGatebell) -> Person:
    """Create a user who has signed up and is pending approval."""
    person = make_newcomer()
    assert (
        create_account_from_link(
            approving, sign_up_link(approving, person.email), person
        ).status_code
        == 302
    )
    return person


def ask_api(approving: LiveGatebell, method: str, path: str) -> requests.Response:
    token = make_token(approving, get_shared_administrator(approving)).clear
    headers = {"PRIVATE-TOKEN": token}
    return requests.request(method, f"{approving.url}/api/v4{path}", headers=headers, timeout=30)


def state_of(approving: LiveGatebell, person: Person) -> str | None:
    with database_of(approving) as session:
        user = session.query(User).filter_by(username=person.username).one_or_none()
        return user.state if user else None


@pytest.mark.both_databases
def test_a_new_user_can_sign_in_after_the_approval(approving: LiveGatebell) -> None:
    person, browser = make_newcomer(), approving.http()
    link = sign_up_link(approving, person.email)
    assert "An administrator has to approve your account" in words(approving.http().get(link))
    answer = create_account_from_link(approving, link, person, browser=browser)
    assert answer.headers["Location"] == SIGN_IN
    assert "has to be approved by an administrator" in words(browser.get(approving.url + SIGN_IN))
    answer = try_to_sign_in(approving, person.email, person.password)
    assert answer.status_code == 403
    assert "This account is pending approval by an administrator." in words(answer)
    answer = try_to_sign_in(approving, person.email, "a wrong one")
    assert answer.status_code == 422
    assert "approved" not in words(answer), "only the right password tells"

    page = get_administrator_browser(approving).get(f"{approving.url}/admin/users?group=pending")
    assert person.username in page.text
    assert "Pending approval" in words(page)
    assert submit_form_by_ending(
        approving, f"/admin/users/{find_user_id(approving, person)}", "/approve"
    ).is_redirect
    assert find_last_event(approving, person.username).kind == "user.approved"
    assert "was approved. Sign in:" in list_messages(approving, person.email)[0]
    assert try_to_sign_in(approving, person.email, person.password).status_code == 302


@pytest.mark.long
def test_the_api_shows_the_pending_state_and_approves(approving: LiveGatebell) -> None:
    person = pending_user(approving)
    number = find_user_id(approving, person)
    found = ask_api(approving, "GET", f"/users/{number}").json()
    assert found["state"] == "blocked_pending_approval"
    assert ask_api(approving, "GET", f"/users?blocked=true&search={person.username}").json() == []
    assert ask_api(approving, "POST", f"/users/{number}/unblock").status_code == 409
    answer = ask_api(approving, "POST", f"/users/{number}/approve")
    assert (answer.status_code, answer.json()) == (201, {"message": "Success"})
    assert ask_api(approving, "GET", f"/users/{number}").json()["state"] == "active"
    for verb in ("approve", "reject"):
        assert ask_api(approving, "POST", f"/users/{number}/{verb}").status_code == 409
        assert ask_api(approving, "POST", f"/users/999999999/{verb}").status_code == 404
        mine = {"PRIVATE-TOKEN": make_token(approving, make_user(approving)).clear}
        url = f"{approving.url}/api/v4/users/{number}/{verb}"
        assert requests.post(url, headers=mine, timeout=30).status_code == 403


@pytest.mark.long
@pytest.mark.parametrize("face", ["page", "api"])
def test_a_rejected_user_is_notified_and_deleted(approving: LiveGatebell, face: str) -> None:
    person = pending_user(approving)
    number = find_user_id(approving, person)
    if face == "page":
        assert submit_form_by_ending(approving, f"/admin/users/{number}", "/reject").is_redirect
    else:
        answer = ask_api(approving, "POST", f"/users/{number}/reject")
        assert (answer.status_code, answer.json()) == (200, {"message": "Success"})
    assert state_of(approving, person) is None
    assert "was not approved and has been deleted" in list_messages(approving, person.email)[0]
    assert find_last_event(approving, f"deleted user {number}").kind == "user.rejected"
    answer = try_to_sign_in(approving, person.email, person.password)
    assert answer.status_code == 422
    assert (
        create_account_from_link(
            approving, sign_up_link(approving, person.email), person
        ).status_code
        == 302
    )


@pytest.mark.long
def test_the_command_line_lists_and_approves_pending_users(approving: LiveGatebell) -> None:
    person = pending_user(approving)
    listed = approving.cli("users", "list", "--group", "pending")["users"]
    assert [each["username"] for each in listed] == [person.username]
    assert approving.cli("users", "approve", person.username) == {"message": "Success"}
    done = approving.run_cli("users", "approve", person.username)
    assert done.returncode != 0
    assert "is not pending approval" in done.stdout + done.stderr


@pytest.mark.long
def test_administrators_get_one_email_until_no_user_is_pending(approving: LiveGatebell) -> None:
    told = partial(list_messages, approving, get_shared_administrator(approving).email)
    people = [pending_user(approving) for _ in range(3)]
    assert len(told()) == 1
    assert "/admin/users?group=pending" in told()[0]
    for each in people:
        approving.cli("users", "approve", each.username)
    pending_user(approving)
    assert len(told()) == 2


@pytest.mark.long
@pytest.mark.both_databases
def test_parallel_sign_ups_send_one_email_to_administrators(approving: LiveGatebell) -> None:
    people = [make_newcomer() for _ in range(4)]
    links = [sign_up_link(approving, each.email) for each in people]
    run_simultaneously(
        [
            partial(create_account_from_link, approving, link, person)
            for link, person in zip(links, people, strict=True)
        ]
    )
    assert [state_of(approving, each) for each in people] == ["pending"] * 4
    assert len(list_messages(approving, get_shared_administrator(approving).email)) == 1


@pytest.mark.both_databases
def test_only_one_of_parallel_approvals_and_rejections_succeeds(approving: LiveGatebell) -> None:
    person = pending_user(approving)
    number = find_user_id(approving, person)
    verbs = ("approve", "reject") * 2
    open_authorization = partial(ask_api, approving, "POST")
    answers = run_simultaneously(
        [partial(open_authorization, f"/users/{number}/{verb}") for verb in verbs]
    )
    statuses = sorted(each.status_code for each in answers)
    assert statuses[0] in {200, 201}
    assert set(statuses[1:]) <= {404, 409}
    assert state_of(approving, person) in {"active", None}


def test_a_locked_account_is_not_approved(approving: LiveGatebell) -> None:
    person = pending_user(approving)
    set_state(approving, person, "locked")
    number = find_user_id(approving, person)
    assert ask_api(approving, "POST", f"/users/{number}/approve").status_code == 409
    assert state_of(approving, person) == "locked"


def test_a_pending_user_cannot_reset_the_password(approving: LiveGatebell) -> None:
    person = pending_user(approving)
    before = list_messages(approving, person.email)
    browser = approving.http()
    page = browser.get(f"{approving.url}/users/password/new")
    submit(browser, page, form_with(page, "login"), login=person.email)
    assert list_messages(approving, person.email) == before
