"""Tests that accepted alerts are stored although web processes die under load."""

import os
import signal

import pytest
import requests

from tests.conftest import KINDS
from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.processes import wait_until, web_processes
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell


@pytest.fixture(params=KINDS)
def live(request: pytest.FixtureRequest, start: Start) -> LiveGatebell:
    """Start a web server whose processes a test can kill."""
    if request.param == "sqlite":
        return start("sqlite", only="web")
    shared: LiveGatebell = request.getfixturevalue("on_postgres")
    return shared


@pytest.mark.spec("I1")
@pytest.mark.fault("a web process is killed, three times")
def test_a_killed_web_process_loses_no_accepted_alerts(live: LiveGatebell) -> None:
    endpoint = connect(live)
    with load_on(endpoint) as answers:
        for _ in range(3):
            answers.wait_for(20)
            os.kill(web_processes(live)[0], signal.SIGKILL)
            answers.fault_ends()
    assert answers.statuses <= {200, 503}
    wait_until(lambda: is_accepted(endpoint))
    assert_nothing_was_lost(live, endpoint, answers)


def is_accepted(endpoint: Endpoint) -> bool:
    try:
        return endpoint.send(title="after").status_code == 200
    except requests.ConnectionError:  # The connection had reached the process that was killed last.
        return False
