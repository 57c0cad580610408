"""Logout requests of applications (OpenID Connect), and protection against forged ones."""

from urllib.parse import urljoin

import pytest

from tests.support.accounts.people import (
    CALLBACK,
    alice,
    bob,
    make_application,
    make_user,
    open_browser,
)
from tests.support.oauth.logout_wire import (
    AFTER,
    assert_refused,
    at,
    build_forged_tokens,
    end_session,
    is_signed_in,
    sign_in_with_id_token,
)
from tests.support.oauth.oauth_wire import (
    open_authorization,
    parse_redirect,
    parse_token_pair,
    redeem,
    submit_decision,
)
from tests.support.oauth.openid_wire import openid_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.rfc("oidc-logout-2-d", "oidc-logout-2-e", "oidc-logout-6-a")
def test_without_a_hint_the_user_has_to_confirm(gatebell: LiveGatebell) -> None:
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
def test_a_hint_for_another_user_has_to_be_confirmed(gatebell: LiveGatebell) -> None:
    _, token = sign_in_with_id_token(gatebell, alice(gatebell))
    browser = open_browser(gatebell, bob(gatebell))
    page = at(browser, end_session(gatebell, id_token_hint=token.text))
    assert "for a different account" in page.text
    assert is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-a")
def test_a_logout_request_by_post_works_without_a_cookie(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    form = {"id_token_hint": token.text, "post_logout_redirect_uri": AFTER, "state": "s"}
    # The browser does not send our cookie with a POST from another origin, but sends it with the
    # GET.
    posted = gatebell.http().post(f"{gatebell.url}/oauth/logout", data=form, allow_redirects=False)
    assert posted.status_code == 303
    assert token.text not in posted.headers["Location"]
    answer = at(browser, urljoin(posted.url, posted.headers["Location"]))
    assert answer.headers["Location"] == f"{AFTER}&state=s"
    assert not is_signed_in(gatebell, browser)


@pytest.mark.rfc("oidc-logout-3-c")
def test_there_is_no_redirect_without_a_hint_or_a_click(gatebell: LiveGatebell) -> None:
    client = openid_application(gatebell)
    url = end_session(gatebell, client_id=client.client_id, post_logout_redirect_uri=AFTER)
    page = at(gatebell.http(), url)
    assert page.status_code == 200
    assert "You are signed out" in page.text
    assert "client.example" in page.text


@pytest.mark.rfc("rfc9700-4.11.2-a")
def test_a_hint_of_another_user_does_not_redirect_visitors(
    gatebell: LiveGatebell,
) -> None:
    # Owners of applications get ID tokens for them, and could spread such a link.
    mallory = make_user(gatebell, name="mallory")
    client = make_application(gatebell, mallory, scopes="openid")
    browser = open_browser(gatebell, mallory)
    code = parse_redirect(
        submit_decision(browser, open_authorization(browser, gatebell, client, scope="openid"))
    )["code"]
    hint = parse_token_pair(redeem(gatebell, client, code)).answer["id_token"]
    asked = {"id_token_hint": hint, "post_logout_redirect_uri": CALLBACK, "state": "s"}
    visitor = gatebell.http()
    page = at(visitor, end_session(gatebell, **asked))
    posted = visitor.post(f"{gatebell.url}/oauth/logout", data=asked, allow_redirects=False)
    for answer in (page, at(visitor, urljoin(posted.url, posted.headers["Location"]))):
        assert answer.status_code == 200
        assert "You are signed out" in answer.text
        assert f'href="{CALLBACK}?state=s"' in answer.text  # Visitors can follow the link.
    # A user who is signed in with that account is signed out and redirected.
    assert at(browser, end_session(gatebell, **asked)).headers["Location"] == f"{CALLBACK}?state=s"


@pytest.mark.long
@pytest.mark.rfc("rfc6749-10.15-a", "oidc-logout-3-a", "oidc-logout-4-a")
def test_the_redirect_uri_has_to_be_registered(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
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


@pytest.mark.long
@pytest.mark.rfc("oidc-logout-2-c", "oidc-logout-4-a")
def test_the_hint_has_to_belong_to_the_application(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    other = make_application(gatebell, bob(gatebell))
    assert_refused(gatebell, browser, id_token_hint=token.text, client_id=other.client_id)
    assert_refused(gatebell, browser, client_id="unknown")
    assert_refused(gatebell, browser, client_id="a\x00b")


# joserfc warns about the forgeries of this test.
@pytest.mark.long
@pytest.mark.rfc("oidc-core-16-b", "oidc-logout-2-b")
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_forged_hint_does_not_sign_out(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    for hint in build_forged_tokens(gatebell, token, openid_application(gatebell)).values():
        assert_refused(gatebell, browser, id_token_hint=hint)


@pytest.mark.rfc("oidc-logout-6-a")
def test_the_confirmation_of_another_session_is_rejected(gatebell: LiveGatebell) -> None:
    url = f"{gatebell.url}/oauth/logout"
    mine, theirs = open_browser(gatebell, alice(gatebell)), open_browser(gatebell, bob(gatebell))
    form = form_with(at(mine, url), "decision")
    carried = gatebell.http().post(url, data={}, allow_redirects=False).headers["Location"]
    for ticket in (form.value("request"), carried.partition("request=")[2], "", "x"):
        answer = theirs.post(
            url, data={"request": ticket, "decision": "sign_out"}, allow_redirects=False
        )
        is_mine = ticket == form.value("request")
        assert answer.status_code == (303 if is_mine else 400)
        if is_mine:
            assert "Sign out?" in at(theirs, urljoin(url, answer.headers["Location"])).text
    assert is_signed_in(gatebell, theirs)
