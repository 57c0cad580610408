"""Logout requests of applications (OpenID Connect), for tests of single responses."""

import base64
import hmac
import json
from urllib.parse import urlencode

import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.accounts.people import ClientCredentials, Person, open_browser
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
)
from tests.support.oauth.openid_wire import (
    IdToken,
    openid_application,
    request_key_set,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell

#: Registered URL that the application redirects to after the sign-out.
AFTER = "https://client.example/signed-out?a=b"


def end_session(gatebell: LiveGatebell, **parameters: str) -> str:
    return f"{gatebell.url}/oauth/logout?{urlencode(parameters)}"


def at(browser: requests.Session, url: str) -> requests.Response:
    return browser.get(url, allow_redirects=False)


def is_signed_in(gatebell: LiveGatebell, browser: requests.Session) -> bool:
    return at(browser, f"{gatebell.url}/-/user_settings/profile").status_code == 200


def sign_in_with_id_token(
    gatebell: LiveGatebell, person: Person
) -> tuple[requests.Session, IdToken]:
    """Return a browser in which the user signed in to the application, and the ID token."""
    browser, client = open_browser(gatebell, person), openid_application(gatebell)
    code = parse_redirect(open_authorization(browser, gatebell, client, scope="openid"))["code"]
    return browser, verify_id_token(
        gatebell, parse_token_pair(redeem(gatebell, client, code)).answer["id_token"]
    )


def assert_refused(gatebell: LiveGatebell, browser: requests.Session, **parameters: str) -> None:
    answers = [
        at(browser, end_session(gatebell, **parameters)),
        browser.post(f"{gatebell.url}/oauth/logout", data=parameters, allow_redirects=False),
    ]
    for answer in answers:
        assert answer.status_code == 400, (parameters, answer.headers)
        assert "Location" not in answer.headers
        assert "You were not signed out" in answer.text
    assert is_signed_in(gatebell, browser)


def with_hmac(secret: bytes, kid: str, body: str) -> str:
    """Sign by hand, since libraries reject a public key as a secret."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": kid}).encode())
    signed = head.rstrip(b"=") + b"." + body.encode()
    signature = base64.urlsafe_b64encode(hmac.digest(secret, signed, "sha256")).rstrip(b"=")
    return (signed + b"." + signature).decode()


def build_forged_tokens(
    gatebell: LiveGatebell, token: IdToken, client: ClientCredentials
) -> dict[str, str]:
    """Return forgeries of an ID token that attackers can create without the key."""
    public = request_key_set(gatebell).json()["keys"][-1]
    ours = RSAKey.import_key(public)
    theirs = RSAKey.generate_key(2048)
    kid = token.header["kid"]
    claims = {**token.claims, "aud": client.client_id}
    head, body, signature = token.text.split(".")
    none = jwt.encode({"alg": "none", "kid": kid}, claims, theirs, algorithms=["none"])
    return {
        "no signature": f"{head}.{body}.",
        "another body": f"{head}.{none.split('.')[1]}x.{signature}",
        "alg none": none,
        "HS256 with the public key": with_hmac(ours.as_pem(), kid, body),
        "HS256 with the modulus": with_hmac(public["n"].encode(), kid, body),
        "a key in the header": jwt.encode(
            {"alg": "RS256", "kid": kid, "jwk": theirs.as_dict(private=False)}, claims, theirs
        ),
        "only a key in the header": jwt.encode(
            {"alg": "RS256", "jwk": theirs.as_dict(private=False)}, claims, theirs
        ),
        "an address of a key": jwt.encode(
            {"alg": "RS256", "kid": "x", "jku": "https://evil.example/keys"}, claims, theirs
        ),
        "another key": jwt.encode({"alg": "RS256", "kid": kid}, claims, theirs),
        "another algorithm": jwt.encode(
            {"alg": "PS256", "kid": kid}, claims, theirs, algorithms=["PS256"]
        ),
        "garbage": "a.b.c",
        "no JWT": "é\x00" * 10,
        "very long": f"{head}.{body}.{'A' * 2_000}",
        "five parts": f"{head}.{body}.{signature}.{body}.{signature}",
    }
