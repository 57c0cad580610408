"""Where browsers are sent: to what was registered, to the letter, and nowhere else."""

import pytest
import requests

from tests.support.accounts.people import ClientCredentials, bob, make_application
from tests.support.oauth.oauth_wire import ask, assert_refused_on_a_page, landing
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
    """A trusted application with redirect URIs of every sort."""
    if gatebell.url not in _clients:
        _clients[gatebell.url] = make_application(
            gatebell, bob(gatebell), redirect_uris=REGISTERED, trusted=True
        )
    return _clients[gatebell.url]


#: One of each sort; tests/domain/oauth/test_redirect_uris.py has them all.
ATTACKS = (
    "https://CLIENT.example/callback",
    "https://client.example/callback/",
    "https://client.example/x/../callback",
    "https://client.example/%63allback",
    "https://client.example/callback\x00",
    "https://client.example/callback\r\nX: y",
    "https://client.example@evil.example/callback",
    "https://evil.example\\@client.example/callback",
    "https://client.example.evil.example/callback",
    "https://client.example/callback#fragment",
    "https://client.example:8444/port",
    "http://localhost:8080/callback",
    "http://127.0.0.1:8080/callback#",
    "http://127.0.0.1:8080@evil.example/callback",
    "http://[::1].evil.example:9000/callback",
    "javascript:alert(1)",
)


@pytest.mark.spec("A4")
@pytest.mark.rfc(
    "rfc6749-3.1.2.3-a",
    "rfc6749-3.1.2.4-b",
    "rfc6749-10.6-a",
    "rfc6749-10.15-a",
    "rfc8252-8.3-a",
    "rfc8252-8.4-b",
    "rfc9700-2.1-a",
    "rfc9700-2.1-b",
)
@pytest.mark.parametrize("uri", ATTACKS, ids=range(len(ATTACKS)))
def test_nothing_but_what_is_registered_is_gone_to(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials, uri: str
) -> None:
    assert_refused_on_a_page(ask(browser, gatebell, client, redirect_uri=uri))


@pytest.mark.spec("A4", "A8")
@pytest.mark.rfc(
    "rfc6749-3.1.2-b", "rfc6749-3.1.2.3-a", "rfc6749-4.1.2-a", "rfc8252-7.1-a", "rfc8252-7.2-a"
)
@pytest.mark.parametrize("uri", REGISTERED)
def test_every_registered_uri_is_gone_to_as_it_is_written(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials, uri: str
) -> None:
    answer = ask(browser, gatebell, client, redirect_uri=uri)
    joint = "&" if "?" in uri else "?"
    assert answer.headers["Location"].startswith(f"{uri}{joint}code=")


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
def test_the_port_of_a_loopback_literal_may_be_any(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials, uri: str
) -> None:
    answer = ask(browser, gatebell, client, redirect_uri=uri)
    assert answer.headers["Location"].startswith(f"{uri}?code=")


@pytest.mark.spec("A3", "A4")
def test_an_error_keeps_the_parameters_that_were_registered(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    brought = landing(ask(browser, gatebell, client, redirect_uri=REGISTERED[1], scope="x"))
    assert (brought["tenant"], brought["error"]) == ("1", "invalid_scope")
