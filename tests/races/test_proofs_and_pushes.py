"""Tests of sixteen concurrent uses of a DPoP proof or a pushed request: one succeeds."""

from collections import Counter

import pytest

from tests.support.accounts.people import alice, bob, make_application, open_browser, signed_in
from tests.support.oauth.oauth_wire import (
    PKCE,
    VERIFIER,
    new_code,
    open_and_follow,
    parse_token_pair,
    phone_application,
    server_application,
)
from tests.support.oauth.proofs import Prover, redeem_with_key
from tests.support.oauth.pushes import pushed
from tests.support.service.crowd import Send, send_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with

PARALLEL = 16
USER = "/api/v4/user"


@pytest.mark.long
@pytest.mark.rfc("rfc9449-11.1-a", "rfc9449-11.1-b")
def test_one_proof_redeems_only_one_of_sixteen_codes(gatebell: LiveGatebell) -> None:
    phone = phone_application(gatebell)
    headers = Prover().for_token(gatebell)
    common = {"grant_type": "authorization_code", "client_id": phone.client_id}
    common |= {"redirect_uri": phone.redirect_uri, "code_verifier": VERIFIER}
    forms = [{**common, "code": new_code(gatebell, phone, **PKCE)} for _ in range(PARALLEL)]
    url = f"{gatebell.url}/oauth/token"

    def redeeming(form: dict[str, str]) -> Send:
        return lambda session: session.post(url, data=form, headers=headers)

    answers = send_simultaneously(gatebell, [redeeming(form) for form in forms])
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {200: 1, 400: PARALLEL - 1}, [answer.text for answer in answers]
    errors = {answer.json().get("error") for answer in answers}
    assert errors == {None, "invalid_dpop_proof"}


@pytest.mark.rfc("rfc9449-11.1-a")
def test_one_proof_opens_a_resource_once(gatebell: LiveGatebell) -> None:
    phone, key = phone_application(gatebell), Prover()
    code = new_code(gatebell, phone, **PKCE)
    token = parse_token_pair(redeem_with_key(gatebell, phone, code, key)).access
    url = gatebell.url + USER
    headers = key.showing(token, url)
    answers = send_simultaneously(
        gatebell, [lambda session: session.get(url, headers=headers)] * PARALLEL
    )
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {200: 1, 401: PARALLEL - 1}, [answer.text for answer in answers]


@pytest.mark.long
@pytest.mark.rfc("rfc9126-4-c")
def test_one_pushed_request_is_approved_once(gatebell: LiveGatebell) -> None:
    client = make_application(gatebell, bob(gatebell))
    browser = open_browser(gatebell, alice(gatebell))
    form = form_with(open_and_follow(browser, pushed(gatebell, client)), "decision")
    fields = form.filled(decision="authorize")
    url = f"{gatebell.url}/oauth/authorize/decision"
    cookies = browser.cookies.get_dict()
    answers = send_simultaneously(
        gatebell,
        [lambda session: session.post(url, data=fields, cookies=cookies, allow_redirects=False)]
        * PARALLEL,
    )
    assert Counter(answer.status_code for answer in answers) == {302: PARALLEL}
    # All responses contain the code of the first decision.
    (location,) = {answer.headers["Location"] for answer in answers}
    assert "code=" in location


@pytest.mark.long
@pytest.mark.rfc("rfc9126-4-c")
def test_one_pushed_request_without_a_consent_page_gives_one_code(
    gatebell: LiveGatebell,
) -> None:
    url = pushed(gatebell, server_application(gatebell))
    cookies = signed_in(gatebell, alice(gatebell)).cookies.get_dict()
    answers = send_simultaneously(
        gatebell,
        [lambda session: session.get(url, cookies=cookies, allow_redirects=False)] * PARALLEL,
    )
    assert Counter(answer.status_code for answer in answers) == {302: 1, 400: PARALLEL - 1}
