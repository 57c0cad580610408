"""Tests of the pages where owners manage the service account and the keys of an application."""

import json

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc.jwk import ECKey

from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    make_application,
    make_project,
    make_user,
    open_browser,
)
from tests.support.oauth.machines import (
    account_of,
    assertion,
    machine_application,
    machine_token,
    new_key,
    public_part,
    request_machine_token,
    request_token_with_assertion,
)
from tests.support.oauth.oauth_wire import assert_refused, is_token_valid
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
PAGES = "/-/user_settings/applications"


@pytest.fixture
def browser(gatebell: LiveGatebell) -> requests.Session:
    return open_browser(gatebell, alice(gatebell))


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    return make_application(gatebell, alice(gatebell), scopes="read_api openid")


def edit(
    gatebell: LiveGatebell,
    browser: requests.Session,
    client: ClientCredentials,
    **values: str | None,
) -> requests.Response:
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}/edit")
    return submit(browser, page, form_with(page, "redirect_uris"), **values)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_owner_can_turn_the_service_account_on_and_off(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    assert_refused(request_machine_token(gatebell, client), "unauthorized_client")
    edit(gatebell, browser, client, service_account="y")
    page = browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    name = account_of(gatebell, client)
    assert name in page
    assert "The service account has no roles yet." in page
    token = machine_token(gatebell, client)
    edit(gatebell, browser, client, name="Renamed", service_account="y")
    assert account_of(gatebell, client) == name
    assert is_token_valid(gatebell, token)
    edit(gatebell, browser, client, service_account=None)
    assert name not in browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    assert not is_token_valid(gatebell, token)
    assert_refused(request_machine_token(gatebell, client), "unauthorized_client")
    edit(gatebell, browser, client, service_account="y")
    assert account_of(gatebell, client) != name


@pytest.mark.both_databases
def test_the_members_page_shows_service_accounts(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    path, client = make_project(gatebell, alice(gatebell)), machine_application(gatebell)
    name, members = account_of(gatebell, client), f"{gatebell.url}/{path}/-/settings/members"
    page = browser.get(members)
    added = submit(browser, page, form_with(page, "user"), user=name, role="20")
    assert added.status_code == 302, added.text
    text = browser.get(members).text
    assert name in text
    assert "Service account</span>" in text
    person = browser.get(f"{gatebell.url}/-/users/{name}").text
    assert "The account of an application." in person


@pytest.mark.parametrize("field", ["service_account", "jwks"])
def test_a_public_application_cannot_have_an_account_or_keys(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials, field: str
) -> None:
    value = "y" if field == "service_account" else public_part(new_key())
    answer = edit(gatebell, browser, client, confidential=None, **{field: value})
    assert answer.status_code == 422
    assert f'id="{field}-error"' in answer.text


@pytest.mark.both_databases
def test_the_owner_can_enter_and_remove_keys(
    gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials
) -> None:
    key = new_key()
    edit(gatebell, browser, client, service_account="y", jwks=public_part(key))
    assert key.thumbprint() in browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    assert (
        request_token_with_assertion(gatebell, assertion(gatebell, client, key)).status_code == 200
    )
    edit(gatebell, browser, client, jwks="")
    assert key.thumbprint() not in browser.get(f"{gatebell.url}{PAGES}/{client.id}").text
    answer = request_token_with_assertion(gatebell, assertion(gatebell, client, key))
    assert_refused(answer, "invalid_client", 401)


_PRIVATE = ECKey.generate_key("P-256")
_WEAK = {"kty": "RSA", "n": "AQAB", "e": "AQAB"}


@pytest.mark.parametrize(
    ("entered", "words"),
    [
        ("nonsense", "JWK Set"),
        ("[]", "JSON object"),
        ("5", "JSON object"),
        ("{}", "kty"),
        ('{"keys": 5}', "list"),
        ('{"keys": []}', "Enter 1 to 10 keys."),
        ("[" * 9000, "JWK Set"),
        (json.dumps({"keys": [_PRIVATE.as_dict(private=False)] * 11}), "at most 10"),
        (json.dumps(_PRIVATE.as_dict(private=True)), "private key"),
        (_PRIVATE.as_pem(private=True).decode(), "private key"),
        (json.dumps(_WEAK), "too weak"),
        ('{"kty": "oct", "k": "c2VjcmV0"}', "private key"),
        ('{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}', "valid public key"),
        ("-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----", "valid public key"),
        (
            generate_private_key(65537, 1024)  # noqa: S505 - a weak key on purpose
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            .decode(),
            "too weak",
        ),
    ],
)
def test_an_invalid_public_key_is_rejected_with_the_reason(
    gatebell: LiveGatebell,
    browser: requests.Session,
    client: ClientCredentials,
    entered: str,
    words: str,
) -> None:
    answer = edit(gatebell, browser, client, jwks=entered)
    assert answer.status_code == 422
    assert words in answer.text


def test_a_stranger_cannot_see_the_page_or_the_service_account(gatebell: LiveGatebell) -> None:
    client = machine_application(gatebell)
    stranger = open_browser(gatebell, make_user(gatebell))
    assert stranger.get(f"{gatebell.url}{PAGES}/{client.id}").status_code == 404
    name = account_of(gatebell, client)
    assert stranger.get(f"{gatebell.url}/-/users/{name}").status_code == 404
