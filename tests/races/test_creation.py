"""Tests of concurrent creations with equal names: one succeeds, and the others get an error."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
import requests

from tests.support.accounts.administration import find_user_id, get_administrator_browser
from tests.support.accounts.people import Person, alice, make_project, make_user, signed_in, unique
from tests.support.service.crowd import run_simultaneously
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, form_with, submit

PARALLEL = 8
ROUNDS = 2


def assert_one_winner(actions: list[Callable[[], requests.Response]]) -> None:
    answers = run_simultaneously(actions)
    assert Counter(answer.status_code for answer in answers) == {302: 1, 422: len(actions) - 1}
    for answer in answers:
        if answer.status_code == 422:
            assert "already exists" in answer.text or "Another user has" in answer.text


def test_only_one_concurrent_request_creates_a_group(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    page = browser.get(f"{gatebell.url}/groups/new")
    for _ in range(ROUNDS):
        send = partial(submit, browser, page, form_with(page, "path"), path=unique("crew"))
        assert_one_winner([send] * PARALLEL)


@pytest.mark.long
def test_only_one_concurrent_request_creates_a_project(gatebell: LiveGatebell) -> None:
    browser = signed_in(gatebell, alice(gatebell))
    group = make_project(gatebell, alice(gatebell)).partition("/")[0]
    page = browser.get(f"{gatebell.url}/projects/new")
    for _ in range(ROUNDS):
        values = {"group": group, "name": unique("shop")}
        send = partial(submit, browser, page, form_with(page, "name"), **values)
        assert_one_winner([send] * PARALLEL)


@pytest.mark.long
def test_only_one_concurrent_request_creates_a_user(gatebell: LiveGatebell) -> None:
    browser = get_administrator_browser(gatebell)
    page = browser.get(f"{gatebell.url}/admin/users/new")
    for _ in range(ROUNDS):
        name = unique("new")
        values = {"username": name, "email": f"{name}@people.example"}
        send = partial(submit, browser, page, form_with(page, "username"), **values)
        assert_one_winner([send] * PARALLEL)


def prepare_confirmation(
    gatebell: LiveGatebell, person: Person, email: str
) -> Callable[[], requests.Response]:
    """Request an address as a user, and return a function that confirms it as an administrator."""
    browser = signed_in(gatebell, person)
    page = browser.get(f"{gatebell.url}/-/user_settings/profile")
    values = {"email": email, "current_password": person.password}
    assert submit(browser, page, form_with(page, "email"), **values).status_code == 302
    desk = get_administrator_browser(gatebell)
    account = desk.get(f"{gatebell.url}/admin/users/{find_user_id(gatebell, person)}")
    return partial(submit, desk, account, form_to(account, "/confirm_address"))


@pytest.mark.long
def test_only_one_concurrent_request_gets_an_email_address(gatebell: LiveGatebell) -> None:
    people = [make_user(gatebell, name="wisher") for _ in range(PARALLEL)]
    for _ in range(ROUNDS):
        email = f"{unique('wanted')}@people.example"
        answers = run_simultaneously(
            [prepare_confirmation(gatebell, person, email) for person in people]
        )
        assert Counter(each.status_code for each in answers) == {302: 1, 409: PARALLEL - 1}
