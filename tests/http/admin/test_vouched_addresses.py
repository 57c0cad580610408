"""Tests of email addresses that administrators confirm, with and without a mail server."""

import pytest

from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.administration import (
    find_user_id,
    get_administrator_browser,
    read_redirected_page,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.people import Person, make_user, open_browser
from tests.support.accounts.personal_tokens import Api
from tests.support.mail.email_links import (
    PROFILE,
    list_messages,
    new_address,
    read_claims,
    read_stored_address,
    request_new_address,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, form_with, submit


@pytest.mark.both_databases
def test_an_administrator_can_confirm_an_address_without_a_mail_server(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    email = new_address()
    assert request_new_address(gatebell, charlie, email).status_code == 302
    page = open_browser(gatebell, charlie).get(gatebell.url + PROFILE)
    assert "ask an administrator" in page.text
    assert "/send_link" not in page.text
    assert list_messages(gatebell, email) == []
    account = f"/admin/users/{find_user_id(gatebell, charlie)}"
    seen = read_redirected_page(
        gatebell, submit_form_by_ending(gatebell, account, "/confirm_address")
    )
    assert f"Email address {email} confirmed." in seen
    assert read_stored_address(gatebell, charlie) == (email, True)


@pytest.mark.long
def test_an_administrator_can_mark_an_address_as_verified_on_the_page(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    account = f"/admin/users/{find_user_id(gatebell, charlie)}"
    assert "not verified" in get_administrator_browser(gatebell).get(gatebell.url + account).text
    seen = read_redirected_page(
        gatebell, submit_form_by_ending(gatebell, account, "/verify_address")
    )
    assert f"{charlie.email} is marked as verified." in seen
    assert read_claims(gatebell, charlie)["email_verified"] is True
    # A new address does not inherit the verification of the old one.
    email = new_address()
    submit_form_by_field(gatebell, f"{account}/edit", "username", email=email)
    assert read_stored_address(gatebell, charlie) == (email, False)
    submit_form_by_field(
        gatebell, f"{account}/edit", "username", email=email, is_email_confirmed="y"
    )
    assert read_stored_address(gatebell, charlie) == (email, True)


@pytest.mark.long
def test_an_outdated_page_does_not_confirm_another_address(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, first, second = get_administrator_browser(gatebell), new_address(), new_address()
    request_new_address(gatebell, charlie, first)
    page = browser.get(f"{gatebell.url}/admin/users/{find_user_id(gatebell, charlie)}")
    request_new_address(gatebell, charlie, second)
    answer = submit(browser, page, form_to(page, "/confirm_address"))
    assert answer.status_code == 409
    assert read_stored_address(gatebell, charlie) == (charlie.email, False)


@pytest.mark.long
def test_all_addresses_can_be_verified_on_a_page_and_by_a_command(new_service: NewService) -> None:
    with running(new_service("sqlite", only="app")) as service:
        people = [make_user(service) for _ in range(3)]
        request_new_address(service, people[0], email := new_address())
        assert service.cli("users", "verify", people[1].username)["verified"] == 1
        assert read_stored_address(service, people[1]) == (people[1].email, True)
        page = read_redirected_page(
            service, submit_form_by_ending(service, "/admin/users", "/verify_addresses")
        )
        # These are the two other users, and the administrator.
        assert "Email addresses marked as verified: 3." in page
        assert read_stored_address(service, people[0]) == (people[0].email, True)
        assert service.cli("users", "verify", "--all") == {"verified": 0}
        # The requested address is still unconfirmed.
        submit_form_by_ending(
            service, f"/admin/users/{find_user_id(service, people[0])}", "/confirm_address"
        )
        assert read_stored_address(service, people[0]) == (email, True)
        made = service.cli("users", "create", "vera", "--email", new_address(), "--verified")
        assert service.cli("users", "show", made["username"])["confirmed_at"]


def test_only_administrators_can_verify_addresses(gatebell: LiveGatebell, charlie: Person) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + PROFILE)
    form = form_with(page, "email")
    for path in ("verify_addresses", f"{find_user_id(gatebell, charlie)}/verify_address"):
        answer = browser.post(f"{gatebell.url}/admin/users/{path}", data=form.filled())
        assert answer.status_code == 404, path
    own: Api = script_of(gatebell, charlie)
    path = f"/users/{find_user_id(gatebell, charlie)}"
    assert own.send_request("PUT", path, json={"skip_confirmation": True}).status_code == 403
    assert read_stored_address(gatebell, charlie) == (charlie.email, False)
