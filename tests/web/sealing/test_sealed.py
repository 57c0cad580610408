"""Tests that pages that were open during a key change can be submitted, and forgeries cannot."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pyotp
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from domain.accounts.factors.totp import generate_seed
from domain.accounts.users import NewUser, create_user
from domain.oauth.clients.applications import store_application
from domain.oauth.clients.types import ApplicationDetails
from models import TotpDevice
from tests.support.accounts.people import now
from tests.support.sign_in.password_rules import RULES
from tests.support.wire.html_forms import HtmlForm, forms_in
from web.extensions import db
from web.sealing.sealed_values import BrokenSealError, seal_value, unseal_text
from web.services import get_services
from web.settings.environment import Settings

pytestmark = pytest.mark.one_database("postgres")

PASSWORD = "rain on tin roofs"
CALLBACK = "https://client.example/callback"
HOUR = timedelta(hours=1)


@pytest.fixture
def rotated(make_app: Callable[[Settings], Flask], settings: Settings) -> Flask:
    """Return the service after a key change, with the former key as a fallback."""
    former = settings.secret_key
    return make_app(replace(settings, secret_key="a newer key", secret_key_fallbacks=(former,)))


def register_board(app: Flask) -> str:
    """Create an account and an application for Charlie, and return its client_id."""
    new = NewUser(
        username="charlie", email="charlie@people.example", name="Charlie", password=PASSWORD
    )
    with app.test_request_context():
        user = create_user(new, session=db.session(), now=now(), rules=RULES)
        details = ApplicationDetails(
            name="Board", redirect_uris=(CALLBACK,), scopes=("read_user",), confidential=True
        )
        registered, _ = store_application(
            details,
            owner_id=user.id,
            session=db.session(),
            keyring=get_services().keyring,
            now=now(),
        )
        uid: str = registered.uid
        db.session.commit()
    return uid


def give_app(app: Flask) -> pyotp.TOTP:
    """Add an authenticator app to Charlie's account, and return it."""
    seed = generate_seed()
    with app.test_request_context():
        device = TotpDevice(
            user_id=1,
            seed_ciphertext=get_services().keyring.encrypt(seed),
            created_at=now(),
            confirmed_at=now(),
            last_used_step=None,
        )
        db.session.add(device)
        db.session.commit()
    return pyotp.TOTP(seed)


def form_with(page: TestResponse, name: str) -> HtmlForm:
    assert page.status_code == 200, page.text
    return next(form for form in forms_in(page.text) if form.has(name))


def give_password(browser: FlaskClient) -> TestResponse:
    form = form_with(browser.get("/users/sign_in"), "password")
    answer = browser.post(form.action, data=dict(form.filled(login="charlie", password=PASSWORD)))
    assert answer.status_code == 302, answer.text
    return answer


def moved(browser: FlaskClient, app: Flask) -> FlaskClient:
    """Return the same browser, whose next request another process answers."""
    name = app.config["SESSION_COOKIE_NAME"]
    cookie = browser.get_cookie(name)
    assert cookie is not None
    other = app.test_client()
    other.set_cookie(name, cookie.value)
    return other


def authorize(uid: str) -> str:
    return (
        f"/oauth/authorize?client_id={uid}&redirect_uri={CALLBACK}"
        "&response_type=code&scope=read_user"
    )


@pytest.mark.long
def test_an_open_consent_page_stays_valid_after_a_key_change(app: Flask, rotated: Flask) -> None:
    uid = register_board(app)
    browser = app.test_client()
    give_password(browser)
    form = form_with(browser.get(authorize(uid)), "decision")
    pressed = dict(form.filled(decision="authorize"))
    answer = moved(browser, rotated).post(form.action, data=pressed)
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith(f"{CALLBACK}?code=")


@pytest.mark.long
def test_an_open_sign_out_page_stays_valid_after_a_key_change(app: Flask, rotated: Flask) -> None:
    register_board(app)
    browser = app.test_client()
    give_password(browser)
    form = form_with(browser.get("/oauth/logout"), "decision")
    pressed = dict(form.filled(decision="sign_out"))
    answer = moved(browser, rotated).post(form.action, data=pressed)
    assert answer.status_code == 200, answer.text
    assert "No user is signed in" in answer.text


@pytest.mark.long
def test_an_open_second_factor_page_stays_valid_after_a_key_change(
    app: Flask, rotated: Flask
) -> None:
    register_board(app)
    authenticator = give_app(app)
    browser = app.test_client()
    path = give_password(browser).headers["Location"]
    form = form_with(browser.get(path), "code")
    typed = dict(form.filled(code=authenticator.at(now())))
    other = moved(browser, rotated)
    answer = other.post(form.action or path, data=typed)
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"] == "/"
    assert other.get("/-/user_settings/profile").status_code == 200


@pytest.mark.long
def test_an_open_form_stays_valid_after_a_key_change(app: Flask, rotated: Flask) -> None:
    register_board(app)
    browser = app.test_client()
    for path in ("/users/sign_in", "/groups/new", "/-/user_settings/profile"):
        if path == "/groups/new":
            give_password(browser)
        page = browser.get(path)
        form = [each for each in forms_in(page.text) if each.has("csrf_token")][-1]
        answer = moved(browser, rotated).post(form.action or path, data=dict(form.filled()))
        assert answer.status_code != 400, (path, answer.text)


def test_a_seal_is_valid_for_its_purpose_lifetime_and_keys(
    app: Flask, rotated: Flask, make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    with app.app_context():
        sealed = seal_value({"a": 1}, purpose="this")
        assert unseal_text(sealed, purpose="this", lifetime=HOUR) == {"a": 1}
        with pytest.raises(BrokenSealError):
            unseal_text(sealed, purpose="that", lifetime=HOUR)
        with pytest.raises(BrokenSealError):
            unseal_text(sealed, purpose="this", lifetime=timedelta(seconds=-1))
    with rotated.app_context():
        assert unseal_text(sealed, purpose="this", lifetime=HOUR) == {"a": 1}
        newer = seal_value({"a": 1}, purpose="this")
    with app.app_context(), pytest.raises(BrokenSealError):
        unseal_text(newer, purpose="this", lifetime=HOUR)
    third = make_app(replace(settings, secret_key="a newer key", secret_key_fallbacks=()))
    with third.app_context(), pytest.raises(BrokenSealError):
        unseal_text(sealed, purpose="this", lifetime=HOUR)
