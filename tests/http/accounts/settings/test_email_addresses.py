"""Tests of email addresses: confirmation by link or by administrators, and changes of addresses."""

import re
from datetime import timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import func, select, update

from domain.accounts.email_addresses import CONFIRMATION_LINK_LIFETIME, find_unconfirmed_address
from domain.accounts.users import get_user
from domain.audit.events import EventKind
from models import EmailConfirmation, Mail, User
from tests.http.accounts.settings.test_account import change_profile
from tests.http.accounts.settings.test_copied_cookies import change_password
from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    get_shared_administrator,
    submit_form_by_ending,
)
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    now,
    open_browser,
    settings_of,
    unique,
)
from tests.support.database.audit_log import list_events_about_user
from tests.support.mail.email_links import (
    PROFILE,
    find_link,
    list_messages,
    new_address,
    open_and_confirm_link,
    read_claims,
    read_stored_address,
    request_new_address,
)
from tests.support.mail.stored_texts import list_stored_mails
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit


def user_of(service: LiveGatebell, person: Person) -> dict[str, Any]:
    found: dict[str, Any] = script_of(service, person).send_request("GET", "/user").json()
    return found


@pytest.mark.long
def test_a_link_confirms_the_address_and_applications_see_it(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    assert read_claims(mailing, person)["email_verified"] is False
    assert user_of(mailing, person)["confirmed_at"] is None
    browser = open_browser(mailing, person)
    page = browser.get(mailing.url + PROFILE)
    assert "Your email address is not verified" in page.text
    assert submit(browser, page, form_to(page, "/send_link")).status_code == 302
    assert (
        open_and_confirm_link(mailing, person, find_link(mailing, person.email)).status_code == 302
    )
    assert read_claims(mailing, person)["email_verified"] is True
    confirmed_at = user_of(mailing, person)["confirmed_at"]
    assert confirmed_at.endswith("Z")
    seen_by_root = script_of(mailing, get_shared_administrator(mailing)).send_request(
        "GET", f"/users/{find_user_id(mailing, person)}"
    )
    assert seen_by_root.json()["confirmed_at"] == confirmed_at
    assert "The current address is verified." in browser.get(mailing.url + PROFILE).text


@pytest.mark.long
def test_a_new_address_is_used_after_confirmation_and_the_old_one_is_notified(
    mailing: LiveGatebell,
) -> None:
    person, email = make_user(mailing), new_address()
    assert request_new_address(mailing, person, email).status_code == 302
    assert read_stored_address(mailing, person) == (person.email, False)
    (told,) = list_messages(mailing, person.email)
    assert email in told
    assert "If this was not you, change your password" in told
    # GET and HEAD change nothing, since programs follow links, too.
    link, browser = find_link(mailing, email), open_browser(mailing, person)
    for _ in range(2):
        assert browser.get(link).status_code == 200
    assert requests.get(link, timeout=30).url.startswith(f"{mailing.url}/users/sign_in")
    assert browser.head(link).status_code == 200
    assert read_stored_address(mailing, person) == (person.email, False)
    assert open_and_confirm_link(mailing, person, link).status_code == 302
    assert read_stored_address(mailing, person) == (email, True)
    told, *_ = list_messages(mailing, person.email)
    assert f"The email address of @{person.username} was changed" in told
    assert email in told
    kinds = [event.kind for event in list_events_about_user(mailing, person)]
    about = [kind for kind in kinds if kind.startswith("email.")]
    assert about == [EventKind.EMAIL_CONFIRMED, EventKind.EMAIL_CHANGE_REQUESTED]


@pytest.mark.long
def test_a_confirmation_link_works_once_and_a_newer_one_replaces_it(mailing: LiveGatebell) -> None:
    person, first, second = make_user(mailing), new_address(), new_address()
    request_new_address(mailing, person, first)
    request_new_address(mailing, person, second)
    assert open_and_confirm_link(mailing, person, find_link(mailing, first)).status_code == 404
    assert read_stored_address(mailing, person) == (person.email, False)
    link = find_link(mailing, second)
    assert open_and_confirm_link(mailing, person, link).status_code == 302
    assert open_and_confirm_link(mailing, person, link).status_code == 404
    assert read_stored_address(mailing, person) == (second, True)


@pytest.mark.long
def test_a_confirmation_link_works_for_one_account_and_cannot_be_forged(
    mailing: LiveGatebell,
) -> None:
    person, other, email = make_user(mailing), make_user(mailing, name="mallory"), new_address()
    request_new_address(mailing, person, email)
    link = find_link(mailing, email)
    # A user who reads the mail of an address cannot be tricked into confirming it for another
    # account.
    answer = open_and_confirm_link(mailing, other, link)
    assert answer.status_code == 404
    assert email not in answer.text
    assert person.username not in answer.text
    base, _, token = link.rpartition("/")
    for wrong in (f"{token}x", token[:-1], f"gba-{token[4:]}", "x", "%00", token.upper()):
        assert open_and_confirm_link(mailing, person, f"{base}/{wrong}").status_code == 404, wrong
    # The form of the right user fails, too, when another browser submits it.
    browser, mallory = open_browser(mailing, person), open_browser(mailing, other)
    page = browser.get(link)
    assert submit(mallory, page, form_to(page, token)).status_code in {400, 404}
    assert read_stored_address(mailing, person) == (person.email, False)
    assert open_and_confirm_link(mailing, person, link).status_code == 302


@pytest.mark.long
@pytest.mark.parametrize("way", ["their own", "an administrator's", "a command's"])
def test_a_new_password_cancels_a_requested_address_change(mailing: LiveGatebell, way: str) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    assert "This also cancels the change" in list_messages(mailing, person.email)[0]
    if way == "their own":
        change_password(mailing, open_browser(mailing, person), person)
    elif way == "a command's":
        mailing.cli("users", "reset-password", person.username)
    else:
        submit_form_by_ending(
            mailing, f"/admin/users/{find_user_id(mailing, person)}", "/reset_password"
        )
    with database_of(mailing) as session:
        user_id = get_user(person.username, session=session).id
        assert find_unconfirmed_address(user_id, session=session) is None
    assert (
        email
        not in get_administrator_browser(mailing).get(f"{mailing.url}/admin/users/{user_id}").text
    )


@pytest.mark.long
def test_a_new_password_keeps_the_link_for_the_current_address(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    browser = open_browser(mailing, person)
    page = browser.get(mailing.url + PROFILE)
    submit(browser, page, form_to(page, "/send_link"))
    change_password(mailing, browser, person)
    assert submit_link(browser, find_link(mailing, person.email)).status_code == 302
    assert read_stored_address(mailing, person) == (person.email, True)


def submit_link(browser: requests.Session, link: str) -> requests.Response:
    page = browser.get(link)
    return submit(browser, page, form_to(page, link.rpartition("/")[2]))


@pytest.mark.long
def test_a_confirmation_link_expires(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    old = now() - CONFIRMATION_LINK_LIFETIME - timedelta(seconds=5)
    change = update(EmailConfirmation).where(EmailConfirmation.email == email)
    with database_of(mailing) as session:
        session.execute(change.values(created_at=old))
    assert open_and_confirm_link(mailing, person, find_link(mailing, email)).status_code == 404
    browser = open_browser(mailing, person)
    page = browser.get(mailing.url + PROFILE)
    assert "The link has expired" in page.text
    submit(browser, page, form_to(page, "/send_link"))
    assert open_and_confirm_link(mailing, person, find_link(mailing, email)).status_code == 302
    assert read_stored_address(mailing, person) == (email, True)


@pytest.mark.long
def test_the_response_does_not_show_if_an_address_is_taken(mailing: LiveGatebell) -> None:
    person, owner = make_user(mailing), make_user(mailing, name="owner")
    free, taken = new_address(), owner.email.upper()
    pages = []
    for email in (free, taken):
        browser = open_browser(mailing, person)
        answer = change_profile(mailing, browser, "Somebody", email, person.password)
        page = browser.get(mailing.url + PROFILE).text
        assert answer.status_code == 302
        pages.append(re.sub(r'value="[^"]{30,}"', "", page.replace(email, "ADDRESS")))
    # The two requests can be sent in different seconds.
    of_times = r"<time.*?</time>|\d\d:\d\d:\d\d(?: UTC|Z)"
    free_page, taken_page = (re.sub(of_times, "", page) for page in pages)
    normal = f"{owner.email.partition('@')[0].upper()}@people.example"
    assert free_page == taken_page.replace(normal, "ADDRESS")
    # The owner of the address is notified, but gets no link.
    (told,) = list_messages(mailing, normal)
    assert "already belongs to another account" in told
    assert "email_confirmations" not in told
    # The current address gets the same message in both cases.
    after, before = list_messages(mailing, person.email)
    assert after.replace(normal, free) == before
    # The export of a user contains neither messages to other users nor links.
    export = script_of(mailing, person).send_request(
        "GET", f"/users/{find_user_id(mailing, person)}/export"
    )
    assert "belongs to another" not in export.text


@pytest.mark.long
def test_an_address_that_was_taken_after_the_request_is_rejected(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    other = make_user(mailing)
    with database_of(mailing) as session:
        session.execute(
            update(User).where(User.username == other.username).values(email=email, email_key=email)
        )
    answer = open_and_confirm_link(mailing, person, find_link(mailing, email))
    assert answer.status_code == 409
    assert "Another user has this email address." in answer.text
    assert read_stored_address(mailing, person) == (person.email, False)


@pytest.mark.long
def test_an_export_contains_no_confirmation_links(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    browser = open_browser(mailing, person)
    page = browser.get(mailing.url + PROFILE)
    submit(browser, page, form_to(page, "/send_link"))
    secret = find_link(mailing, person.email).rpartition("/")[2]
    export = script_of(mailing, person).send_request(
        "GET", f"/users/{find_user_id(mailing, person)}/export"
    )
    (mail,) = export.json()["mails"]
    assert "/-/email_confirmations/…" in mail["text"]
    assert secret not in export.text
    with database_of(mailing) as session:
        session.execute(update(Mail).values(text=""))
        rows = session.execute(select(EmailConfirmation.__table__)).all()
        assert secret not in repr(rows)


@pytest.mark.long
def test_confirmation_messages_are_limited(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    statuses = [request_new_address(mailing, person, email).status_code for _ in range(11)]
    assert statuses == [302] * 10 + [429]
    assert len(list_messages(mailing, email)) == 10
    # Changes of the name are still possible.
    browser = open_browser(mailing, person)
    assert change_profile(mailing, browser, "Carl", person.email).status_code == 302


@pytest.mark.long
def test_an_address_with_a_line_break_is_rejected(mailing: LiveGatebell) -> None:
    person = make_user(mailing)
    for email in (
        "a@people.example\r\nBcc: b@people.example",
        "a@people.example\nX: y",
        '"a\r\nBcc: b"@people.example',
        "a@people.example, b@people.example",
        "<a@people.example>",
        "a\x00@people.example",
    ):
        assert request_new_address(mailing, person, email).status_code == 422, email
    with database_of(mailing) as session:
        assert (
            session.scalar(
                select(func.count()).select_from(Mail).where(Mail.recipient.contains("Bcc"))
            )
            == 0
        )


@pytest.mark.long
def test_a_cancelled_change_ends_the_link(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    browser = open_browser(mailing, person)
    page = browser.get(mailing.url + PROFILE)
    submit(browser, page, form_to(page, "/cancel"))
    assert open_and_confirm_link(mailing, person, find_link(mailing, email)).status_code == 404


@pytest.mark.long
def test_a_new_account_gets_a_link_unless_the_administrator_confirms_the_address(
    mailing: LiveGatebell,
) -> None:
    script = script_of(mailing, get_shared_administrator(mailing))

    def make(**more: object) -> dict[str, Any]:
        name = unique("new")
        body = {"username": name, "email": f"{name}@people.example", "name": name}
        answer = script.send_request(
            "POST", "/users", json={**body, "force_random_password": True, **more}
        )
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    asked, vouched = make(), make(skip_confirmation=True)
    assert asked["confirmed_at"] is None
    assert find_link(mailing, asked["email"])
    assert vouched["confirmed_at"]
    assert list_messages(mailing, vouched["email"]) == []


@pytest.mark.long
def test_an_administrators_address_change_applies_immediately_and_needs_confirmation(
    mailing: LiveGatebell,
) -> None:
    script, person = script_of(mailing, get_shared_administrator(mailing)), make_user(mailing)
    path = f"/users/{find_user_id(mailing, person)}"
    first, second = new_address(), new_address()
    request_new_address(mailing, person, new_address())
    assert script.send_request("PUT", path, json={"skip_confirmation": True}).json()["confirmed_at"]
    changed = script.send_request("PUT", path, json={"email": first}).json()
    assert (changed["email"], changed["confirmed_at"]) == (first, None)
    assert first in list_messages(mailing, person.email)[0]
    assert find_link(mailing, first)
    vouched = script.send_request(
        "PUT", path, json={"email": second, "skip_reconfirmation": True}
    ).json()
    assert vouched["email"] == second
    assert vouched["confirmed_at"]
    assert len(list_messages(mailing, second)) == 0
    # The link that was sent to the previous address no longer works.
    assert open_and_confirm_link(mailing, person, find_link(mailing, first)).status_code == 404


def test_only_one_of_parallel_confirmations_succeeds(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    link, browser = find_link(mailing, email), open_browser(mailing, person)
    page = browser.get(link)
    form = form_to(page, link.rpartition("/")[2])
    answers = run_simultaneously([lambda: submit(browser, page, form)] * 6)
    assert sorted(answer.status_code for answer in answers) == [302] + [404] * 5
    assert read_stored_address(mailing, person) == (email, True)


@pytest.mark.long
def test_an_erased_user_leaves_no_messages_with_addresses(mailing: LiveGatebell) -> None:
    person, email = make_user(mailing), new_address()
    request_new_address(mailing, person, email)
    request_new_address(mailing, person, alice(mailing).email)
    answer = script_of(mailing, get_shared_administrator(mailing)).send_request(
        "DELETE", f"/users/{find_user_id(mailing, person)}"
    )
    assert answer.status_code == 204, answer.text
    with database_of(mailing) as session:
        for row in list_stored_mails(session, settings_of(mailing).secret_key):
            assert person.username not in f"{row.recipient} {row.text}"
            assert email not in f"{row.recipient} {row.text}"
        assert email not in list(session.scalars(select(EmailConfirmation.email)))
