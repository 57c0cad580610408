"""People and namespaces of a test's own, and a provider through which people sign in."""

from collections.abc import Iterator

import pytest

from tests.conftest import KINDS
from tests.support.accounts.people import Person, make_project, make_user
from tests.support.accounts.resource_tokens import Namespace, namespace_of
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.signing_in.openid_provider import FakeProvider, add_provider, running_provider


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    """Somebody who owns what a test is about."""
    return make_user(gatebell)


@pytest.fixture
def charlie(gatebell: LiveGatebell) -> Person:
    """Somebody with an account of which a test changes something."""
    return make_user(gatebell, name="charlie")


@pytest.fixture(scope="session", params=KINDS)
def mailing(new_service: NewService, request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service that queues e-mail, where everybody can sign up; the outbox is read."""
    nobody = {"MAIL_URL": "smtp://127.0.0.1:9", "SIGN_UP": "open"}
    with running(new_service(request.param, only="app", **nobody)) as service:
        yield service


@pytest.fixture(params=["projects", "groups"])
def namespace(request: pytest.FixtureRequest, gatebell: LiveGatebell, alice: Person) -> Namespace:
    """Alice's project, and its group."""
    return namespace_of(gatebell, request.param, make_project(gatebell, alice))


@pytest.fixture(scope="session")
def running_openid_provider() -> Iterator[FakeProvider]:
    """A provider that all tests share."""
    with running_provider() as made:
        yield made


@pytest.fixture
def provider(running_openid_provider: FakeProvider) -> FakeProvider:
    """A provider that behaves well, and where somebody signs in whom nobody here knows."""
    running_openid_provider.begin_anew()
    return running_openid_provider


@pytest.fixture
def slug(gatebell: LiveGatebell, provider: FakeProvider) -> str:
    """The provider, as a service knows it that makes accounts for who is new."""
    return add_provider(gatebell, provider.url, "--creates-accounts")
