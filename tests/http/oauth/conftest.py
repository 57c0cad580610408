"""Fixtures for applications that need no consent."""

import pytest

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import phone_application, server_application
from tests.support.service.live import LiveGatebell


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """A trusted application with a secret."""
    return server_application(gatebell)


@pytest.fixture
def phone(gatebell: LiveGatebell) -> ClientCredentials:
    """A trusted public application."""
    return phone_application(gatebell)
