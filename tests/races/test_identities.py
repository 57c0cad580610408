"""Tests of concurrent first sign-ins of one person in several browsers."""

from functools import partial

import pytest
from sqlalchemy import select

from models import Identity
from tests.support.accounts.people import database_of
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.openid_provider import (
    add_provider,
    ask_to_sign_in,
    open_response_url,
    running_provider,
)

BROWSERS = 5
ROUNDS = 3


@pytest.mark.long
@pytest.mark.both_databases
def test_concurrent_first_sign_ins_create_one_account(gatebell: LiveGatebell) -> None:
    with running_provider() as provider:
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        for _ in range(ROUNDS):
            provider.is_about()
            browsers = [gatebell.http() for _ in range(BROWSERS)]
            asked = [ask_to_sign_in(gatebell, each, slug) for each in browsers]
            back = [provider.response_to(each.headers["Location"]) for each in asked]
            answers = run_simultaneously(
                [partial(open_response_url, *each) for each in zip(browsers, back, strict=True)]
            )
            assert [each.status_code for each in answers] == [302] * BROWSERS
            mine = select(Identity).where(Identity.subject == provider.person["sub"])
            with database_of(gatebell) as session:
                assert len(session.scalars(mine).all()) == 1


@pytest.mark.both_databases
def test_a_repeated_response_signs_in_once(
    gatebell: LiveGatebell,
) -> None:
    with running_provider() as provider:
        slug = add_provider(gatebell, provider.url, "--creates-accounts")
        browser = gatebell.http()
        asked = ask_to_sign_in(gatebell, browser, slug).headers["Location"]
        copies = [gatebell.http() for _ in range(BROWSERS)]
        for each in copies:
            each.cookies.update(browser.cookies)
        back = [provider.response_to(asked) for _ in copies]
        answers = run_simultaneously(
            [partial(open_response_url, *each) for each in zip(copies, back, strict=True)]
        )
        assert sorted(each.status_code for each in answers) == [302] + [400] * (BROWSERS - 1)
