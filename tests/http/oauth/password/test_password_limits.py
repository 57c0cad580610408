"""The password grant on a service with few guesses, and where passwords alone do not count."""

from collections.abc import Iterator

import pytest
import requests
from sqlalchemy import delete

from models import AttemptCount
from tests.conftest import KINDS
from tests.support.accounts.administration import root
from tests.support.accounts.people import (
    database_of,
    make_application,
    make_user,
    signed_in,
    try_to_sign_in,
)
from tests.support.oauth.oauth_wire import assert_refused, exchange, offered_grants
from tests.support.service.live import LiveGatebell
from tests.support.service.live_settings import changed_settings

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture(scope="module", params=KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LiveGatebell]:
    """A service with few guesses."""
    live: LiveGatebell = request.getfixturevalue(f"live_{request.param}")
    with changed_settings(live, sign_in_attempts_per_account="3", sign_in_attempts_per_address="7"):
        yield live
        fresh_counts(live)


def fresh_counts(gatebell: LiveGatebell) -> None:
    with database_of(gatebell) as session:
        session.execute(delete(AttemptCount))


def assert_must_wait(answer: requests.Response) -> None:
    assert_refused(answer, "temporarily_unavailable", 429)
    assert 0 < int(answer.headers["Retry-After"]) <= 600


@pytest.mark.both_databases
@pytest.mark.rfc("rfc6749-4.3.2-c")
def test_guessing_is_limited_for_each_account_together_with_sign_ins(own: LiveGatebell) -> None:
    fresh_counts(own)
    charlie = make_user(own, name="charlie")
    assert try_to_sign_in(own, charlie.username, "wrong").status_code == 422
    for _ in range(2):
        assert_refused(exchange(own, charlie, password="wrong"), "invalid_grant")
    assert_must_wait(exchange(own, charlie))
    assert try_to_sign_in(own, charlie.username, charlie.password).status_code == 429
    assert exchange(own, make_user(own, name="dora")).status_code == 200


def test_the_right_password_clears_the_count(own: LiveGatebell) -> None:
    fresh_counts(own)
    charlie = make_user(own, name="charlie")
    for _ in range(2):
        for _ in range(2):
            assert_refused(exchange(own, charlie, password="wrong"), "invalid_grant")
        assert exchange(own, charlie).status_code == 200


@pytest.mark.rfc("rfc6749-4.3.2-c")
def test_guessing_is_limited_for_each_address(own: LiveGatebell) -> None:
    fresh_counts(own)
    people = [make_user(own, name="charlie") for _ in range(8)]
    for person in people[:7]:
        assert_refused(exchange(own, person, password="wrong"), "invalid_grant")
    assert_must_wait(exchange(own, people[7]))


@pytest.mark.spec("B9")
@pytest.mark.rfc("rfc6749-5.2-d", "rfc6749-10.7-a", "rfc9700-2.4-a")
def test_without_passwords_for_git_there_is_no_password_grant(own: LiveGatebell) -> None:
    fresh_counts(own)
    person = make_user(own)
    with changed_settings(own, password_authentication_enabled_for_git="off"):
        assert_refused(exchange(own, person), "unsupported_grant_type")
        assert "password" not in offered_grants(own)
    assert exchange(own, person).status_code == 200
    assert "password" in offered_grants(own)


def test_whoever_sets_it_is_told_that_passwords_for_git_change_nothing_for_git(
    own: LiveGatebell,
) -> None:
    said = "changes nothing for Git, which takes access tokens"
    page = signed_in(own, root(own)).get(f"{own.url}/admin/settings").text
    description = requests.get(f"{own.url}/api/openapi.json", timeout=60).text
    assert said in page
    assert said in description


@pytest.mark.rfc("rfc6749-10.7-a")
def test_the_instance_can_insist_on_a_client(own: LiveGatebell) -> None:
    fresh_counts(own)
    person = make_user(own)
    client = make_application(own, person)
    with changed_settings(own, password_grant_without_client="off"):
        assert_refused(exchange(own, person), "invalid_client", 401)
        assert exchange(own, person, auth=(client.client_id, client.secret)).status_code == 200
    assert exchange(own, person).status_code == 200
