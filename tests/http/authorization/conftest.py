"""Fixtures for Alice's browser and an application for devices."""

import pytest
import requests

from tests.support.accounts.people import ClientCredentials, alice, signed_in
from tests.support.oauth.device_wire import television
from tests.support.oauth.visits import Visit
from tests.support.service.live import LiveGatebell


@pytest.fixture
def browser(gatebell: LiveGatebell) -> requests.Session:
    """Alice's browser."""
    return signed_in(gatebell, alice(gatebell))


@pytest.fixture
def tv(gatebell: LiveGatebell) -> ClientCredentials:
    """An application for devices, without a secret."""
    return television(gatebell)


@pytest.fixture
def visit(gatebell: LiveGatebell, browser: requests.Session, client: ClientCredentials) -> Visit:
    """Alice's browser, with the application of the test file."""
    return Visit(gatebell=gatebell, browser=browser, client=client)
