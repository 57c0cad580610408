"""The page about a redirect URI that is not registered, and who sees what there."""

import pytest
from sqlalchemy import update

from models import Application
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    make_application,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.database.stored import change
from tests.support.oauth.oauth_wire import ask, assert_refused_on_a_page
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

REGISTERED = ("https://client.example/callback", "http://127.0.0.1/cb?a=b&c=d")
CAME = "https://client.example/callback/"


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="owner")


@pytest.fixture
def client(gatebell: LiveGatebell, owner: Person) -> ClientCredentials:
    return make_application(gatebell, owner, redirect_uris=REGISTERED)


def test_everybody_sees_what_came_and_only_that(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    for browser in (gatebell.http(), signed_in(gatebell, alice(gatebell))):
        page = ask(browser, gatebell, client, redirect_uri=CAME)
        assert_refused_on_a_page(page)
        assert f"<code>{CAME}</code>" in page.text
        assert f"<code>{REGISTERED[0]}</code>" not in page.text
        assert "/edit" not in page.text


def test_its_owner_sees_which_are_registered_and_where_to_change_them(
    gatebell: LiveGatebell, client: ClientCredentials, owner: Person
) -> None:
    browser = open_browser(gatebell, owner)
    page = ask(browser, gatebell, client, redirect_uri=CAME)
    assert_refused_on_a_page(page)
    assert f"<code>{CAME}</code>" in page.text
    assert f"<code>{REGISTERED[0]}</code>" in page.text
    assert "<code>http://127.0.0.1/cb?a=b&amp;c=d</code>" in page.text
    edit = f"/-/user_settings/applications/{client.id}/edit"
    assert f'href="{edit}"' in page.text
    assert browser.get(gatebell.url + edit, allow_redirects=False).status_code == 200


@pytest.mark.parametrize("is_instance_wide", [False, True])
def test_an_administrator_does_so_on_their_own_page(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    owner: Person,
    is_instance_wide: bool,  # noqa: FBT001 - a column of the table
) -> None:
    values = {"is_instance_wide": is_instance_wide}
    change(gatebell, update(Application).where(Application.id == client.id).values(values))
    browser = open_browser(gatebell, make_user(gatebell, name="root", admin=True))
    page = ask(browser, gatebell, client, redirect_uri=CAME)
    assert f"<code>{REGISTERED[0]}</code>" in page.text
    edit = f"/admin/applications/{client.id}/edit"
    assert f'href="{edit}"' in page.text
    assert browser.get(gatebell.url + edit, allow_redirects=False).status_code == 200
    seen_by_owner = ask(open_browser(gatebell, owner), gatebell, client, redirect_uri=CAME).text
    assert (f"<code>{REGISTERED[0]}</code>" in seen_by_owner) is not is_instance_wide


@pytest.mark.parametrize(
    "came", ["<script>alert(1)</script>", "javascript:alert(1)", "\x00", "\u202e", "x" * 4000, " "]
)
def test_what_came_is_shown_as_text(
    gatebell: LiveGatebell, client: ClientCredentials, owner: Person, came: str
) -> None:
    page = ask(open_browser(gatebell, owner), gatebell, client, redirect_uri=came)
    assert_refused_on_a_page(page)
    assert "<script>alert" not in page.text
    assert 'href="javascript' not in page.text
    assert "\u202e" not in page.text
    assert "Redirect URI in the request" in page.text
