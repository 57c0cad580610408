"""Tests of email addresses that administrators confirm, with and without a mail server."""

import pytest

from tests.http.api.projects.test_projects_api import script_of
from tests.support.accounts.administration import at_work, fill_in, id_of, next_page, press
from tests.support.accounts.people import Person, make_user, open_browser
from tests.support.accounts.personal_tokens import Api
from tests.support.mail.email_links import (
    PROFILE,
    claims_of,
    messages_to,
    new_address,
    stored,
    wish,
)
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, form_with, submit


@pytest.mark.both_databases
def test_an_administrator_can_confirm_an_address_without_a_mail_server(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    email = new_address()
    assert wish(gatebell, charlie, email).status_code == 302
    page = open_browser(gatebell, charlie).get(gatebell.url + PROFILE)
    assert "ask an administrator" in page.text
    assert "/send_link" not in page.text
    assert messages_to(gatebell, email) == []
    account = f"/admin/users/{id_of(gatebell, charlie)}"
    seen = next_page(gatebell, press(gatebell, account, "/confirm_address"))
    assert f"Email address {email} confirmed." in seen
    assert stored(gatebell, charlie) == (email, True)


@pytest.mark.long
def test_an_administrator_can_mark_an_address_as_verified_on_the_page(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    account = f"/admin/users/{id_of(gatebell, charlie)}"
    assert "not verified" in at_work(gatebell).get(gatebell.url + account).text
    seen = next_page(gatebell, press(gatebell, account, "/verify_address"))
    assert f"{charlie.email} is marked as verified." in seen
    assert claims_of(gatebell, charlie)["email_verified"] is True
    # A new address does not inherit the verification of the old one.
    email = new_address()
    fill_in(gatebell, f"{account}/edit", "username", email=email)
    assert stored(gatebell, charlie) == (email, False)
    fill_in(gatebell, f"{account}/edit", "username", email=email, is_email_confirmed="y")
    assert stored(gatebell, charlie) == (email, True)


@pytest.mark.long
def test_an_outdated_page_does_not_confirm_another_address(
    gatebell: LiveGatebell, charlie: Person
) -> None:
    browser, first, second = at_work(gatebell), new_address(), new_address()
    wish(gatebell, charlie, first)
    page = browser.get(f"{gatebell.url}/admin/users/{id_of(gatebell, charlie)}")
    wish(gatebell, charlie, second)
    answer = submit(browser, page, form_to(page, "/confirm_address"))
    assert answer.status_code == 409
    assert stored(gatebell, charlie) == (charlie.email, False)


@pytest.mark.long
def test_all_addresses_can_be_verified_on_a_page_and_by_a_command(new_service: NewService) -> None:
    with running(new_service("sqlite", only="app")) as service:
        people = [make_user(service) for _ in range(3)]
        wish(service, people[0], email := new_address())
        assert service.cli("users", "verify", people[1].username)["verified"] == 1
        assert stored(service, people[1]) == (people[1].email, True)
        page = next_page(service, press(service, "/admin/users", "/verify_addresses"))
        # These are the two other users, and the administrator.
        assert "Email addresses marked as verified: 3." in page
        assert stored(service, people[0]) == (people[0].email, True)
        assert service.cli("users", "verify", "--all") == {"verified": 0}
        # The requested address is still unconfirmed.
        press(service, f"/admin/users/{id_of(service, people[0])}", "/confirm_address")
        assert stored(service, people[0]) == (email, True)
        made = service.cli("users", "create", "vera", "--email", new_address(), "--verified")
        assert service.cli("users", "show", made["username"])["confirmed_at"]


def test_only_administrators_can_verify_addresses(gatebell: LiveGatebell, charlie: Person) -> None:
    browser = open_browser(gatebell, charlie)
    page = browser.get(gatebell.url + PROFILE)
    form = form_with(page, "email")
    for path in ("verify_addresses", f"{id_of(gatebell, charlie)}/verify_address"):
        answer = browser.post(f"{gatebell.url}/admin/users/{path}", data=form.filled())
        assert answer.status_code == 404, path
    own: Api = script_of(gatebell, charlie)
    path = f"/users/{id_of(gatebell, charlie)}"
    assert own.send("PUT", path, json={"skip_confirmation": True}).status_code == 403
    assert stored(gatebell, charlie) == (charlie.email, False)
