"""Tests that alert intake continues while many right and wrong passwords are tried."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from time import sleep

import pytest

from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.passwords import exchange, sign_in_wrongly
from tests.faults.processes import wait_until
from tests.support.accounts.people import Person, alice
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

#: Settings that make a hash so slow that a request which waits for one would be late.
SLOW = {
    "PASSWORD_HASH_PASSES": "40",
    "SIGN_IN_ATTEMPTS_PER_ACCOUNT": "10000",
}

Ask = Callable[[LiveGatebell, Person], int]


@contextmanager
def storm(live: LiveGatebell, person: Person) -> Iterator[Counter[int]]:
    """Try passwords from several addresses for the duration of the block."""
    end, answered = Event(), Counter[int]()

    def go_on(ask: Ask) -> None:
        while not end.is_set():
            answered[ask(live, person)] += 1

    asking = (sign_in_wrongly, exchange) * 3
    with ThreadPoolExecutor(len(asking)) as several:
        running = [several.submit(go_on, ask) for ask in asking]
        try:
            yield answered
        finally:
            end.set()
    for each in running:
        each.result()


@pytest.mark.long
@pytest.mark.spec("I1")
@pytest.mark.fault("six other clients try passwords for at least {seconds} s")
@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        pytest.param("sqlite", 0, id="short"),
        pytest.param("sqlite", 30, marks=pytest.mark.faults_full),
        pytest.param("postgres", 30, marks=pytest.mark.faults_full),
    ],
)
def test_alerts_are_accepted_while_passwords_are_hashed(
    start: Start, kind: str, seconds: int
) -> None:
    live = start(kind, only="web", **SLOW)
    endpoint, person = connect(live), alice(live)
    with storm(live, person) as passwords, load_on(endpoint) as answers:
        wait_until(lambda: passwords[200] > 1 and passwords[422] > 1)
        answers.wait_for(20)
        sleep(seconds)
    sys.stdout.write(f"\npasswords answered {dict(passwords)}\n")
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert account.reset == 0
    # On a busy machine, a request can wait for its turn in vain, but fewer than one in ten do.
    assert set(account.answered) <= {200, 503}
    assert account.answered[503] * 10 < account.answered[200]
    assert set(passwords) <= {200, 422, 503}
    assert passwords[200]
    assert passwords[422]
