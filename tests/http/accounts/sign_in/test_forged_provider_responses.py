"""Tests of forged and invalid responses from identity providers."""

import base64
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from hashlib import sha256
from time import time
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
import requests
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy.orm import Session

from domain.access.actor import AccessMethod, Actor
from domain.accounts.identity_providers.errors import (
    ExpiredProviderSignInError,
    InvalidProviderResponseError,
)
from domain.accounts.identity_providers.provider_client import (
    ProviderHttpAccess,
    ProviderSignInSecrets,
)
from domain.accounts.identity_providers.sign_in import ProviderRequest, finish_provider_sign_in
from domain.core.keyring import Keyring
from domain.delivery.outgoing.ip_address_policy import AddressPolicy
from tests.support.accounts.people import (
    cookie_domain,
    make_user,
    now,
    open_browser,
    settings_of,
    unique,
)
from tests.support.database.work import work_in
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    CLIENT_SECRET,
    FakeProvider,
    add_provider,
    ask_to_sign_in,
    last_failure,
    open_response_url,
    running_provider,
    sign_in_through,
    slowly,
)
from tests.support.sign_in.second_factors import assert_signed_in, is_signed_in
from tests.support.wire.html_forms import forms_in
from web.outgoing.client import OutgoingClient

_LONG = 60_000


def assert_not_signed_in(
    gatebell: LiveGatebell, browser: requests.Session, page: requests.Response, *words: str
) -> None:
    """Check that the user is not signed in, and that the page explains the error."""
    assert page.status_code == 400, (page.status_code, page.headers.get("Location"))
    assert all(each in page.text for each in words), page.text
    assert any("/users/auth/" in each.action for each in forms_in(page.text))
    assert "Sign in another way" in page.text
    assert not is_signed_in(gatebell, browser)


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{encoded({'alg': 'none'})}.{encoded(claims)}."


def by_hmac(secret: bytes, claims: dict[str, Any]) -> str:
    said = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(claims)}"
    mac = base64.urlsafe_b64encode(hmac.digest(secret, said.encode(), sha256)).rstrip(b"=")
    return f"{said}.{mac.decode()}"


def by_key(key: RSAKey | ECKey, header: dict[str, Any], claims: dict[str, Any]) -> str:
    return jwt.encode(header, claims, key)


def public_key_of(provider: FakeProvider) -> bytes:
    return provider.key.as_pem(private=False)


def ssh_key_of(provider: FakeProvider) -> bytes:
    key = load_pem_public_key(public_key_of(provider))
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def with_empty_signatures(claims: dict[str, Any]) -> str:
    """Return a JWS in the general JSON serialization with an empty list of signatures."""
    return json.dumps({"payload": encoded(claims), "signatures": []})


FORGERIES: dict[str, Callable[[FakeProvider], Callable[[dict[str, Any]], str]]] = {
    "unsigned": lambda _provider: unsigned,
    "signed with the client secret": lambda _provider: partial(by_hmac, CLIENT_SECRET.encode()),
    "signed with an empty key": lambda _provider: partial(by_hmac, b""),
    "signed with the public key": lambda provider: partial(by_hmac, public_key_of(provider)),
    "signed with text and the public key": lambda provider: partial(
        by_hmac, b"# a key\n" + public_key_of(provider)
    ),
    "signed with the public key of SSH": lambda provider: partial(by_hmac, ssh_key_of(provider)),
    "signed by nobody": lambda _provider: with_empty_signatures,
    "signed with another key of the same name": lambda provider: partial(
        by_key, RSAKey.generate_key(2048), {"alg": "RS256", "kid": str(provider.key.kid)}
    ),
    "signed with a key that it brings": lambda _provider: partial(
        lambda key, claims: by_key(
            key, {"alg": "RS256", "kid": "new", "jwk": key.as_dict(private=False)}, claims
        ),
        RSAKey.generate_key(2048),
    ),
    "signed with a key of an unknown name": lambda _provider: partial(
        by_key, ECKey.generate_key("P-256"), {"alg": "ES256", "kid": "unknown"}
    ),
    "no token at all": lambda _provider: lambda _claims: "e30.e30.e30",
    "a list": lambda _provider: lambda _claims: "not.a.token",
}


@pytest.mark.advisory("CVE-2022-29217", "CVE-2024-37568", "CVE-2026-28802", "CVE-2026-49852")
@pytest.mark.advisory("CVE-2026-102946", "CVE-2026-114615", "CVE-2026-114616")
@pytest.mark.parametrize("how", FORGERIES)
def test_a_forged_id_token_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, how: str
) -> None:
    provider.sign = FORGERIES[how](provider)
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser)
    assert_not_signed_in(gatebell, browser, page, "could not be verified")
    assert "ID token" in last_failure(gatebell, slug)


@pytest.mark.rfc("rfc9700-4.5.3.2-a", "rfc9700-4.7.1-b")
@pytest.mark.advisory("CVE-2026-114617")
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"nonce": "another", "nonce_supported": False}, "nonce"),
        ({"iss": "http://evil.example"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "another client"}, "aud"),
        ({"aud": ["gatebell", "another client"]}, "azp"),
        ({"aud": ["gatebell", "another client"], "azp": "another client"}, "azp"),
        ({"azp": "another client"}, "azp"),
        ({"exp": int(time()) - _LONG}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, ""),
        ({"iat": int(time()) + _LONG}, "future"),
        ({"nbf": int(time()) + _LONG}, "not yet valid"),
        ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "at_hash"),
        ({"amr": "mfa"}, "amr"),
        ({"auth_time": "today"}, "auth_time"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": 7}, "sub"),
        ({"sub": ["x"]}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": "a\x00b"}, "sub"),
    ],
)
def test_an_id_token_with_wrong_claims_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, claims: dict[str, Any], reason: str
) -> None:
    provider.claims = claims
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser)
    assert_not_signed_in(gatebell, browser, page, "could not be verified")
    assert reason in last_failure(gatebell, slug)


@pytest.mark.long
@pytest.mark.advisory("CVE-2024-53861", "CVE-2026-75509")
def test_an_id_token_with_a_list_or_a_part_of_the_issuer_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    for issuer in ([provider.url], provider.url[:-1], "http", f"{provider.url}.evil.example"):
        provider.claims = {"iss": issuer}
        browser = gatebell.http()
        page = sign_in_through(gatebell, provider, slug, browser)
        assert_not_signed_in(gatebell, browser, page, "could not be verified")


@pytest.mark.rfc("rfc9700-4.2.4-d")
@pytest.mark.both_databases
def test_a_provider_response_works_once(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug)
    kept = browser.cookies.get_dict()
    response = provider.response_to(begun.headers["Location"])
    assert_signed_in(open_response_url(browser, response))
    # The response works neither again nor with the earlier cookies.
    assert open_response_url(browser, response).status_code == 400
    thief = gatebell.http()
    for name, value in kept.items():
        thief.cookies.set(name, value, domain=cookie_domain(gatebell))
    page = open_response_url(thief, provider.response_to(begun.headers["Location"]))
    assert_not_signed_in(gatebell, thief, page, "was already completed")


@pytest.mark.rfc("rfc9700-2.1-c", "rfc9700-4.4.2-b")
@pytest.mark.advisory("CVE-2025-68158", "CVE-2026-41425")
def test_a_response_for_another_browser_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    attacker, victim = gatebell.http(), gatebell.http()
    begun = ask_to_sign_in(gatebell, attacker, slug)
    ask_to_sign_in(gatebell, victim, slug)
    for browser in (victim, gatebell.http()):
        page = open_response_url(browser, provider.response_to(begun.headers["Location"]))
        assert_not_signed_in(gatebell, browser, page, "was started in another browser")


@pytest.mark.rfc("rfc9700-4.7.1-b", "rfc9700-4.7.1-c")
@pytest.mark.advisory("CVE-2023-27490")
@pytest.mark.parametrize("state", ["", "guessed", None])
def test_a_response_needs_its_state(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, state: str | None
) -> None:
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser, state=state)
    assert_not_signed_in(gatebell, browser, page, "expired")


@pytest.mark.rfc("rfc9700-2.1-d", "rfc9700-4.4.2.1-a")
@pytest.mark.parametrize("issuer", ["http://evil.example", "", None])
def test_a_response_from_another_provider_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, issuer: str | None
) -> None:
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser, iss=issuer)
    assert_not_signed_in(gatebell, browser, page, "could not be verified")
    assert "/token" not in provider.asked


@pytest.mark.long
def test_only_providers_that_announce_an_issuer_parameter_must_send_it(
    gatebell: LiveGatebell, provider: FakeProvider
) -> None:
    with running_provider() as silent:
        silent.metadata = {"authorization_response_iss_parameter_supported": None}
        slug = add_provider(gatebell, silent.url, "--creates-accounts")
        assert_signed_in(sign_in_through(gatebell, silent, slug, iss=None))
        browser = gatebell.http()
        page = sign_in_through(gatebell, silent, slug, browser, iss=provider.url)
        assert_not_signed_in(gatebell, browser, page, "could not be verified")


@pytest.mark.rfc("rfc9700-2.1-d", "rfc9700-4.4.2-b", "rfc9700-4.4.2.2-a")
def test_a_response_for_one_provider_is_rejected_by_another(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    other = add_provider(gatebell, provider.url, "--creates-accounts")
    browser = gatebell.http()
    begun = ask_to_sign_in(gatebell, browser, slug)
    response = provider.response_to(begun.headers["Location"]).replace(slug, other)
    assert_not_signed_in(gatebell, browser, open_response_url(browser, response), "expired")


@pytest.mark.rfc("rfc9700-2.1.1-e", "rfc9700-2.1.1-f", "rfc9700-4.4.2.2-a")
@pytest.mark.advisory("CVE-2026-34511")
def test_requests_to_the_provider_never_repeat_secret_values(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser = gatebell.http()
    begun = [ask_to_sign_in(gatebell, browser, slug).headers["Location"] for _ in range(2)]
    asked = [dict(parse_qsl(urlsplit(each).query)) for each in begun]
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
    assert {each["code_challenge_method"] for each in asked} == {"S256"}
    assert {each["redirect_uri"] for each in asked} == {
        f"{gatebell.url}/users/auth/{slug}/callback"
    }
    # The verifier is not part of any URL that the browser visited.
    assert_signed_in(open_response_url(browser, provider.response_to(begun[1])))
    (verifier,) = provider.verifiers
    assert len(verifier) >= 43
    assert verifier not in unquote(begun[1])


@pytest.mark.parametrize("error", ["access_denied", "<script>", "x" * 5_000])
def test_an_error_from_the_provider_is_shown_on_the_sign_in_page(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, error: str
) -> None:
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser, error=error, code=None)
    assert_not_signed_in(gatebell, browser, page, "You did not sign in at")
    assert "<script>" not in page.text
    assert error[:60] in last_failure(gatebell, slug)


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/token", (503, {}, b""), "cannot be reached"),
        ("/token", (429, {}, b"{}"), "cannot be reached"),
        ("/token", (200, JSON, b"<html>"), "could not be verified"),
        ("/token", (200, JSON, b"[]"), "could not be verified"),
        ("/token", (200, JSON, b"{}"), "could not be verified"),
        ("/token", (200, JSON, b'{"access_token": 7, "id_token": "x"}'), "could not be verified"),
        ("/token", (200, JSON, b'{"access_token": "x"}'), "could not be verified"),
        ("/token", (200, JSON, b'{"access_token": "x", "id_token": 7}'), "could not be verified"),
        ("/token", (200, JSON, b" " * 100_000), "could not be verified"),
        ("/token", (400, JSON, b'{"error": "invalid_grant"}'), "could not be verified"),
        ("/token", (401, JSON, b'{"error": {"a": ["b"]}}'), "could not be verified"),
        ("/token", (302, {"Location": "http://169.254.169.254/"}, b""), "could not be verified"),
        ("/userinfo", (500, {}, b""), "cannot be reached"),
        ("/userinfo", (200, JSON, b'{"sub": "somebody else"}'), "could not be verified"),
        ("/userinfo", (200, JSON, b"\xff"), "could not be verified"),
    ],
)
def test_an_invalid_provider_response_shows_an_error_page(
    gatebell: LiveGatebell,
    provider: FakeProvider,
    slug: str,
    path: str,
    answer: tuple[int, dict[str, str], bytes],
    words: str,
) -> None:
    provider.answers = {path: lambda: answer}
    provider.claims = {"email": None}
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser)
    assert_not_signed_in(gatebell, browser, page, words)
    assert last_failure(gatebell, slug)


@pytest.mark.advisory("CVE-2026-104056")
@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/.well-known/openid-configuration", b"<html>", "JSON"),
        ("/.well-known/openid-configuration", b" " * 100_000, "65,536"),
        ("/.well-known/openid-configuration", b'{"issuer": "http://evil.example"}', "issuer"),
        ("/keys", b"{}", "keys"),
        ("/keys", b'{"keys": [7]}', "keys"),
        ("/keys", b'{"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]}', "keys"),
        ("/keys", b'{"keys": []}', "keys"),
    ],
)
def test_invalid_metadata_and_keys_show_an_error_page(
    gatebell: LiveGatebell, path: str, body: bytes, reason: str
) -> None:
    with running_provider() as provider:  # The service has no cached metadata of a new provider.
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        provider.answers = {path: lambda: (200, JSON, body)}
        browser = gatebell.http()
        page = ask_to_sign_in(gatebell, browser, slug)
        if page.status_code == 302:
            page = open_response_url(browser, provider.response_to(page.headers["Location"]))
        assert_not_signed_in(gatebell, browser, page, "could not be verified")
        assert reason in last_failure(gatebell, slug)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:1", "http://x.invalid"])
def test_the_page_about_an_unreachable_provider_shows_no_details(
    gatebell: LiveGatebell, issuer: str
) -> None:
    slug = add_provider(gatebell, issuer)
    browser = gatebell.http()
    page = ask_to_sign_in(gatebell, browser, slug)
    assert_not_signed_in(gatebell, browser, page, f"{slug} cannot be reached at the moment")
    # Visitors must not learn anything about the network.
    assert "OUTGOING_PRIVATE_ADDRESSES" not in page.text
    assert issuer not in page.text
    assert urlsplit(issuer).netloc in last_failure(gatebell, slug)


@pytest.mark.advisory("CVE-2025-6514")
@pytest.mark.parametrize(
    "endpoint", ["javascript:alert(1)", "/relative", 7, None, "http://user@evil.example/"]
)
def test_browsers_are_not_redirected_to_an_invalid_authorization_endpoint(
    gatebell: LiveGatebell, endpoint: object
) -> None:
    with running_provider() as provider:
        provider.metadata = {"authorization_endpoint": endpoint}
        slug = add_provider(gatebell, provider.url)
        browser = gatebell.http()
        page = ask_to_sign_in(gatebell, browser, slug)
        assert_not_signed_in(gatebell, browser, page, "could not be verified")


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
def test_endpoints_at_private_addresses_are_rejected(gatebell: LiveGatebell, name: str) -> None:
    with running_provider() as provider:
        provider.metadata = {name: "http://169.254.169.254/latest"}
        provider.claims = {"email": None}
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        browser = gatebell.http()
        page = sign_in_through(gatebell, provider, slug, browser)
        assert_not_signed_in(gatebell, browser, page, "cannot be reached")
        assert "169.254.169.254" in last_failure(gatebell, slug)


@pytest.mark.long
def test_a_slow_provider_causes_a_timeout(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    provider.answers = {"/token": lambda: slowly(12)}
    browser = gatebell.http()
    page = sign_in_through(gatebell, provider, slug, browser)
    assert_not_signed_in(gatebell, browser, page, "cannot be reached")
    assert "within 10 seconds" in last_failure(gatebell, slug)


@pytest.mark.both_databases
def test_keys_are_cached_and_fetched_again_after_a_change(gatebell: LiveGatebell) -> None:
    with running_provider() as provider:
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        for _ in range(3):
            assert_signed_in(sign_in_through(gatebell, provider, slug))
        # Each process of the service fetches the keys for itself.
        before = provider.asked.count("/keys")
        assert before <= 2
        provider.key = RSAKey.generate_key(2048, auto_kid=True)
        assert_signed_in(sign_in_through(gatebell, provider, slug))
        assert provider.asked.count("/keys") == before + 1


def test_a_confirmation_of_identity_needs_a_new_sign_in_at_the_provider(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    charlie = make_user(gatebell, name="charlie")
    browser = open_browser(gatebell, charlie)
    begun = ask_to_sign_in(gatebell, browser, slug, at="/users/sign_in?again=yes")
    asked = dict(parse_qsl(urlsplit(begun.headers["Location"]).query))
    # With a `max_age` of 0, Canaille would request the password over and over.
    assert (asked["prompt"], asked["max_age"]) == ("login", "120")
    for auth_time in (int(time()) - _LONG, None):
        provider.claims = {"auth_time": auth_time}
        begun = ask_to_sign_in(gatebell, browser, slug, at="/users/sign_in?again=yes")
        page = open_response_url(browser, provider.response_to(begun.headers["Location"]))
        assert page.status_code == 400
        assert "did not confirm that you have just signed in" in page.text
    provider.claims = {}
    begun = ask_to_sign_in(gatebell, browser, slug, at="/users/sign_in?again=yes")
    assert_signed_in(open_response_url(browser, provider.response_to(begun.headers["Location"])))


def test_a_very_long_return_path_is_kept(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str
) -> None:
    browser, wanted = gatebell.http(), f"/help?search={unique('x' * 6_000)}"
    begun = ask_to_sign_in(gatebell, browser, slug, at=f"/users/sign_in?next={wanted}")
    assert begun.headers["Cache-Control"] == "no-store"
    back = open_response_url(browser, provider.response_to(begun.headers["Location"]))
    onward = browser.get(gatebell.url + back.headers["Location"], allow_redirects=False)
    assert onward.headers["Location"] == wanted


@pytest.mark.parametrize(("minutes", "is_expired"), [(9, False), (11, True)])
def test_a_response_after_ten_minutes_is_rejected(
    gatebell: LiveGatebell, provider: FakeProvider, slug: str, minutes: int, *, is_expired: bool
) -> None:
    keyring, number = Keyring(settings_of(gatebell).secret_key), unique("number")
    asked = ProviderRequest(
        number=number,
        slug=slug,
        asked_at=now() - timedelta(minutes=minutes),
        is_again=False,
        sign_in_id=None,
    )
    client = OutgoingClient(AddressPolicy.from_networks("127.0.0.0/8"))
    response = {
        "state": ProviderSignInSecrets.from_number(number, keyring).state,
        "iss": provider.url,
        "code": "x",
    }
    with Session(gatebell.engine()) as session:
        stranger = Actor(means=AccessMethod.PAGE)
        upstream = ProviderHttpAccess(fetch=client.send_request)
        work = work_in(session, actor=stranger, policies=(upstream,), service=gatebell)
        with pytest.raises(
            ExpiredProviderSignInError if is_expired else InvalidProviderResponseError
        ):
            finish_provider_sign_in(work, asked, response)
