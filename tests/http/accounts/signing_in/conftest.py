"""A service with few guesses, and where the browsers stand that guess there."""

from collections.abc import Iterator
from itertools import count, repeat

import pytest
import requests

from tests.support.service.live import LiveGatebell, NewService, running

_numbers = count(1)


@pytest.fixture(scope="session")
def few_guesses(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service with few guesses for each account and each address, behind a proxy."""
    few = {
        "SIGN_IN_ATTEMPTS_PER_ACCOUNT": "3",
        "SECOND_FACTOR_ATTEMPTS_PER_ACCOUNT": "3",
        "SIGN_IN_ATTEMPTS_PER_ADDRESS": "5",
    }
    with running(new_service("postgres", only="app", TRUSTED_PROXIES="1", **few)) as live:
        yield live


def _new_address() -> str:
    number = next(_numbers)
    return f"198.18.{number // 250}.{number % 250 + 1}"


def _place(
    live: LiveGatebell, addresses: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> LiveGatebell:
    """Let each browser that is opened stand at the next of these addresses."""
    opened = live.http

    def http() -> requests.Session:
        browser = opened()
        browser.headers["X-Forwarded-For"] = next(addresses)
        return browser

    monkeypatch.setattr(live, "http", http)
    return live


@pytest.fixture
def all_over(few_guesses: LiveGatebell, monkeypatch: pytest.MonkeyPatch) -> LiveGatebell:
    """The service with few guesses, to browsers that stand at an address each."""
    return _place(few_guesses, iter(_new_address, ""), monkeypatch)


@pytest.fixture
def one_house(few_guesses: LiveGatebell, monkeypatch: pytest.MonkeyPatch) -> LiveGatebell:
    """The service with few guesses, to browsers that stand at one address."""
    return _place(few_guesses, repeat(_new_address()), monkeypatch)
