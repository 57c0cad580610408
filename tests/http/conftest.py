"""Fixtures for tests over HTTP: users, namespaces and a fake identity provider."""

from collections.abc import Iterator

import pytest

from tests.conftest import KINDS
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.resource_tokens import Namespace, get_namespace
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.sign_in.openid_provider import FakeProvider, add_provider, running_provider


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    """A user who owns the objects of a test."""
    return make_user(gatebell)


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Person:
    """A user whose account a test changes."""
    return make_user(gatebell, name="charlie")


@pytest.fixture(scope="session", params=KINDS)
def mailing(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service that queues email, with open sign-up; the tests read its outbox."""
    nobody = {"MAIL_URL": "smtp://127.0.0.1:9", "SIGN_UP": "open"}
    with running(new_service(request.param, only="app", **nobody)) as service:
        yield service


@pytest.fixture(params=["projects", "groups"])
def namespace(request: pytest.FixtureRequest, gatebell: LiveGatebell, alice: Person) -> Namespace:
    """Alice's project and Alice's group, one at a time."""
    return get_namespace(gatebell, request.param, make_project(gatebell, alice))


@pytest.fixture(scope="session")
def running_openid_provider() -> Iterator[FakeProvider]:
    """An identity provider that all tests share."""
    with running_provider() as made:
        yield made


@pytest.fixture
def provider(running_openid_provider: FakeProvider) -> FakeProvider:
    """A provider that follows the protocol, with a user who has no account here."""
    running_openid_provider.reset_mistakes()
    return running_openid_provider


@pytest.fixture
def slug(gatebell: LiveGatebell, provider: FakeProvider) -> str:
    """The slug of the provider in a service that creates accounts for new users."""
    return add_provider(gatebell, provider.url, "--creates-accounts")
