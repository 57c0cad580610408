"""Tests of sixteen concurrent requests for one device: one succeeds, and none fails."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
import requests
from sqlalchemy import func, select

from models import Application, Authorization, DeviceAuthorization
from tests.races.test_redemptions import PARALLEL, ROUNDS, all_at_once, assert_one_winner, tokens_of
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.oauth.device_wire import (
    approve,
    codes,
    enter_code,
    is_asking,
    poll,
    poll_form,
    press_decision,
)
from tests.support.oauth.oauth_wire import assert_refused, changed, is_token_valid
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with, submit


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """Create a device application for this test."""
    return make_application(gatebell, bob(gatebell), confidential=False)


@pytest.mark.long
@pytest.mark.spec("C8")
def test_exactly_one_of_sixteen_concurrent_polls_gets_a_token(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for round_number in range(ROUNDS):
        device = codes(gatebell, client)
        approve(browser, gatebell, device["user_code"])
        answers = all_at_once(gatebell, changed(poll_form(client, device["device_code"]), {}))
        assert_one_winner(answers)
        (winner,) = [answer.json() for answer in answers if answer.status_code == 200]
        assert is_token_valid(gatebell, winner["access_token"])
        assert tokens_of(gatebell, client) == round_number + 1


@pytest.mark.spec("C4", "C5")
@pytest.mark.rfc("rfc8628-3.5-b")
def test_each_of_sixteen_early_polls_increases_the_interval(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    device = codes(gatebell, client)
    answers = all_at_once(gatebell, changed(poll_form(client, device["device_code"]), {}))
    errors = Counter(answer.json()["error"] for answer in answers)
    assert errors == {"authorization_pending": 1, "slow_down": PARALLEL - 1}
    with database_of(gatebell) as session:
        newest = select(func.max(DeviceAuthorization.id))
        interval = session.scalar(
            select(DeviceAuthorization.interval)
            .join(Application, Application.id == DeviceAuthorization.application_id)
            .where(Application.uid == client.client_id)
        )
        assert session.scalar(newest) is not None
    assert interval == 5 + 5 * (PARALLEL - 1)


@pytest.mark.long
@pytest.mark.rfc("rfc8628-5.5-a")
def test_only_one_of_two_users_who_enter_a_code_sees_the_consent_page(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    people = [make_user(gatebell, name=name) for name in ("charlie", "dora")]
    browsers = [open_browser(gatebell, person) for person in people for _ in range(4)]
    user_code = codes(gatebell, client)["user_code"]
    typings = [_typing(browser, gatebell, user_code) for browser in browsers]
    opened = run_simultaneously(typings)
    asked = [[*map(is_asking, opened[:4])], [*map(is_asking, opened[4:])]]
    assert sorted(asked) == [[False] * 4, [True] * 4]
    assert {page.status_code for page in opened} == {200, 422}


def _typing(
    browser: requests.Session, gatebell: LiveGatebell, user_code: str
) -> Callable[[], requests.Response]:
    page = browser.get(f"{gatebell.url}/oauth/device")
    return partial(submit, browser, page, form_with(page, "user_code"), user_code=user_code)


@pytest.mark.long
def test_sixteen_submissions_of_approve_are_one_approval(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    device = codes(gatebell, client)
    page = enter_code(browser, gatebell, device["user_code"])
    answers = run_simultaneously([partial(press_decision, browser, page, "approve")] * PARALLEL)
    assert {answer.status_code for answer in answers} == {200}
    with database_of(gatebell) as session:
        approvals = session.scalar(
            select(func.count(Authorization.id))
            .join(Application, Application.id == Authorization.application_id)
            .where(Application.uid == client.client_id)
        )
    assert approvals == 1
    assert poll(gatebell, client, device["device_code"]).status_code == 200


@pytest.mark.long
@pytest.mark.spec("C7", "C8")
def test_only_one_of_concurrent_approvals_and_denials_counts(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    for _ in range(ROUNDS):
        device = codes(gatebell, client)
        page = enter_code(browser, gatebell, device["user_code"])
        decisions = ("approve", "deny") * 4
        answers = run_simultaneously(
            [partial(press_decision, browser, page, each) for each in decisions]
        )
        (said,) = {
            decision
            for decision, answer in zip(decisions, answers, strict=True)
            if answer.status_code == 200
        }
        assert {answer.status_code for answer in answers} == {200, 409}
        told = poll(gatebell, client, device["device_code"])
        if said == "approve":
            assert told.status_code == 200
        else:
            assert_refused(told, "access_denied")
