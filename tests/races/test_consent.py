"""Tests of concurrent consent decisions and revocations of one user."""

from functools import partial

import pytest
import requests
from sqlalchemy import func, select

from models import Application, Authorization, Consent
from tests.races.test_redemptions import PARALLEL, ROUNDS
from tests.support.accounts.people import (
    ClientCredentials,
    alice,
    bob,
    database_of,
    make_application,
    open_browser,
)
from tests.support.oauth.oauth_wire import (
    is_token_valid,
    open_authorization,
    parse_redirect,
    redeem,
    submit_decision,
)
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """Create an application that no user has approved."""
    return make_application(gatebell, bob(gatebell))


def consents(gatebell: LiveGatebell, client: ClientCredentials) -> list[str]:
    """Return the scopes of every stored consent."""
    statement = (
        select(Consent.scopes)
        .join(Application, Application.id == Consent.application_id)
        .where(Application.uid == client.client_id)
    )
    with database_of(gatebell) as session:
        return list(session.scalars(statement))


def codes_of(gatebell: LiveGatebell, client: ClientCredentials) -> int:
    statement = (
        select(func.count(Authorization.id))
        .join(Application, Application.id == Authorization.application_id)
        .where(Application.uid == client.client_id)
    )
    with database_of(gatebell) as session:
        return session.scalar(statement) or 0


@pytest.mark.long
def test_sixteen_concurrent_decisions_store_one_consent(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    pages = [open_authorization(browser, gatebell, client) for _ in range(PARALLEL)]
    answers = run_simultaneously([partial(submit_decision, browser, page) for page in pages])
    brought = [parse_redirect(answer)["code"] for answer in answers]
    assert len(set(brought)) == PARALLEL
    assert consents(gatebell, client) == [client.scopes]
    assert codes_of(gatebell, client) == PARALLEL


def test_only_one_of_sixteen_decisions_from_one_page_counts(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    page = open_authorization(browser, gatebell, client)
    answers = run_simultaneously([partial(submit_decision, browser, page)] * PARALLEL)
    assert {answer.status_code for answer in answers} == {302}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert codes_of(gatebell, client) == 1


@pytest.mark.long
def test_concurrent_requests_lose_no_scope(gatebell: LiveGatebell) -> None:
    for _ in range(ROUNDS):
        fresh = make_application(gatebell, bob(gatebell))
        browser = open_browser(gatebell, alice(gatebell))
        scopes = fresh.scopes.split() * 4
        pages = [open_authorization(browser, gatebell, fresh, scope=scope) for scope in scopes]
        answers = run_simultaneously([partial(submit_decision, browser, page) for page in pages])
        assert all("code" in parse_redirect(answer) for answer in answers)
        assert consents(gatebell, fresh) == [fresh.scopes]


@pytest.mark.long
def test_a_concurrent_revocation_leaves_all_or_nothing(
    gatebell: LiveGatebell, client: ClientCredentials
) -> None:
    browser = open_browser(gatebell, alice(gatebell))
    address = f"{gatebell.url}/-/user_settings/authorized_applications"
    for _ in range(ROUNDS):
        first = submit_decision(
            browser, open_authorization(browser, gatebell, client, prompt="consent")
        )
        # The page lists only applications with tokens.
        assert redeem(gatebell, client, parse_redirect(first)["code"]).status_code == 200
        listed = browser.get(address)
        take_back = partial(submit, browser, listed, form_to(listed, f"/{client.id}/revoke"))
        pages = [open_authorization(browser, gatebell, client, prompt="consent") for _ in range(4)]
        deeds = [(partial(submit_decision, browser, page), take_back) for page in pages]
        answers = run_simultaneously([deed for pair in deeds for deed in pair])
        assert {answer.status_code for answer in answers} <= {302, 303}
        assert_all_or_nothing(gatebell, client, answers[::2])


def assert_all_or_nothing(
    gatebell: LiveGatebell, client: ClientCredentials, approvals: list[requests.Response]
) -> None:
    """Check that no code remains valid after a later revocation of the consent."""
    redeemed = [redeem(gatebell, client, parse_redirect(answer)["code"]) for answer in approvals]
    assert {answer.status_code for answer in redeemed} <= {200, 400}
    live = [answer.json()["access_token"] for answer in redeemed if answer.ok]
    assert all(is_token_valid(gatebell, token) for token in live)
    if not consents(gatebell, client):
        assert live == []
