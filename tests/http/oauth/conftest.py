"""Applications that need not ask."""

import pytest

from tests.support.accounts.people import ClientCredentials
from tests.support.oauth.oauth_wire import phone_application, server_application
from tests.support.service.live import LiveGatebell


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application that keeps a secret."""
    return server_application(gatebell)


@pytest.fixture
def phone(gatebell: LiveGatebell) -> ClientCredentials:
    """An application that cannot keep a secret."""
    return phone_application(gatebell)
