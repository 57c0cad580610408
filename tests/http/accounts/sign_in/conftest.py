"""Fixtures for limits of guesses: a service with low limits, browsers at one or many addresses."""

from collections.abc import Iterator
from itertools import count, repeat

import pytest
import requests

from tests.support.service.live import LiveGatebell, NewService, running

_numbers = count(1)


@pytest.fixture(scope="session")
def few_guesses(new_service: NewService) -> Iterator[LiveGatebell]:
    """A service with low limits for guesses per account and per address, behind a proxy."""
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
    """Give each new browser the next of the IP addresses."""
    opened = live.http

    def http() -> requests.Session:
        browser = opened()
        browser.headers["X-Forwarded-For"] = next(addresses)
        return browser

    monkeypatch.setattr(live, "http", http)
    return live


@pytest.fixture
def many_ips(few_guesses: LiveGatebell, monkeypatch: pytest.MonkeyPatch) -> LiveGatebell:
    """The service with low limits, where each browser has its own address."""
    return _place(few_guesses, iter(_new_address, ""), monkeypatch)


@pytest.fixture
def shared_ip(few_guesses: LiveGatebell, monkeypatch: pytest.MonkeyPatch) -> LiveGatebell:
    """The service with low limits, where all browsers have the same address."""
    return _place(few_guesses, repeat(_new_address()), monkeypatch)
