"""What counts as a parameter of an authorization request, and what an answer may hold."""

import re

import pytest
import requests

from tests.support.accounts.people import alice, bob, make_application, open_browser
from tests.support.oauth.oauth_wire import ask, decide, landing, server_application
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit

pytestmark = pytest.mark.one_database("sqlite")

#: RFC 6749 section 4.1.2.1: no quote and no backslash.
FIT_FOR_A_DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+")
OPTIONAL = (
    "state",
    "response_mode",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "nonce",
    "login_hint",
    "id_token_hint",
    "request",
    "request_uri",
)


@pytest.mark.rfc("rfc6749-3.1-d")
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_parameter_without_a_value_counts_as_left_out(
    gatebell: LiveGatebell, browser: requests.Session, name: str
) -> None:
    answer = ask(browser, gatebell, server_application(gatebell), **{name: ""})
    assert "code" in landing(answer)


@pytest.mark.rfc("rfc6749-4.1.2.1-g")
@pytest.mark.parametrize("name", ["response_type", "scope", "prompt", "max_age", "response_mode"])
@pytest.mark.parametrize("value", ['a"b', "a\\b", "\u202e", "\x7f", "é" * 20, "a\nb"])
def test_a_description_of_an_error_is_fit_to_be_sent(
    gatebell: LiveGatebell, browser: requests.Session, name: str, value: str
) -> None:
    brought = landing(ask(browser, gatebell, server_application(gatebell), **{name: value}))
    assert FIT_FOR_A_DESCRIPTION.fullmatch(brought["error_description"])
    assert FIT_FOR_A_DESCRIPTION.fullmatch(brought["error"])


@pytest.mark.rfc("rfc6749-4.1.2-b")
def test_no_code_can_be_set_to_live_longer_than_ten_minutes(gatebell: LiveGatebell) -> None:
    name = "authorization_code_lifetime_seconds"
    refused = gatebell.run_cli("settings", "set", name, "601")
    assert refused.returncode == 1
    assert "600" in refused.stderr


@pytest.mark.rfc("rfc9700-4.12-a")
def test_no_answer_sends_a_form_on_to_another_address(gatebell: LiveGatebell) -> None:
    # 307 and 308 would have the browser post the password, or the decision, to the application.
    browser = open_browser(gatebell, alice(gatebell))
    page = ask(gatebell.http(), gatebell, server_application(gatebell))
    form = form_with(page, "password")
    person = alice(gatebell)
    answers = [
        submit(gatebell.http(), page, form, login=person.username, password=person.password),
        submit(gatebell.http(), page, form, login=person.username, password="wrong"),
    ]
    client = make_application(gatebell, bob(gatebell))
    answers += [
        decide(browser, ask(browser, gatebell, client), decision)
        for decision in ("cancel", "authorize")
    ]
    for answer in answers:
        assert answer.status_code not in {307, 308}
    assert {answer.status_code for answer in answers[2:]} == {302}
