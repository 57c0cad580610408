"""Alerts are answered while no background worker runs, and the worker finishes the work later."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.conftest import KINDS
from tests.faults.processes import running_worker, wait_until
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell, NewService, running

pytestmark = pytest.mark.long


@pytest.fixture(params=KINDS)
def service(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """A service without a worker."""
    with running(new_service(request.param, only="web")) as live:
        yield live


def test_alerts_answered_before_the_worker_runs_are_processed_later(service: LiveGatebell) -> None:
    endpoint = connect(service)
    policy = ("--name", "Night", "--default", "--step", f"0s user:{alice(service).username}")
    given = (*policy, "--acknowledgement-timeout", "30m")
    service.cli("escalations", "create", endpoint.project, *given)
    acknowledged, snoozed, escalated = ("1", "2", "3")
    for title in ("Disk", "Load", "Swap"):
        endpoint.accepted(title=title)
    at = f"/projects/{endpoint.project.replace('/', '%2F')}/alert_management_alerts/"
    call = api_caller(service, alice(service), at)
    call.done("PUT", acknowledged, json={"status": "acknowledged"})
    service.cli("alerts", "snooze", endpoint.project, snoozed, "--for", "1h")
    call.done("POST", f"{escalated}/escalate")
    assert call.done("GET", f"{acknowledged}/paging")["state"] == "unprocessed"

    def states() -> dict[str, str | None]:
        return {
            each: call.done("GET", f"{each}/paging")["state"]
            for each in (acknowledged, snoozed, escalated)
        }

    def is_running(alert: str) -> bool:
        return bool(call.done("GET", f"{alert}/paging")["state"] == "running")

    with running_worker(service):
        expected = {acknowledged: "acknowledged", snoozed: "snoozed", escalated: "running"}
        wait_until(lambda: states() == expected)
        # They can be escalated, no matter which change was processed first.
        for each in (acknowledged, snoozed):
            assert call.done("POST", f"{each}/escalate")["escalation_policy"] == "Night"
            wait_until(partial(is_running, each))
