"""Signing out at the wish of an application, and who cannot make that happen."""

import base64
import hmac
import json
from urllib.parse import urlencode, urljoin

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.accounts.people import (
    CALLBACK,
    ClientCredentials,
    Person,
    alice,
    bob,
    make_application,
    make_user,
    open_browser,
)
from tests.support.oauth.oauth_wire import ask, decide, landing, pair_in, redeem
from tests.support.oauth.openid_wire import IdToken, checked, keys_at, openid_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
AFTER = "https://client.example/signed-out?a=b"


def end_session(gatebell: LiveGatebell, **parameters: str) -> str:
    return f"{gatebell.url}/oauth/logout?{urlencode(parameters)}"


def at(browser: requests.Session, url: str) -> requests.Response:
    return browser.get(url, allow_redirects=False)


def is_signed_in(gatebell: LiveGatebell, browser: requests.Session) -> bool:
    return at(browser, f"{gatebell.url}/-/user_settings/profile").status_code == 200


def somebody(gatebell: LiveGatebell, person: Person) -> tuple[requests.Session, IdToken]:
    """Return a browser in which the person signed in to the application, and the ID token."""
    browser, client = open_browser(gatebell, person), openid_application(gatebell)
    code = landing(ask(browser, gatebell, client, scope="openid"))["code"]
    return browser, checked(gatebell, pair_in(redeem(gatebell, client, code)).answer["id_token"])


@pytest.mark.rfc("oidc-logout-2-a", "oidc-logout-2-f", "oidc-logout-3-b")
def test_with_a_hint_nobody_is_asked_and_the_way_leads_back(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    url = end_session(
        gatebell, id_token_hint=token.text, post_logout_redirect_uri=AFTER, state="s &?é"
    )
    answer = at(browser, url)
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{AFTER}&state=s+%26%3F%C3%A9"
    assert not is_signed_in(gatebell, browser)
    # Again, signed out already: nothing to end, and the same way back.
    assert at(browser, url).headers["Location"] == answer.headers["Location"]


def test_with_a_hint_and_no_address_a_page_says_that_it_is_done(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    page = at(browser, end_session(gatebell, id_token_hint=token.text))
    assert page.status_code == 200
    assert "You are signed out" in page.text
    assert not is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-d", "oidc-logout-2-e", "oidc-logout-6-a")
def test_without_a_hint_the_person_is_asked(gatebell: LiveGatebell) -> None:
    client, browser = openid_application(gatebell), open_browser(gatebell, alice(gatebell))
    url = end_session(gatebell, client_id=client.client_id, post_logout_redirect_uri=AFTER)
    page = at(browser, url)
    assert page.status_code == 200
    assert "Sign-in App" in page.text
    assert "client.example" in page.text
    assert is_signed_in(gatebell, browser)
    form = form_with(page, "decision")
    stays = submit(browser, page, form, decision="stay")
    assert urljoin(page.url, stays.headers["Location"]) == f"{gatebell.url}/"
    assert is_signed_in(gatebell, browser)
    leaves = submit(browser, page, form, decision="sign_out")
    assert leaves.headers["Location"] == AFTER
    assert not is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-d")
def test_without_any_parameter_the_person_is_asked(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = at(browser, f"{gatebell.url}/oauth/logout")
    answer = submit(browser, page, form_with(page, "decision"), decision="sign_out")
    assert "You are signed out" in answer.text
    assert not is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-d")
def test_a_hint_about_somebody_else_is_a_question(gatebell: LiveGatebell) -> None:
    _, token = somebody(gatebell, alice(gatebell))
    browser = open_browser(gatebell, bob(gatebell))
    page = at(browser, end_session(gatebell, id_token_hint=token.text))
    assert "for a different account" in page.text
    assert is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-a")
def test_an_application_may_ask_by_post_without_a_cookie(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    form = {"id_token_hint": token.text, "post_logout_redirect_uri": AFTER, "state": "s"}
    # The browser keeps our cookie from a POST of another origin, and sends it with the GET.
    posted = gatebell.http().post(f"{gatebell.url}/oauth/logout", data=form, allow_redirects=False)
    assert posted.status_code == 303
    assert token.text not in posted.headers["Location"]
    answer = at(browser, urljoin(posted.url, posted.headers["Location"]))
    assert answer.headers["Location"] == f"{AFTER}&state=s"
    assert not is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-3-c")
def test_nobody_is_sent_on_without_a_hint_or_a_click(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    url = end_session(gatebell, client_id=client.client_id, post_logout_redirect_uri=AFTER)
    page = at(gatebell.http(), url)
    assert page.status_code == 200
    assert "You are signed out" in page.text
    assert "client.example" in page.text


@pytest.mark.rfc("rfc9700-4.11.2-a")
def test_a_hint_for_an_application_of_anybody_sends_on_nobody_who_is_not_signed_in(
    gatebell: LiveGatebell,
) -> None:
    # Whoever makes an application has ID tokens for it, and could spread such a link.
    mallory = make_user(gatebell, name="mallory")
    client = make_application(gatebell, mallory, scopes="openid")
    browser = open_browser(gatebell, mallory)
    code = landing(decide(browser, ask(browser, gatebell, client, scope="openid")))["code"]
    hint = pair_in(redeem(gatebell, client, code)).answer["id_token"]
    asked = {"id_token_hint": hint, "post_logout_redirect_uri": CALLBACK, "state": "s"}
    visitor = gatebell.http()
    page = at(visitor, end_session(gatebell, **asked))
    posted = visitor.post(f"{gatebell.url}/oauth/logout", data=asked, allow_redirects=False)
    for answer in (page, at(visitor, urljoin(posted.url, posted.headers["Location"]))):
        assert answer.status_code == 200
        assert "You are signed out" in answer.text
        assert f'href="{CALLBACK}?state=s"' in answer.text  # for who wants to go there
    # Who is signed in with that account is signed out, and goes back.
    assert at(browser, end_session(gatebell, **asked)).headers["Location"] == f"{CALLBACK}?state=s"


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


@pytest.mark.rfc("rfc6749-10.15-a", "oidc-logout-3-a", "oidc-logout-4-a")
def test_the_way_back_has_to_be_registered(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    client = openid_application(gatebell)
    for uri in (
        "https://evil.example/",
        "https://client.example/signed-out",
        f"{AFTER}#x",
        f"{CALLBACK}/",
        "javascript:alert(1)",
        "//client.example/callback",
    ):
        known = {"post_logout_redirect_uri": uri}
        assert_refused(gatebell, browser, client_id=client.client_id, **known)
        assert_refused(gatebell, browser, id_token_hint=token.text, **known)
        assert_refused(gatebell, browser, **known)


@pytest.mark.rfc("oidc-logout-2-c", "oidc-logout-4-a")
def test_the_hint_has_to_be_the_applications_own(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    other = make_application(gatebell, bob(gatebell))
    assert_refused(gatebell, browser, id_token_hint=token.text, client_id=other.client_id)
    assert_refused(gatebell, browser, client_id="unknown")
    assert_refused(gatebell, browser, client_id="a\x00b")


def with_hmac(secret: bytes, kid: str, body: str) -> str:
    """Sign by hand: no library would take a public key for a secret."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": kid}).encode())
    signed = head.rstrip(b"=") + b"." + body.encode()
    signature = base64.urlsafe_b64encode(hmac.digest(secret, signed, "sha256")).rstrip(b"=")
    return (signed + b"." + signature).decode()


def forged(gatebell: LiveGatebell, token: IdToken, client: ClientCredentials) -> dict[str, str]:
    """Return what attackers make of an ID token without having the key."""
    public = keys_at(gatebell).json()["keys"][-1]
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


# The tests make forgeries that joserfc rightly finds unwise.
@pytest.mark.rfc("oidc-core-16-b", "oidc-logout-2-b")
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_forged_hint_signs_nobody_out(gatebell: LiveGatebell) -> None:
    browser, token = somebody(gatebell, alice(gatebell))
    for hint in forged(gatebell, token, openid_application(gatebell)).values():
        assert_refused(gatebell, browser, id_token_hint=hint)


@pytest.mark.rfc("oidc-logout-6-a")
def test_the_answer_of_another_session_counts_for_nothing(gatebell: LiveGatebell) -> None:
    url = f"{gatebell.url}/oauth/logout"
    mine, theirs = open_browser(gatebell, alice(gatebell)), open_browser(gatebell, bob(gatebell))
    form = form_with(at(mine, url), "decision")
    carried = gatebell.http().post(url, data={}, allow_redirects=False).headers["Location"]
    for ticket in (form.value("request"), carried.partition("request=")[2], "", "x"):
        answer = theirs.post(
            url, data={"request": ticket, "decision": "sign_out"}, allow_redirects=False
        )
        assert answer.status_code == 400
    assert is_signed_in(gatebell, theirs)
