"""The worker is killed between an event and the note that it was delivered."""

import os
import signal
from datetime import timedelta
from threading import Event

import pytest

from domain.clock import system_clock
from tests.faults.conftest import Start
from tests.faults.processes import children, wait_until
from tests.support.accounts.people import unique
from tests.support.service.live import LiveGatebell
from tests.support.service.receiver import Received, Receiver, running_receiver
from web.jobs.audit_streams import AuditStreaming
from web.settings.reader import read_settings


@pytest.mark.spec("K1")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_all_events_arrive_once_and_in_order(start: Start, kind: str) -> None:
    live = start(kind, WEB_CONCURRENCY="1")
    came: list[Received] = []
    is_killed = Event()

    def answer(request: Received) -> tuple[int, dict[str, str]]:
        came.append(request)
        if len(came) == 1:
            is_killed.wait(60)
        return 204, {}

    with running_receiver(Receiver(answer=answer)) as receiver:
        live.cli("audit-streams", "create", "--url", receiver.url)
        names = [new_user(live) for _ in range(4)]
        wait_until(lambda: came)
        os.kill(worker_of(live.pid), signal.SIGKILL)
        is_killed.set()
        # What comes later waits behind what the killed worker had begun.
        names.append(new_user(live))

        settings = read_settings(live.environment)
        later = timedelta(minutes=1)
        with AuditStreaming(settings, clock=lambda: system_clock() + later) as worker:
            wait_until(lambda: worker.deliver_due() or len(ids(came)) == len(names))
            wait_until(lambda: len(ids(came)) == len(names))
    # The one that the killed worker sent comes again, and its id tells.
    once = {each.message_id: each for each in came}
    assert [each.subject for each in once.values()] == names
    assert [each.message_id for each in came].count(came[0].message_id) <= 2


def new_user(live: LiveGatebell) -> str:
    name = unique("carol")
    live.cli("users", "create", name, "--email", f"{name}@people.example")
    return name


def ids(requests: list[Received]) -> set[str]:
    return {each.message_id for each in requests}


def worker_of(supervisor: int) -> int:
    (found,) = (pid for pid, words in children(supervisor) if "web.jobs.worker" in words)
    return found
