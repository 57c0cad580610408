"""Tests that audit events arrive although the worker is killed before it records a delivery."""

from datetime import timedelta
from threading import Event

import pytest

from domain.core.clock import read_system_clock
from tests.conftest import KINDS
from tests.faults.processes import running_worker, wait_until
from tests.support.accounts.people import unique
from tests.support.service.live import SECRET_KEY, LiveGatebell, NewService
from tests.support.service.message_receiver import Received, Receiver, running_receiver
from web.jobs.destinations import AuditStreamJob
from web.settings.environment import parse_settings


@pytest.mark.long
@pytest.mark.spec("K1")
@pytest.mark.parametrize("kind", KINDS)
def test_all_events_arrive_in_order_after_a_killed_worker(
    new_service: NewService, kind: str
) -> None:
    service = new_service(kind, SECRET_KEY=SECRET_KEY)
    came: list[Received] = []
    is_killed = Event()

    def answer(request: Received) -> tuple[int, dict[str, str]]:
        came.append(request)
        if len(came) == 1:
            is_killed.wait(60)
        return 204, {}

    with running_receiver(Receiver(answer=answer)) as receiver:
        service.cli("audit-streams", "create", "--url", receiver.url)
        names = [new_user(service) for _ in range(3)]
        with running_worker(service) as worker:
            wait_until(lambda: came)
            worker.kill()
        is_killed.set()
        names.append(new_user(service))

        later = timedelta(minutes=1)  # The claim of the killed worker has ended.
        with AuditStreamJob(
            parse_settings(service.environment), clock=lambda: read_system_clock() + later
        ) as next_worker:
            assert next_worker.process_all_due_work() == 1
            assert next_worker.process_all_due_work() == 0
    # The killed worker's delivery is repeated with the same id.
    assert came[0].message_id == came[1].message_id
    assert [each.subject for each in came[1:]] == names


def new_user(service: LiveGatebell) -> str:
    """Create an account, which causes an event."""
    name = unique("carol")
    service.cli("users", "create", name, "--email", f"{name}@people.example")
    return name
