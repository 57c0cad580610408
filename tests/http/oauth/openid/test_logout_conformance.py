"""The certification plan for RP-Initiated Logout, module by module.

Each test is named after a module of `oidcc-rp-initiated-logout-certification-test-plan`.
tests/stories/oauth/test_openid_logout.py has more tests of logout.
"""

import pytest
import requests

from tests.support.accounts.people import alice, open_browser
from tests.support.oauth.conformance_wire import supported
from tests.support.oauth.logout_wire import (
    AFTER,
    assert_refused,
    at,
    build_forged_tokens,
    end_session,
    is_signed_in,
    sign_in_with_id_token,
)
from tests.support.oauth.oauth_wire import open_authorization, parse_redirect
from tests.support.oauth.openid_wire import openid_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("postgres")


def assert_signed_out(gatebell: LiveGatebell, browser: requests.Session) -> None:
    """Check with prompt=none, as the plan does, that no user is signed in."""
    answer = open_authorization(
        browser, gatebell, openid_application(gatebell), scope="openid", prompt="none"
    )
    assert parse_redirect(answer)["error"] == "login_required"


def assert_signs_out_once_asked(
    gatebell: LiveGatebell, browser: requests.Session, **parameters: str
) -> None:
    page = at(browser, end_session(gatebell, **parameters))
    assert is_signed_in(gatebell, browser)
    answer = submit(browser, page, form_with(page, "decision"), decision="sign_out")
    assert "You are signed out" in answer.text
    assert_signed_out(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2.1-a")
def test_oidcc_rp_initiated_logout_discovery_endpoint_verification(gatebell: LiveGatebell) -> None:
    assert supported(gatebell)["end_session_endpoint"] == f"{gatebell.url}/oauth/logout"


@pytest.mark.rfc("oidc-logout-2-a", "oidc-logout-2-f", "oidc-logout-3-b")
def test_oidcc_rp_initiated_logout(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    url = end_session(
        gatebell, id_token_hint=token.text, post_logout_redirect_uri=AFTER, state="s &?é"
    )
    answer = at(browser, url)
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{AFTER}&state=s+%26%3F%C3%A9"
    assert_signed_out(gatebell, browser)
    # A second request ends no session and redirects to the same URI.
    assert at(browser, url).headers["Location"] == answer.headers["Location"]


@pytest.mark.rfc("oidc-logout-3-a", "oidc-logout-4-a")
def test_oidcc_rp_initiated_logout_bad_post_logout_redirect_uri(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    other = "https://client.example/other"
    assert_refused(gatebell, browser, id_token_hint=token.text, post_logout_redirect_uri=other)


# joserfc warns about the insecure token that this test creates.
@pytest.mark.long
@pytest.mark.rfc("oidc-logout-2-b")
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_oidcc_rp_initiated_logout_modified_id_token_hint(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    hint = build_forged_tokens(gatebell, token, openid_application(gatebell))["alg none"]
    assert_refused(gatebell, browser, id_token_hint=hint, post_logout_redirect_uri=AFTER, state="s")


@pytest.mark.rfc("oidc-logout-3-c")
def test_oidcc_rp_initiated_logout_no_id_token_hint(gatebell: LiveGatebell) -> None:
    browser, _ = sign_in_with_id_token(gatebell, alice(gatebell))
    assert_refused(gatebell, browser, post_logout_redirect_uri=AFTER, state="s")


@pytest.mark.rfc("oidc-logout-2-d")
def test_oidcc_rp_initiated_logout_no_params(gatebell: LiveGatebell) -> None:
    assert_signs_out_once_asked(gatebell, open_browser(gatebell, alice(gatebell)))


def test_oidcc_rp_initiated_logout_no_post_logout_redirect_uri(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    page = at(browser, end_session(gatebell, id_token_hint=token.text, state="s"))
    assert page.status_code == 200
    assert "You are signed out" in page.text
    assert_signed_out(gatebell, browser)


@pytest.mark.rfc("oidc-logout-3-b")
def test_oidcc_rp_initiated_logout_no_state(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    known = {"id_token_hint": token.text, "post_logout_redirect_uri": AFTER}
    assert at(browser, end_session(gatebell, **known)).headers["Location"] == AFTER
    assert_signed_out(gatebell, browser)


@pytest.mark.rfc("oidc-logout-2-d")
def test_oidcc_rp_initiated_logout_only_state(gatebell: LiveGatebell) -> None:
    assert_signs_out_once_asked(gatebell, open_browser(gatebell, alice(gatebell)), state="s")


@pytest.mark.rfc("oidc-logout-3-a", "oidc-logout-4-a")
def test_oidcc_rp_initiated_logout_query_added_to_post_logout_redirect_uri(
    gatebell: LiveGatebell,
) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    added = f"{AFTER}&foo=bar"
    assert_refused(gatebell, browser, id_token_hint=token.text, post_logout_redirect_uri=added)


@pytest.mark.long
@pytest.mark.rfc("oidc-logout-2-b")
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_oidcc_rp_initiated_logout_bad_id_token_hint(gatebell: LiveGatebell) -> None:
    browser, token = sign_in_with_id_token(gatebell, alice(gatebell))
    hint = build_forged_tokens(gatebell, token, openid_application(gatebell))["another key"]
    assert_refused(gatebell, browser, id_token_hint=hint, post_logout_redirect_uri=AFTER, state="s")
