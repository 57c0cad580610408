"""Tests that web processes store call counts regularly and at shutdown without delays."""

from http import HTTPStatus
from time import monotonic, sleep

import pytest
import requests
from sqlalchemy import func, select, text

from models import CallCount
from tests.support.accounts.people import database_of, make_user
from tests.support.accounts.personal_tokens import MadeToken, make_token
from tests.support.service.live import LiveGatebell, NewService, running

#: Number of seconds, far more than an interval, since a busy machine can be slow.
PATIENCE = 60


def ask(gatebell: LiveGatebell, token: MadeToken) -> None:
    headers = {"PRIVATE-TOKEN": token.clear}
    answer = requests.get(f"{gatebell.url}/api/v4/user", headers=headers, timeout=30)
    assert answer.status_code == HTTPStatus.OK


def stored(gatebell: LiveGatebell, token: MadeToken) -> int:
    """Return the number of stored calls of a token."""
    with database_of(gatebell) as session:
        return int(
            session.scalar(
                select(func.coalesce(func.sum(CallCount.count), 0)).where(
                    CallCount.personal_token_id == token.id
                )
            )
            or 0
        )


def wait_for(gatebell: LiveGatebell, token: MadeToken, calls: int) -> None:
    end = monotonic() + PATIENCE
    while stored(gatebell, token) != calls:
        assert monotonic() < end, stored(gatebell, token)
        sleep(0.1)


@pytest.mark.long
def test_a_locked_database_delays_no_request_and_loses_no_count(new_service: NewService) -> None:
    patience = {"SQLITE_BUSY_TIMEOUT_MS": "500", "WEB_CONCURRENCY": "1"}
    service = new_service("sqlite", only="web", CALL_FLUSH_SECONDS="1", **patience)
    with running(service) as gatebell:
        token = make_token(gatebell, make_user(gatebell))
        ask(gatebell, token)
        wait_for(gatebell, token, 1)
        with gatebell.engine().connect() as lock:
            lock.execute(text("SELECT 1"))  # The transaction holds the write lock.
            end = monotonic() + PATIENCE
            calls = 1
            while '"api_usage.not_stored"' not in gatebell.log_text():
                ask(gatebell, token)
                calls += 1
                assert monotonic() < end
        wait_for(gatebell, token, calls)


@pytest.mark.long
def test_the_last_counts_are_stored_when_the_server_stops(new_service: NewService) -> None:
    service = new_service("postgres", only="web", CALL_FLUSH_SECONDS="300")
    service.start()
    token = make_token(service, make_user(service))
    for _ in range(3):
        ask(service, token)
    assert stored(service, token) == 0
    assert service.stop() == 0

    assert stored(service, token) == 3
    service.engine().dispose()
