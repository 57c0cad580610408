"""People and namespaces of a test's own."""

import pytest

from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.resource_tokens import Namespace, namespace_of
from tests.support.service.live import LiveGatebell


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    """Somebody who owns what a test is about."""
    return make_user(gatebell)


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Person:
    """Somebody with an account of which a test changes something."""
    return make_user(gatebell, name="charlie")


@pytest.fixture(params=["projects", "groups"])
def namespace(request: pytest.FixtureRequest, gatebell: LiveGatebell, alice: Person) -> Namespace:
    """Alice's project, and its group."""
    return namespace_of(gatebell, request.param, make_project(gatebell, alice))
