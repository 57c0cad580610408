"""Security headers of pages, and the exceptions that pages of the OAuth flow need."""

import re

import pytest
import requests
from flask import Flask

from tests.support.accounts.people import alice, bob, make_application, make_user, signed_in
from tests.support.oauth.oauth_wire import open_authorization, server_application
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import SECURITY, give_app, give_password
from web.http.endpoints import list_page_blueprints

pytestmark = pytest.mark.one_database("sqlite")


def policies(answer: requests.Response) -> tuple[bool, str]:
    """Return whether forms are limited to this origin, and the opener policy."""
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "base-uri 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert policy.count("form-action") == policy.count("form-action 'self'")
    return "form-action" in policy, answer.headers["Cross-Origin-Opener-Policy"]


STAYS, LEADS_OUT = (True, "same-origin"), (False, "unsafe-none")
POLICIES = (
    ("/", STAYS),
    ("/groups", STAYS),
    ("/-/user_settings/profile", STAYS),
    ("/-/user_settings/applications/new", STAYS),
    ("/-/user_settings/authorized_applications", STAYS),
    (SECURITY, STAYS),
    ("/admin", STAYS),
    ("/there/is/nothing", STAYS),
    ("/oauth/nothing", STAYS),
    ("/oauth/device", LEADS_OUT),
    ("/oauth/device/phone", LEADS_OUT),
    ("/oauth/logout", LEADS_OUT),
    ("/oauth/authorize", LEADS_OUT),
    ("/users/sign_in", LEADS_OUT),
    ("/users/two_factor", LEADS_OUT),
)


@pytest.mark.long
def test_forms_are_limited_to_this_origin_except_in_the_oauth_flow(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for path, expected in POLICIES:
        answer = browser.get(gatebell.url + path, allow_redirects=False)
        assert policies(answer) == expected, path


#: Forms of applications, which may come from any origin and change nothing.
OF_OTHERS = {"/oauth/authorize", "/oauth/logout"}
#: Forms that redirect to their page, since the session can end before they are sent.
QUESTIONS = {
    *("/oauth/device", "/oauth/device/decision", "/oauth/device/phone"),
    *("/users/auth/1", "/users/sign_in", "/users/sign_in/passkey", "/users/sign_out"),
    *("/users/password/1", "/users/password/new", "/users/sign_up", "/users/sign_up/1"),
    *("/users/two_factor", "/users/two_factor/passkey"),
}


@pytest.mark.long
@pytest.mark.advisory("CVE-2014-8144")
def test_every_form_is_rejected_without_its_csrf_token(app: Flask) -> None:
    pages, client = set(list_page_blueprints(app)), app.test_client()
    paths = {
        re.sub(r"<any\(\W?(\w+).*?>|<[^>]+>", lambda found: found[1] or "1", rule.rule)
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and rule.endpoint.partition(".")[0] in pages
    }
    answers = {path: client.post(path) for path in paths}
    taken = {path for path, answer in answers.items() if answer.status_code != 400}
    assert taken == OF_OTHERS | QUESTIONS
    assert all(answers[path].status_code in {302, 303} for path in taken)


def test_every_page_of_the_oauth_flow_allows_foreign_form_targets(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    stranger = gatebell.http()
    assert (
        policies(open_authorization(stranger, gatebell, client)) == LEADS_OUT
    )  # The sign-in page.
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    assert policies(give_password(gatebell, charlie)[1]) == LEADS_OUT
    browser = signed_in(gatebell, alice(gatebell))
    assert policies(open_authorization(browser, gatebell, client)) == LEADS_OUT  # The consent page.
    assert (
        policies(open_authorization(browser, gatebell, client, redirect_uri="https://x.example/"))
        == LEADS_OUT
    )
    sent_back = open_authorization(browser, gatebell, server_application(gatebell))
    assert sent_back.status_code == 302
    assert policies(sent_back) == LEADS_OUT
