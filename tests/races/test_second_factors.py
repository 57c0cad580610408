"""Many at once with one code, or with one passed first step: one is let in."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import requests

from tests.http.account.test_sessions import COOKIE, with_cookie
from tests.races.test_devices import together
from tests.support.accounts.people import Person, make_user
from tests.support.service.live import LiveGatebell
from tests.support.signing_in.second_factors import (
    code_of,
    give_app,
    give_code,
    give_password,
    give_recovery_codes,
)
from tests.support.wire.html_forms import form_with, submit

#: Fewer than the guesses that an account has.
PARALLEL = 8


def outcomes(answers: list[requests.Response]) -> Counter[str]:
    """Count who got in, who was refused, and who has to begin again."""
    words = {422: "refused"}
    return Counter(
        words.get(answer.status_code) or f"{answer.status_code} {answer.headers['Location']}"
        for answer in answers
    )


def all_send(
    gatebell: LiveGatebell, person: Person, new_code: Callable[[], str]
) -> list[requests.Response]:
    """Let as many browsers, all of which know the password, send one code at once."""
    waiting = [give_password(gatebell, person) for _ in range(PARALLEL)]
    code = new_code()  # of this half minute, however long the first steps took
    return together([partial(give_code, browser, page, code) for browser, page in waiting])


def test_of_many_with_one_code_of_an_app_one_is_let_in(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    answers = all_send(gatebell, charlie, partial(code_of, give_app(gatebell, charlie)))
    assert outcomes(answers) == {"302 /": 1, "refused": PARALLEL - 1}


def test_of_many_with_one_recovery_code_one_is_let_in(gatebell: LiveGatebell) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    codes = iter(give_recovery_codes(gatebell, charlie))
    answers = all_send(gatebell, charlie, partial(next, codes))
    assert outcomes(answers) == {"302 /": 1, "refused": PARALLEL - 1}


def test_one_passed_first_step_is_good_for_one_sign_in_even_with_many_good_codes(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    codes = give_recovery_codes(gatebell, charlie)[:PARALLEL]
    browser, page = give_password(gatebell, charlie)
    copies = [with_cookie(gatebell, browser.cookies[COOKIE]) for _ in codes]
    answers = together(
        [partial(give_code, copy, page, code) for copy, code in zip(copies, codes, strict=True)]
    )
    assert outcomes(answers) == {"302 /": 1, "302 /users/sign_in": PARALLEL - 1}


def test_of_many_guesses_at_once_no_more_are_looked_at_than_there_may_be(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    waiting = [give_password(gatebell, charlie) for _ in range(13)]
    guesses: list[Callable[[], requests.Response]] = [
        partial(submit, browser, page, form_with(page, "code"), code="000000")
        for browser, page in waiting
    ]
    statuses = Counter(answer.status_code for answer in together(guesses))
    assert statuses == {422: 10, 429: 3}


def test_of_many_who_renew_their_codes_at_once_one_is_told_those_that_work(
    gatebell: LiveGatebell,
) -> None:
    charlie = make_user(gatebell, name="charlie")
    give_app(gatebell, charlie)
    first = give_recovery_codes(gatebell, charlie)
    browser, page = give_password(gatebell, charlie)
    give_code(browser, page, first[0])
    address = f"{gatebell.url}/-/user_settings/security/recovery_codes/renew"
    renewing = browser.get(address)
    form = form_with(renewing, "current_password")
    copies = [with_cookie(gatebell, browser.cookies[COOKIE]) for _ in range(4)]
    answers = together(
        [
            partial(submit, copy, renewing, form, current_password=charlie.password)
            for copy in copies
        ]
    )
    assert {answer.status_code for answer in answers} == {302}
    sheets = [
        set(form_with(copy.get(address.removesuffix("/renew")), "code").filled()) for copy in copies
    ]
    codes = [[text for name, text in sheet if name == "code"] for sheet in sheets]
    let_in = [
        give_code(*give_password(gatebell, charlie), each[0]).status_code == 302 for each in codes
    ]
    assert sum(let_in) == 1
