"""Complete sign-ins of an application, with the checks of the conformance suite."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

import requests
from requests.auth import HTTPBasicAuth
from sqlalchemy import select

from models import SignIn, User
from tests.support.accounts.people import ClientCredentials, Person, alice, database_of, signed_in
from tests.support.oauth.oauth_wire import (
    STATE,
    Changes,
    machine,
    open_authorization,
    parse_redirect,
    parse_token_pair,
    post_token,
    sign_in_on,
)
from tests.support.oauth.openid_wire import (
    IdToken,
    openid_application,
    request_userinfo,
    verify_id_token,
)
from tests.support.service.live import LiveGatebell

NONCE = "a nonce of a client"
#: Claims of an ID token of a first sign-in; only userinfo returns the claims of scopes.
ID_TOKEN = {
    *("iss", "sub", "groups", "aud", "exp", "iat", "auth_time", "acr", "amr", "nonce", "sid"),
    "at_hash",
}


@dataclass(frozen=True)
class Signed:
    """Tokens of a client after a complete flow."""

    token: IdToken
    access: str
    refresh: str
    claims: dict[str, Any]


def by_basic(gatebell: LiveGatebell, client: ClientCredentials, code: str) -> requests.Response:
    """Redeem a code as the test plan does, with the secret in a header."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_uri,
    }
    return post_token(gatebell, form, auth=HTTPBasicAuth(client.client_id, client.secret))


#: Function with which an application redeems a code.
Redeem = Callable[[LiveGatebell, ClientCredentials, str], requests.Response]


def complete_flow(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    answer: requests.Response,
    redeem: Redeem = by_basic,
) -> Signed:
    """Follow the browser's redirect, and make all checks of the suite for a flow."""
    brought = parse_redirect(answer)
    assert brought["state"] == STATE
    assert brought["iss"] == gatebell.url
    redeemed = redeem(gatebell, client, brought["code"])
    assert redeemed.headers["Cache-Control"] == "no-store"
    assert redeemed.headers["Pragma"] == "no-cache"
    pair = parse_token_pair(redeemed)
    assert pair.answer["token_type"].lower() == "bearer"
    token = verify_id_token(gatebell, pair.answer["id_token"])
    assert token.claims["iss"] == gatebell.url
    assert token.claims["aud"] == client.client_id
    assert token.claims["exp"] > token.claims["iat"]
    half = sha256(pair.access.encode()).digest()[:16]
    assert token.claims["at_hash"] == base64.urlsafe_b64encode(half).decode().rstrip("=")
    told = request_userinfo(gatebell, pair.access)
    assert told.status_code == 200, told.text
    claims = told.json()
    assert claims["sub"] == token.claims["sub"]
    return Signed(token, pair.access, pair.refresh, claims)


def run_flow(
    gatebell: LiveGatebell,
    client: ClientCredentials,
    browser: requests.Session | None = None,
    **changes: Changes,
) -> Signed:
    """Run a complete flow without a consent page."""
    wanted: dict[str, Changes] = {"scope": "openid", "nonce": NONCE, **changes}
    browser = browser or signed_in(gatebell, alice(gatebell))
    return complete_flow(gatebell, client, open_authorization(browser, gatebell, client, **wanted))


def run_flow_with_sign_in(
    gatebell: LiveGatebell, browser: requests.Session, person: Person, **changes: Changes
) -> Signed:
    """Run a complete flow in which the user has to sign in again."""
    client = openid_application(gatebell)
    page = open_authorization(browser, gatebell, client, scope="openid", nonce=NONCE, **changes)
    assert 'name="password"' in page.text
    return complete_flow(gatebell, client, sign_in_on(browser, page, person))


def age_sign_ins(gatebell: LiveGatebell, person: Person, age: timedelta) -> None:
    """Move the sign-ins of a user into the past."""
    user_id = select(User.id).where(User.username == person.username).scalar_subquery()
    with database_of(gatebell) as session:
        for row in session.scalars(select(SignIn).where(SignIn.user_id == user_id)):
            row.created_at -= age


def supported(gatebell: LiveGatebell) -> dict[str, Any]:
    """Return the metadata of the provider."""
    address = f"{gatebell.url}/.well-known/openid-configuration"
    document: dict[str, Any] = machine(gatebell).get(address).json()
    return document


def unsigned(gatebell: LiveGatebell, client: ClientCredentials, **claims: str) -> str:
    """Return an unsigned request object."""
    content = {"iss": client.client_id, "aud": gatebell.url, "response_type": "code", **claims}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, content))
    return ".".join([*(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts), ""])


def used_code(gatebell: LiveGatebell, client: ClientCredentials) -> tuple[str, str]:
    """Return a redeemed code, and the access token that it returned."""
    browser = signed_in(gatebell, alice(gatebell))
    code = parse_redirect(open_authorization(browser, gatebell, client, scope="openid"))["code"]
    return code, parse_token_pair(by_basic(gatebell, client, code)).access
