"""Tests of `Idempotency-Key`: a repeated POST request is executed once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
import requests
from sqlalchemy import update

from domain.access.roles import Role
from models import IdempotentRequest
from tests.support.accounts.people import alice, database_of, now, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.both_databases

PARALLEL = 8


def add(
    gatebell: LiveGatebell, endpoint: Endpoint, token: str, key: str, **body: Any
) -> requests.Response:
    """Create an environment."""
    return requests.post(
        f"{gatebell.url}/api/v4/projects/{endpoint.project}/environments",
        headers={"PRIVATE-TOKEN": token, "Idempotency-Key": key},
        json=body,
        timeout=30,
    )


def environments(gatebell: LiveGatebell, endpoint: Endpoint, token: str) -> list[str]:
    url = f"{gatebell.url}/api/v4/projects/{endpoint.project}/environments"
    found = requests.get(url, headers={"PRIVATE-TOKEN": token}, timeout=30)
    return [each["name"] for each in found.json()]


def test_a_repeated_request_gets_the_same_response_and_is_executed_once(
    gatebell: LiveGatebell,
) -> None:
    endpoint, key = connect(gatebell), unique("key")
    token = make_token(gatebell, alice(gatebell)).clear
    first, again = (add(gatebell, endpoint, token, key, name="production") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert environments(gatebell, endpoint, token) == ["production"]


def test_a_key_belongs_to_one_request_and_one_caller(gatebell: LiveGatebell) -> None:
    endpoint, key = connect(gatebell), unique("key")
    token = make_token(gatebell, alice(gatebell)).clear
    maintainer = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, maintainer, Role.MAINTAINER)
    other = make_token(gatebell, maintainer).clear
    assert add(gatebell, endpoint, token, key, name="one").status_code == 201
    refused = add(gatebell, endpoint, token, key, name="two")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == "Idempotency-Key"
    assert add(gatebell, endpoint, other, key, name="two").status_code == 201
    assert environments(gatebell, endpoint, token) == ["one", "two"]


def test_a_failed_request_can_be_repeated_with_its_key(gatebell: LiveGatebell) -> None:
    endpoint, key = connect(gatebell), unique("key")
    token = make_token(gatebell, alice(gatebell)).clear
    made = add(gatebell, endpoint, token, unique("key"), name="staging").json()
    assert add(gatebell, endpoint, token, key, name="staging").status_code in {400, 409}
    url = f"{gatebell.url}/api/v4/projects/{endpoint.project}/environments/{made['id']}"
    assert (
        requests.delete(url, headers={"PRIVATE-TOKEN": token}, timeout=30).status_code
        == requests.codes.no_content
    )
    assert add(gatebell, endpoint, token, key, name="staging").status_code == 201


def test_only_one_of_parallel_requests_is_executed(gatebell: LiveGatebell) -> None:
    endpoint, key, barrier = connect(gatebell), unique("key"), Barrier(PARALLEL)
    token = make_token(gatebell, alice(gatebell)).clear

    def send(_: int) -> requests.Response:
        barrier.wait(timeout=60)
        return add(gatebell, endpoint, token, key, name="production")

    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(send, range(PARALLEL)))
    done = [each for each in answers if each.status_code == 201]
    assert {each.status_code for each in answers} <= {201, 409}
    assert len([each for each in done if "Idempotency-Replayed" not in each.headers]) == 1
    assert len({each.json()["id"] for each in done}) == 1
    assert environments(gatebell, endpoint, token) == ["production"]


def test_a_key_can_be_reused_after_a_day(gatebell: LiveGatebell) -> None:
    endpoint, key = connect(gatebell), unique("key")
    owner = alice(gatebell)
    token = make_token(gatebell, owner)
    assert add(gatebell, endpoint, token.clear, key, name="one").status_code == 201
    with database_of(gatebell) as session:
        theirs = IdempotentRequest.user_id == token.user_id
        long_ago = now() - timedelta(days=2)
        session.execute(update(IdempotentRequest).where(theirs).values(claimed_at=long_ago))
        session.commit()
    assert add(gatebell, endpoint, token.clear, key, name="two").status_code == 201
    assert environments(gatebell, endpoint, token.clear) == ["one", "two"]


@pytest.mark.one_database("sqlite")
def test_an_invalid_key_is_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    token = make_token(gatebell, alice(gatebell)).clear
    for key in ("x" * 256, "two words", "caf\xe9"):
        answer = add(gatebell, endpoint, token, key, name="one")
        assert answer.status_code == 400, key
        assert "Idempotency-Key" in answer.json()["error"]
    assert environments(gatebell, endpoint, token) == []
