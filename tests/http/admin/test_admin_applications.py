"""Tests of `/admin/applications`: applications of the instance and of its users."""

import re

import pytest
import requests
from sqlalchemy import update

from models import Application
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
from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    signed_in,
    unique,
)
from tests.support.oauth.oauth_wire import (
    assert_refused,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
)
from tests.support.oauth.token_exchange import TOKEN_EXCHANGE
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")

PAGES = "/admin/applications"


def register(gatebell: LiveGatebell, **changes: str | list[str] | None) -> requests.Response:
    """Submit the form for an application of the instance."""
    fields: dict[str, str | list[str] | None] = {
        "name": unique("Wiki"),
        "redirect_uris": CALLBACK,
        "scopes": ["read_user"],
        **changes,
    }
    return submit_form_by_field(gatebell, f"{PAGES}/new", "redirect_uris", **fields)


def credentials_on(page: str) -> ClientCredentials:
    """Return the credentials from the page after the registration."""
    return ClientCredentials(
        id=int(find_only_group(page, rf"{PAGES}/(\d+)/edit")),
        client_id=find_only_group(page, r'id="application-id">([0-9a-f]{64})<'),
        secret=find_only_group(page, r'id="client-secret">([^<]+)<'),
        redirect_uri=CALLBACK,
        scopes="read_user",
    )


@pytest.fixture
def wiki(gatebell: LiveGatebell) -> ClientCredentials:
    """A trusted application of the instance."""
    return credentials_on(read_redirected_page(gatebell, register(gatebell, trusted="y")))


def test_a_trusted_application_needs_no_consent(
    gatebell: LiveGatebell, wiki: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(open_authorization(browser, gatebell, wiki))["code"]
    assert parse_token_pair(redeem(gatebell, wiki, code)).access
    # The secret is shown once, and the application does not belong to an administrator.
    other = open_browser(gatebell, make_user(gatebell, name="second", admin=True))
    again = other.get(f"{gatebell.url}{PAGES}/{wiki.id}")
    assert (again.status_code, wiki.client_id in again.text) == (200, True)
    assert wiki.secret not in again.text
    assert wiki.secret not in gatebell.log_text()
    mine = get_administrator_browser(gatebell).get(
        f"{gatebell.url}/-/user_settings/applications/{wiki.id}"
    )
    assert mine.status_code == 404


def test_an_untrusted_application_of_the_instance_needs_consent(gatebell: LiveGatebell) -> None:
    plain = credentials_on(read_redirected_page(gatebell, register(gatebell)))
    page = open_authorization(signed_in(gatebell, alice(gatebell)), gatebell, plain)
    assert "Managed by Gatebell" in page.text
    assert get_shared_administrator(gatebell).username not in page.text


@pytest.mark.long
def test_trust_can_be_withdrawn(gatebell: LiveGatebell, wiki: ClientCredentials) -> None:
    answer = submit_form_by_field(
        gatebell, f"{PAGES}/{wiki.id}/edit", "redirect_uris", trusted=None
    )
    assert "Trusted" not in read_redirected_page(gatebell, answer)
    page = open_authorization(signed_in(gatebell, alice(gatebell)), gatebell, wiki)
    assert "Authorize" in page.text
    with_trust = submit_form_by_field(
        gatebell, f"{PAGES}/{wiki.id}/edit", "redirect_uris", trusted="y"
    )
    assert "Trusted" in read_redirected_page(gatebell, with_trust)


@pytest.mark.long
def test_a_users_application_can_only_be_trusted_after_a_transfer_to_the_instance(
    gatebell: LiveGatebell,
) -> None:
    mine, edit = make_application(gatebell, bob(gatebell)), f"{gatebell.url}{PAGES}"
    path = f"{PAGES}/{mine.id}/edit"
    refused = submit_form_by_field(gatebell, path, "redirect_uris", trusted="y")
    assert refused.status_code == 422
    assert "Only an instance-wide application can be trusted." in refused.text
    browser = signed_in(gatebell, alice(gatebell))
    assert not open_authorization(browser, gatebell, mine).is_redirect
    taken = submit_form_by_field(gatebell, path, "redirect_uris", trusted="y", is_instance_wide="y")
    assert "Trusted" in read_redirected_page(gatebell, taken)
    assert parse_redirect(open_authorization(browser, gatebell, mine))["code"]
    # The user who registered it must not redirect other users elsewhere.
    own = f"{gatebell.url}/-/user_settings/applications/{mine.id}/edit"
    assert signed_in(gatebell, bob(gatebell)).get(own).status_code == 404
    assert (
        "Instance-wide"
        not in get_administrator_browser(gatebell).get(f"{edit}/{mine.id}/edit").text
    )


def test_trust_of_a_former_release_in_a_users_application_is_ignored(
    gatebell: LiveGatebell,
) -> None:
    mine = make_application(gatebell, bob(gatebell), redirect_uris=(CALLBACK,))
    with database_of(gatebell) as session:
        row = Application.id == mine.id
        session.execute(update(Application).where(row).values(trusted=True))
    page = open_authorization(signed_in(gatebell, alice(gatebell)), gatebell, mine)
    assert not page.is_redirect
    assert "Trusted" not in page.text
    assert (
        "Trusted"
        not in get_administrator_browser(gatebell).get(f"{gatebell.url}{PAGES}/{mine.id}").text
    )


def test_users_cannot_make_their_own_application_trusted(gatebell: LiveGatebell) -> None:
    mine = make_application(gatebell, bob(gatebell))
    browser = signed_in(gatebell, bob(gatebell))
    address = f"{gatebell.url}/-/user_settings/applications/{mine.id}/edit"
    page = browser.get(address)
    assert "trusted" not in page.text.lower()
    token = find_only_group(page.text, r'name="csrf_token"[^>]*value="([^"]+)"')
    sent = {"csrf_token": token, "name": "Mine", "redirect_uris": CALLBACK, "trusted": "y"}
    answer = browser.post(address, data={**sent, "scopes": "read_user"}, allow_redirects=False)
    assert answer.status_code == 302
    shown = get_administrator_browser(gatebell).get(f"{gatebell.url}{PAGES}/{mine.id}").text
    assert ">Mine<" in shown
    assert "Trusted" not in shown


def test_a_renewed_secret_replaces_the_old_one(
    gatebell: LiveGatebell, wiki: ClientCredentials
) -> None:
    answer = submit_form_by_ending(gatebell, f"{PAGES}/{wiki.id}", "/renew_secret", overlap="now")
    renewed = credentials_on(read_redirected_page(gatebell, answer))
    browser = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(open_authorization(browser, gatebell, wiki))["code"]
    assert_refused(redeem(gatebell, wiki, code), "invalid_client", 401)
    code = parse_redirect(open_authorization(browser, gatebell, wiki))["code"]
    assert redeem(gatebell, renewed, code).status_code == 200


@pytest.mark.long
def test_an_overlapping_secret_can_be_ended(
    gatebell: LiveGatebell, wiki: ClientCredentials
) -> None:
    submit_form_by_ending(gatebell, f"{PAGES}/{wiki.id}", "/renew_secret", overlap="7d")
    browser = signed_in(gatebell, alice(gatebell))
    assert redeem(
        gatebell, wiki, parse_redirect(open_authorization(browser, gatebell, wiki))["code"]
    ).ok
    assert submit_form_by_ending(gatebell, f"{PAGES}/{wiki.id}", "/end").status_code == 302
    refused = redeem(
        gatebell, wiki, parse_redirect(open_authorization(browser, gatebell, wiki))["code"]
    )
    assert_refused(refused, "invalid_client", 401)


@pytest.mark.both_databases
def test_a_deleted_application_and_its_tokens_are_gone(
    gatebell: LiveGatebell, wiki: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    pair = parse_token_pair(
        redeem(gatebell, wiki, parse_redirect(open_authorization(browser, gatebell, wiki))["code"])
    )
    address = f"{PAGES}/{wiki.id}/delete"
    assert (
        "2 active tokens"
        not in get_administrator_browser(gatebell).get(gatebell.url + address).text
    )
    assert (
        "1 active token of 1 user"
        in get_administrator_browser(gatebell).get(gatebell.url + address).text
    )
    assert submit_form_by_ending(gatebell, address, "/delete").status_code == 302
    assert (
        get_administrator_browser(gatebell).get(f"{gatebell.url}{PAGES}/{wiki.id}").status_code
        == 404
    )
    headers = {"Authorization": f"Bearer {pair.access}"}
    answer = requests.get(f"{gatebell.url}/api/v4/user", headers=headers, timeout=30)
    assert answer.status_code == 401


def test_an_invalid_registration_keeps_the_entered_values(gatebell: LiveGatebell) -> None:
    page = register(gatebell, redirect_uris="javascript:alert(1)", trusted="y")
    assert page.status_code == 422
    assert re.search(r'name="trusted"[^>]*checked|checked[^>]*name="trusted"', page.text)


@pytest.mark.both_databases
def test_applications_of_users_are_found_with_their_owners(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="olga")
    name = unique("Board")
    made = make_application(gatebell, owner, name=name)
    browser = get_administrator_browser(gatebell)
    for search in (name.upper(), owner.username, made.client_id):
        page = browser.get(f"{gatebell.url}{PAGES}?of=users&search={search}").text
        assert f"<bdi>{name}</bdi></a>" in page
        assert f"/admin/users/{find_user_id(gatebell, owner)}" in page
    others = browser.get(f"{gatebell.url}{PAGES}?search={name}").text
    assert f"<bdi>{name}</bdi></a>" not in others


def test_owners_see_changes_by_administrators_in_their_activity(gatebell: LiveGatebell) -> None:
    owner = make_user(gatebell, name="paul")
    made = make_application(gatebell, owner, name=unique("Board"))
    answer = submit_form_by_field(
        gatebell, f"{PAGES}/{made.id}/edit", "redirect_uris", name=unique("Other")
    )
    assert answer.status_code == 302
    page = open_browser(gatebell, owner).get(f"{gatebell.url}/-/user_settings/activity").text
    assert "Application changed" in page
    assert get_shared_administrator(gatebell).username in page


def test_changes_of_an_application_are_recorded(gatebell: LiveGatebell) -> None:
    name = unique("Chat")
    made = credentials_on(
        read_redirected_page(gatebell, register(gatebell, name=name, trusted="y"))
    )
    event = find_last_event(gatebell, name)
    assert (event.kind, event.user_id) == ("application.registered", None)
    assert event.details["trusted"] is True
    # A form that is saved without changes is not an event.
    edit = f"{PAGES}/{made.id}/edit"
    assert submit_form_by_field(gatebell, edit, "redirect_uris").status_code == 302
    assert find_last_event(gatebell, name).kind == "application.registered"
    submit_form_by_field(gatebell, edit, "redirect_uris", require_pkce="y")
    assert find_last_event(gatebell, name).kind == "application.changed"
    submit_form_by_ending(gatebell, f"{PAGES}/{made.id}", "/renew_secret", overlap="1h")
    assert find_last_event(gatebell, name).kind == "application.secret_renewed"
    submit_form_by_ending(gatebell, f"{PAGES}/{made.id}/delete", "/delete")
    assert find_last_event(gatebell, name).kind == "application.removed"


@pytest.mark.long
def test_administrators_can_allow_grants_and_owners_keep_them(gatebell: LiveGatebell) -> None:
    mine = make_application(gatebell, bob(gatebell))
    path = f"{PAGES}/{mine.id}/edit"
    own = f"/-/user_settings/applications/{mine.id}/edit"
    assert "Token exchange" not in signed_in(gatebell, bob(gatebell)).get(gatebell.url + own).text
    saved = submit_form_by_field(gatebell, path, "redirect_uris", allowed_grants=TOKEN_EXCHANGE)
    assert saved.status_code == 302, saved.text
    browser = signed_in(gatebell, bob(gatebell))
    page = browser.get(gatebell.url + own)
    submit(browser, page, form_with(page, "redirect_uris"), name=unique("Renamed"))
    with database_of(gatebell) as session:
        assert session.get_one(Application, mine.id).allowed_grants == TOKEN_EXCHANGE
    submit_form_by_field(gatebell, path, "redirect_uris", allowed_grants=None)
    with database_of(gatebell) as session:
        assert session.get_one(Application, mine.id).allowed_grants == ""
