"""Tests of redirect URIs, which must match exactly, and of the page about mismatches."""

import pytest
from sqlalchemy import update

from models import Application
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    make_application,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.database.stored import change
from tests.support.oauth.oauth_wire import (
    assert_refused_on_a_page,
    open_authorization,
    parse_redirect,
)
from tests.support.oauth.visits import Visit
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")

REGISTERED = (
    "https://client.example/callback",
    "https://client.example/with?tenant=1",
    "https://client.example:8443/port",
    "http://127.0.0.1/callback",
    "http://[::1]:9000/callback",
    "http://localhost/callback",
    "com.example.app:/callback",
    "com.example.app:///three",
    "https://Upper.Example/Case/%7euser/%C3%A9",
)
_clients: dict[str, ClientCredentials] = {}


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """A trusted application with redirect URIs of each kind."""
    if gatebell.url not in _clients:
        _clients[gatebell.url] = make_application(
            gatebell, bob(gatebell), redirect_uris=REGISTERED, trusted=True
        )
    return _clients[gatebell.url]


#: One attack of each kind; tests/domain/oauth/test_redirect_uris.py tests all of them.
ATTACKS = (
    "https://CLIENT.example/callback",
    "https://client.example/callback/",
    "https://client.example/x/../callback",
    "https://client.example/callback/..%2F..%2Fevil",
    "https://client.example/callback/..;/evil",
    "https://client.example/callback?code=x&state=y",
    "https://client.example/%63allback",
    "https://client.example/callback\x00",
    "https://client.example/callback\r\nX: y",
    "https://client.example@evil.example/callback",
    "https://client.example@x@evil.example/callback",
    "https://evil.example\\@client.example/callback",
    "https://client.example.evil.example/callback",
    "https://clientxexample/callback",
    "https://client.example/callback#fragment",
    "https://client.example:8444/port",
    "http://localhost:8080/callback",
    "http://127.0.0.1:8080/callback#",
    "http://127.0.0.1:8080@evil.example/callback",
    "http://127.0.0.1:8080/callback?bar=foo",
    "http://127.0.0.2:8080/callback",
    "http://[::1].evil.example:9000/callback",
    f"http://[{':' * 39}]/callback",
    "javascript:alert(1)",
)


@pytest.mark.rfc("rfc9700-4.1.3-a")
@pytest.mark.advisory("CVE-2020-15233", "CVE-2020-15234", "CVE-2024-1132")
@pytest.mark.advisory("CVE-2024-2419", "CVE-2024-8883", "CVE-2024-52289", "CVE-2026-3872")
@pytest.mark.advisory("CVE-2022-36087", "CVE-2026-7504", "CVE-2026-9689")
@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc6749-3.1.2.3-a", "rfc6749-3.1.2.4-b", "rfc6749-10.6-a", "rfc6749-10.15-a")
@pytest.mark.rfc("rfc8252-8.3-a", "rfc8252-8.4-b")
@pytest.mark.rfc("rfc9700-2.1-a", "rfc9700-2.1-b")
@pytest.mark.parametrize("uri", ATTACKS, ids=range(len(ATTACKS)))
def test_unregistered_redirect_uris_are_rejected(visit: Visit, uri: str) -> None:
    assert_refused_on_a_page(visit.open_authorization(redirect_uri=uri))


@pytest.mark.spec("A4", "A8")
@pytest.mark.rfc("rfc6749-3.1.2-b", "rfc6749-3.1.2.3-a", "rfc6749-4.1.2-a")
@pytest.mark.rfc("rfc8252-7.1-a", "rfc8252-7.2-a")
@pytest.mark.parametrize("uri", REGISTERED)
def test_the_redirect_uses_the_registered_uri_unchanged(visit: Visit, uri: str) -> None:
    answer = visit.open_authorization(redirect_uri=uri)
    joint = "&" if "?" in uri else "?"
    assert answer.headers["Location"].startswith(f"{uri}{joint}code=")


@pytest.mark.rfc("rfc9700-4.1.3-a")
@pytest.mark.spec("A4")
@pytest.mark.rfc("rfc8252-7.3-a", "rfc8252-7.3-b", "rfc9700-2.1-a")
@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/callback",
        "http://127.0.0.1:65535/callback",
        "http://[::1]/callback",
        "http://[::1]:49152/callback",
    ],
)
def test_a_loopback_address_can_have_any_port(visit: Visit, uri: str) -> None:
    answer = visit.open_authorization(redirect_uri=uri)
    assert answer.headers["Location"].startswith(f"{uri}?code=")


@pytest.mark.advisory("CVE-2026-9689")
@pytest.mark.spec("A3", "A4")
def test_an_error_keeps_the_parameters_of_the_registered_uri(visit: Visit) -> None:
    brought = parse_redirect(visit.open_authorization(redirect_uri=REGISTERED[1], scope="x"))
    assert (brought["tenant"], brought["error"]) == ("1", "invalid_scope")


OF_OWNER = ("https://client.example/callback", "http://127.0.0.1/cb?a=b&c=d")
CAME = "https://client.example/callback/"


@pytest.fixture
def owner(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell, name="owner")


@pytest.fixture
def owned(gatebell: LiveGatebell, owner: Person) -> ClientCredentials:
    return make_application(gatebell, owner, redirect_uris=OF_OWNER)


def test_other_users_see_only_the_redirect_uri_of_the_request(
    gatebell: LiveGatebell, owned: ClientCredentials
) -> None:
    for browser in (gatebell.http(), signed_in(gatebell, alice(gatebell))):
        page = open_authorization(browser, gatebell, owned, redirect_uri=CAME)
        assert_refused_on_a_page(page)
        assert f"<code>{CAME}</code>" in page.text
        assert f"<code>{OF_OWNER[0]}</code>" not in page.text
        assert "/edit" not in page.text


def test_the_owner_sees_the_registered_redirect_uris_and_a_link_to_edit_them(
    gatebell: LiveGatebell, owned: ClientCredentials, owner: Person
) -> None:
    browser = open_browser(gatebell, owner)
    page = open_authorization(browser, gatebell, owned, redirect_uri=CAME)
    assert_refused_on_a_page(page)
    assert f"<code>{CAME}</code>" in page.text
    assert f"<code>{OF_OWNER[0]}</code>" in page.text
    assert "<code>http://127.0.0.1/cb?a=b&amp;c=d</code>" in page.text
    edit = f"/-/user_settings/applications/{owned.id}/edit"
    assert f'href="{edit}"' in page.text
    assert browser.get(gatebell.url + edit, allow_redirects=False).status_code == 200


@pytest.mark.parametrize("is_instance_wide", [False, True])
def test_an_administrator_sees_them_with_a_link_to_the_admin_page(
    gatebell: LiveGatebell,
    owned: ClientCredentials,
    owner: Person,
    is_instance_wide: bool,  # noqa: FBT001 - a column of the table
) -> None:
    values = {"is_instance_wide": is_instance_wide}
    change(gatebell, update(Application).where(Application.id == owned.id).values(values))
    browser = open_browser(gatebell, make_user(gatebell, name="root", admin=True))
    page = open_authorization(browser, gatebell, owned, redirect_uri=CAME)
    assert f"<code>{OF_OWNER[0]}</code>" in page.text
    edit = f"/admin/applications/{owned.id}/edit"
    assert f'href="{edit}"' in page.text
    assert browser.get(gatebell.url + edit, allow_redirects=False).status_code == 200
    seen_by_owner = open_authorization(
        open_browser(gatebell, owner), gatebell, owned, redirect_uri=CAME
    ).text
    assert (f"<code>{OF_OWNER[0]}</code>" in seen_by_owner) is not is_instance_wide


@pytest.mark.advisory("CVE-2018-1000088", "CVE-2019-8400")
@pytest.mark.parametrize(
    "came", ["<script>alert(1)</script>", "javascript:alert(1)", "\x00", "\u202e", "x" * 4000, " "]
)
def test_the_redirect_uri_of_the_request_is_escaped(
    gatebell: LiveGatebell, owned: ClientCredentials, owner: Person, came: str
) -> None:
    page = open_authorization(open_browser(gatebell, owner), gatebell, owned, redirect_uri=came)
    assert_refused_on_a_page(page)
    assert "<script>alert" not in page.text
    assert 'href="javascript' not in page.text
    assert "\u202e" not in page.text
    assert "Redirect URI in the request" in page.text
