"""Tests that only one of several concurrent second factors signs in."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import requests
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from models import RecoveryCode
from tests.http.accounts.settings.test_sessions import COOKIE, with_cookie
from tests.support.accounts.people import Person, database_of, make_user
from tests.support.alerts.monitoring import wait_until
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.second_factors import (
    SECURITY,
    code_of,
    give_app,
    give_code,
    give_password,
    give_recovery_codes,
    is_signed_in,
)
from tests.support.wire.html_forms import form_with, submit

CODES = f"{SECURITY}/recovery_codes"
#: Number of requests, fewer than the allowed guesses of an account.
PARALLEL = 8


def outcomes(answers: list[requests.Response]) -> Counter[str]:
    """Count the requests that signed in, were rejected, or have to start again."""
    words = {422: "refused"}
    return Counter(
        words.get(answer.status_code) or f"{answer.status_code} {answer.headers['Location']}"
        for answer in answers
    )


def all_send(
    gatebell: LiveGatebell, person: Person, new_code: Callable[[], str]
) -> list[requests.Response]:
    """Send one code from several browsers that have passed the password step."""
    waiting = [give_password(gatebell, person) for _ in range(PARALLEL)]
    code = new_code()  # The code is for the current half minute, after slow first steps as well.
    return run_simultaneously(
        [partial(give_code, browser, page, code) for browser, page in waiting]
    )


@pytest.mark.long
def test_one_authenticator_code_signs_in_only_once(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    answers = all_send(gatebell, charlie, partial(code_of, give_app(gatebell, charlie)))
    assert outcomes(answers) == {"302 /": 1, "refused": PARALLEL - 1}


@pytest.mark.long
def test_one_recovery_code_signs_in_only_once(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    codes = iter(give_recovery_codes(gatebell, charlie))
    answers = all_send(gatebell, charlie, partial(next, codes))
    assert outcomes(answers) == {"302 /": 1, "refused": PARALLEL - 1}


def test_one_password_step_gives_one_sign_in_even_with_many_valid_codes(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    codes = give_recovery_codes(gatebell, charlie)[:PARALLEL]
    browser, page = give_password(gatebell, charlie)
    copies = [with_cookie(gatebell, browser.cookies[COOKIE]) for _ in codes]
    answers = run_simultaneously(
        [partial(give_code, copy, page, code) for copy, code in zip(copies, codes, strict=True)]
    )
    assert outcomes(answers) == {"302 /": 1, "302 /users/sign_in": PARALLEL - 1}


@pytest.mark.long
@pytest.mark.advisory("CVE-2023-47111", "CVE-2024-4629")
def test_concurrent_guesses_are_limited(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    waiting = [give_password(gatebell, charlie) for _ in range(13)]
    guesses: list[Callable[[], requests.Response]] = [
        partial(submit, browser, page, form_with(page, "code"), code="000000")
        for browser, page in waiting
    ]
    statuses = Counter(answer.status_code for answer in run_simultaneously(guesses))
    assert statuses == {422: 10, 429: 3}


def renew(gatebell: LiveGatebell, person: Person, browsers: list[requests.Session]) -> None:
    """Request new recovery codes in all browsers simultaneously."""
    pages = [browser.get(f"{gatebell.url}{CODES}/renew") for browser in browsers]
    answers = run_simultaneously(
        [
            partial(
                submit,
                browser,
                page,
                form_with(page, "current_password"),
                current_password=person.password,
            )
            for browser, page in zip(browsers, pages, strict=True)
        ]
    )
    # A copy of a cookie that was renewed meanwhile gets the response that it is signed out.
    assert {answer.status_code for answer in answers} <= {302, 409}


def shown_codes(gatebell: LiveGatebell, browser: requests.Session) -> list[str]:
    """Return the codes on the page after the renewal."""
    sheet = form_with(browser.get(f"{gatebell.url}{CODES}"), "code").filled()
    return [text for name, text in sheet if name == "code"]


def can_sign_in(gatebell: LiveGatebell, person: Person, code: str) -> bool:
    return give_code(*give_password(gatebell, person), code).status_code == 302


@pytest.mark.long
def test_only_one_concurrent_renewal_shows_valid_codes(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    browsers = []
    for code in give_recovery_codes(gatebell, charlie)[:4]:
        browser, page = give_password(gatebell, charlie)
        give_code(browser, page, code)
        browsers.append(browser)
    renew(gatebell, charlie, browsers)
    codes = [shown_codes(gatebell, browser)[0] for browser in browsers]
    assert sum(can_sign_in(gatebell, charlie, code) for code in codes) == 1


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_only_one_renewal_of_the_same_codes_shows_valid_codes(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    browsers = []
    for code in give_recovery_codes(gatebell, charlie)[:3]:
        browser, page = give_password(gatebell, charlie)
        give_code(browser, page, code)
        browsers.append(browser)
    with ThreadPoolExecutor(1) as pool, Session(gatebell.engine()) as other:
        # Until this session releases the codes, the requests run as far as they can without
        # waiting.
        other.execute(select(RecoveryCode).with_for_update())
        renewed = pool.submit(renew, gatebell, charlie, browsers)
        wait_until(lambda: waiting_statements(gatebell) == len(browsers), "all wait")
        other.rollback()
        renewed.result()
    codes = [shown_codes(gatebell, browser)[0] for browser in browsers]
    assert sum(can_sign_in(gatebell, charlie, code) for code in codes) == 1


def waiting_statements(gatebell: LiveGatebell) -> int:
    """Return the number of the service's statements that wait for a lock."""
    with database_of(gatebell) as session:
        return session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")) or 0


@pytest.mark.long
def test_only_one_copy_of_a_cookie_stays_signed_in_after_concurrent_renewals(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    first = give_recovery_codes(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    give_code(browser, page, first[0])
    copies = [with_cookie(gatebell, browser.cookies[COOKIE]) for _ in range(4)]
    renew(gatebell, charlie, copies)
    (left,) = [copy for copy in (browser, *copies) if is_signed_in(gatebell, copy)]
    assert can_sign_in(gatebell, charlie, shown_codes(gatebell, left)[0])
    assert not can_sign_in(gatebell, charlie, first[1])
