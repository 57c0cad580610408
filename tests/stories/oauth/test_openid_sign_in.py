"""A web application that signs users in with Authlib's OpenID Connect client.

It only knows the URL of the issuer and its own credentials. Authlib discovers the endpoints,
creates state, nonce and verifier, fetches the keys, and checks the ID token.
"""

from typing import Any

import pytest
from authlib.integrations.flask_client import OAuth
from flask import Flask, Response, jsonify, redirect, session
from flask.testing import FlaskClient

from tests.stories.third_parties import Browser
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    alice,
    bob,
    make_application,
    sign_in,
)
from tests.support.oauth.oauth_wire import open_and_follow, sign_in_on, submit_decision
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
CALLBACK = "http://localhost/callback"
SCOPES = "openid profile email"


def application_with(gatebell: LiveGatebell, client: ClientCredentials) -> Flask:
    """Return a web application as in Authlib's documentation."""
    app = Flask("somebody's web application")
    app.secret_key = "of this application"
    oauth = OAuth(app)
    party: Any = oauth.register(
        "gatebell",
        client_id=client.client_id,
        client_secret=client.secret,
        server_metadata_url=f"{gatebell.url}/.well-known/openid-configuration",
        client_kwargs={"scope": SCOPES, "code_challenge_method": "S256", "trust_env": False},
    )

    @app.get("/sign_in")
    def ask() -> Any:
        return party.authorize_redirect(CALLBACK)

    @app.get("/callback")
    def take() -> Response:
        token = party.authorize_access_token()
        session["token"] = {"access_token": token["access_token"], "token_type": "bearer"}
        session["id_token"] = token["id_token"]
        return jsonify(token["userinfo"])

    @app.get("/me")
    def show() -> Response:
        return jsonify(party.userinfo(token=session["token"]))

    @app.get("/sign_out")
    def leave() -> Any:
        id_token = session.pop("id_token")
        party.load_server_metadata()
        end = party.server_metadata["end_session_endpoint"]
        return redirect(f"{end}?id_token_hint={id_token}&post_logout_redirect_uri={CALLBACK}")

    return app


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    return make_application(
        gatebell, bob(gatebell), name="Wiki", scopes=SCOPES, redirect_uris=(CALLBACK,)
    )


@pytest.fixture
def visitor(gatebell: LiveGatebell, client: ClientCredentials) -> FlaskClient:
    """A browser tab of the application."""
    return application_with(gatebell, client).test_client()


def signed_in_at(visitor: FlaskClient, browser: Browser) -> dict[str, Any]:
    """Follow the redirects to Gatebell and back; return the claims that the application gets."""
    address = browser.walk(visitor.get("/sign_in").headers["Location"])
    answer = visitor.get(address.removeprefix("http://localhost"))
    assert answer.status_code == 200, answer.text
    return dict(answer.json or {})


def a_browser(gatebell: LiveGatebell, person: Person) -> Browser:
    return Browser(gatebell.http(), person)


@pytest.mark.long
@pytest.mark.spec("D4", "D5", "D7")
@pytest.mark.rfc("oidc-core-5.3.2-a", "oidc-core-10.1-a")
def test_a_user_signs_in_to_a_third_party_application(
    gatebell: LiveGatebell, client: ClientCredentials, visitor: FlaskClient
) -> None:
    person = alice(gatebell)
    browser = a_browser(gatebell, person)
    claims = signed_in_at(visitor, browser)
    assert browser.seen == ["sign in", "consent"]
    assert (claims["iss"], claims["aud"]) == (gatebell.url, client.client_id)
    known = visitor.get("/me").json
    assert known is not None
    assert known["sub"] == claims["sub"]
    assert known["preferred_username"] == person.username
    assert known["email"] == person.email


@pytest.mark.long
@pytest.mark.spec("D5")
@pytest.mark.rfc("oidc-core-10.1.1-a")
def test_a_key_rotation_signs_no_user_out(gatebell: LiveGatebell, visitor: FlaskClient) -> None:
    browser = a_browser(gatebell, alice(gatebell))
    first = signed_in_at(visitor, browser)
    # The application caches the key set, and fetches it again for an unknown key.
    gatebell.cli("keys", "rotate", "--handover", "at-once")
    assert signed_in_at(visitor, browser)["sub"] == first["sub"]


def test_a_sign_out_at_the_application_needs_no_confirmation(
    gatebell: LiveGatebell, visitor: FlaskClient
) -> None:
    browser = a_browser(gatebell, alice(gatebell))
    signed_in_at(visitor, browser)
    leaving = visitor.get("/sign_out").headers["Location"]
    answer = browser.session.get(leaving, allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, CALLBACK)
    page = browser.session.get(gatebell.url)
    assert page.url.startswith(f"{gatebell.url}/users/sign_in")


@pytest.mark.long
@pytest.mark.rfc("oidc-core-2-b", "oidc-core-8-a")
def test_a_user_has_the_same_subject_in_all_applications(
    gatebell: LiveGatebell, visitor: FlaskClient
) -> None:
    first = signed_in_at(visitor, a_browser(gatebell, alice(gatebell)))
    other = make_application(gatebell, bob(gatebell), scopes=SCOPES, redirect_uris=(CALLBACK,))
    second = signed_in_at(
        application_with(gatebell, other).test_client(), a_browser(gatebell, alice(gatebell))
    )
    assert first["sub"] == second["sub"]
    assert first["aud"] != second["aud"]


@pytest.mark.long
def test_an_application_can_require_a_new_sign_in(
    gatebell: LiveGatebell, visitor: FlaskClient
) -> None:
    person = alice(gatebell)
    browser = Browser(sign_in(gatebell, person), person)
    first = signed_in_at(visitor, browser)
    url = f"{visitor.get('/sign_in').headers['Location']}&max_age=0"
    page = sign_in_on(browser.session, open_and_follow(browser.session, url), person)
    if 'name="decision"' in page.text:
        page = submit_decision(browser.session, page)
    again = visitor.get(page.headers["Location"].removeprefix("http://localhost")).json
    assert again is not None
    assert again["auth_time"] >= first["auth_time"]
    assert again["sub"] == first["sub"]
