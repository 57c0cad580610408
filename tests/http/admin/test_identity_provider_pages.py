"""Tests of `/admin/identity_providers`: creating, testing, changing and deleting providers."""

from collections.abc import Iterator

import pytest
import requests
from sqlalchemy import select

from domain.audit.events import EventKind
from domain.core.keyring import Keyring
from models import IdentityProvider
from tests.support.accounts.administration import (
    get_administrator_browser,
    read_redirected_page,
    submit_form_by_ending,
    submit_form_by_field,
)
from tests.support.accounts.people import database_of, settings_of, unique
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    CLIENT_SECRET,
    FakeProvider,
    add_provider,
    find_provider_id,
    sign_in_through,
)
from tests.support.sign_in.provider_groups import new_group
from tests.support.sign_in.second_factors import assert_signed_in
from tests.support.wire.html_forms import form_with

PAGES = "/admin/identity_providers"


def get(gatebell: LiveGatebell, path: str = "") -> requests.Response:
    return get_administrator_browser(gatebell).get(f"{gatebell.url}{PAGES}{path}")


def row_of(gatebell: LiveGatebell, slug: str) -> IdentityProvider:
    with database_of(gatebell) as session:
        mine = select(IdentityProvider).where(IdentityProvider.slug == slug)
        row = session.scalars(mine).one()
        session.expunge(row)
        return row


@pytest.fixture
def page(gatebell: LiveGatebell, slug: str) -> Iterator[str]:
    """The path of a provider's page."""
    number = find_provider_id(gatebell, slug)
    yield f"{PAGES}/{number}"
    gatebell.run_cli("identity-providers", "delete", number)


@pytest.mark.long
@pytest.mark.both_databases
def test_an_administrator_adds_a_provider_and_users_sign_in_through_it(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    choices = get(gatebell, "/new").text
    assert all(each in choices for each in ("Keycloak", "Microsoft Entra ID", "Okta", "GitLab"))
    slug = unique("idp")
    answer = submit_form_by_field(
        gatebell,
        f"{PAGES}/new?preset=keycloak",
        "slug",
        slug=slug,
        title="Our Keycloak",
        issuer=provider.url,
        client_id="gatebell",
        client_secret=CLIENT_SECRET,
        creates_accounts="y",
    )
    shown = read_redirected_page(gatebell, answer)
    assert f"{gatebell.url}/users/auth/{slug}/callback" in shown.replace("<wbr>", "")
    assert "Requests to this provider are not encrypted" in shown
    assert CLIENT_SECRET not in shown
    row = row_of(gatebell, slug)
    assert row.scopes == "openid profile email offline_access"
    keyring = Keyring(settings_of(gatebell).secret_key)
    assert keyring.decrypt(row.client_secret_ciphertext) == CLIENT_SECRET
    button = gatebell.http().get(f"{gatebell.url}/users/sign_in").text
    assert "Sign in with <bdi>Our Keycloak</bdi>" in button
    assert_signed_in(sign_in_through(gatebell, provider, slug))
    (event,) = (
        each
        for each in list_events_with_subject(gatebell, slug)
        if each.kind == EventKind.IDENTITY_PROVIDER_CREATED.value
    )
    assert event.details == {"issuer": provider.url, "client_id": "gatebell"}
    assert "1 account connected" in get(gatebell, f"/{row.id}").text
    gatebell.cli("identity-providers", "delete", str(row.id))


@pytest.mark.long
def test_the_connection_test_explains_errors(
    gatebell: LiveGatebell, provider: FakeProvider, page: str
) -> None:
    works = submit_form_by_ending(gatebell, page, "/test")
    assert "The connection works." in works.text
    assert f"{provider.url}/authorize" in works.text
    assert "signs with 1 key" in works.text
    provider.metadata = {"issuer": "http://another.example"}
    assert (
        "differs from the configured issuer" in submit_form_by_ending(gatebell, page, "/test").text
    )
    provider.metadata = {"userinfo_endpoint": 7}
    assert "userinfo_endpoint is not a URL" in submit_form_by_ending(gatebell, page, "/test").text
    provider.reset_mistakes()
    provider.answers = {"/keys": lambda: (200, {}, b"[]")}
    assert "did not return a JSON object" in submit_form_by_ending(gatebell, page, "/test").text


@pytest.mark.long
def test_an_invalid_value_is_explained_and_the_input_is_kept(
    gatebell: LiveGatebell, page: str
) -> None:
    group = new_group(gatebell)
    for field, value, words in (
        ("issuer", "ftp://x.example", "must begin with https:// or http://"),
        ("issuer", "https://x.example/?a=b", "The issuer must not have a query."),
        ("scopes", "profile", "must include openid"),
        ("group_roles", "no sense", "has an invalid line"),
        ("group_roles", f"sre = {group}: Boss", "is not a role"),
        ("group_roles", "sre = no/such/group: Guest", "no/such/group"),
        ("title", "x" * 101, "at most 100 characters"),
    ):
        answer = submit_form_by_field(gatebell, page, "issuer", **{field: value})
        assert answer.status_code == 422, field
        assert words in answer.text, answer.text
        assert form_with(answer, "issuer").value(field).strip() == value


def test_changes_are_applied_and_an_empty_secret_keeps_the_old_one(
    gatebell: LiveGatebell, slug: str, page: str
) -> None:
    group, before = new_group(gatebell), row_of(gatebell, slug)
    answer = submit_form_by_field(
        gatebell,
        page,
        "issuer",
        title="Renamed",
        creates_accounts=None,
        email_domains="a.example, b.example",
        group_roles=f"sre = {group}: developer\n\nleads={group}:40",
        administrators_group="wheel",
    )
    assert "Renamed" in read_redirected_page(gatebell, answer)
    row = row_of(gatebell, slug)
    assert row.client_secret_ciphertext == before.client_secret_ciphertext
    assert row.email_domains == ["a.example", "b.example"]
    assert row.group_roles == [f"sre = {group}: Developer", f"leads = {group}: Maintainer"]
    assert (row.creates_accounts, row.administrators_group) == (False, "wheel")
    changed = list_events_with_subject(gatebell, slug)[0]
    assert changed.kind == EventKind.IDENTITY_PROVIDER_CHANGED.value
    assert "administrators_group" in changed.details["changed"]
    submit_form_by_field(
        gatebell, page, "issuer", group_roles="", email_domains="", administrators_group=""
    )
    row = row_of(gatebell, slug)
    assert (row.group_roles, row.email_domains, row.administrators_group) == ([], [], "")
    submit_form_by_field(gatebell, page, "issuer", client_secret="another secret")
    keyring = Keyring(settings_of(gatebell).secret_key)
    assert keyring.decrypt(row_of(gatebell, slug).client_secret_ciphertext) == "another secret"
    assert list_events_with_subject(gatebell, slug)[0].details["changed"] == "client_secret"


def test_the_issuer_of_connected_accounts_cannot_be_changed(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, page: str
) -> None:
    sign_in_through(gatebell, provider, slug)
    answer = submit_form_by_field(gatebell, page, "issuer", issuer="https://another.example")
    assert answer.status_code == 422
    assert "The issuer cannot be changed while accounts are connected" in answer.text
    assert row_of(gatebell, slug).issuer == provider.url


def test_a_taken_or_invalid_name_in_urls_is_rejected(gatebell: LiveGatebell, slug: str) -> None:
    for given, words in ((slug, "already"), ("No Name", "Name in URLs")):
        answer = submit_form_by_field(
            gatebell,
            f"{PAGES}/new?preset=other",
            "slug",
            slug=given,
            title="Another",
            issuer="https://another.example",
            client_id="x",
            client_secret="y",
        )
        assert answer.status_code == 422
        assert words in answer.text


def test_a_deleted_provider_disappears_from_all_pages(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    slug = add_provider(gatebell, provider.url)
    page = f"{PAGES}/{find_provider_id(gatebell, slug)}"
    read_redirected_page(gatebell, submit_form_by_ending(gatebell, page, "/delete"))
    assert slug not in get(gatebell).text
    assert get_administrator_browser(gatebell).get(gatebell.url + page).status_code == 404
    assert slug not in gatebell.http().get(f"{gatebell.url}/users/sign_in").text
