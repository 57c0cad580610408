"""Tests that no request fails while hosts behind the proxies of deploy/ restart in turn."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest
import requests

from tests.faults.balancer import is_ready
from tests.faults.load import Answers, load_on
from tests.faults.test_rolling_changes import OLD, two_hosts
from tests.support.alerts.senders import connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell
from tests.support.service.ports import free_port
from tests.support.service.proxies import find, running_proxy

ROLLS = 2
#: SHUTDOWN_DELAY_SECONDS as in the files. Caddy also has to notice that a host has returned.
DELAYS = {"nginx": 0, "caddy": 5}
_READY_SECONDS = 60


def restart(host: LiveGatebell) -> None:
    """Restart a host and wait until it is ready, as docs/deployment.md describes."""
    assert host.stop() == 0, host.log_text()
    host.start()
    deadline = monotonic() + _READY_SECONDS
    while not is_ready(host):
        assert monotonic() < deadline, host.log_text()
        sleep(0.05)


def assert_nothing_failed(answers: Answers) -> None:
    assert set(answers.answered) == {200}, [each.text for each in answers.refused]
    assert (answers.reset, answers.unheard) == (0, 0)
    assert set(answers.visits) == {200}


@pytest.mark.long
@pytest.mark.one_database("postgres")
@pytest.mark.parametrize("name", DELAYS)
def test_no_request_fails_while_hosts_are_restarted_one_after_another(
    name: str, new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    if find(name) is None:
        pytest.skip("scripts/ensure-proxies brings it")
    port = free_port()
    settings = {"SECRET_KEY": OLD, "SHUTDOWN_DELAY_SECONDS": str(DELAYS[name])}
    url = f"http://127.0.0.1:{port}"
    with (
        two_hosts(new_postgres(), tmp_path, keys=settings) as balancer,
        running_proxy(
            name,
            folder=tmp_path,
            certificate=None,
            port=port,
            service_ports=[each.port for each in balancer.hosts],
        ),
    ):
        direct = connect(balancer.hosts[0])
        endpoint = replace(direct, url=f"{url}{direct.path}", service=url)
        requests.get(f"{url}/healthz", timeout=10).raise_for_status()
        with load_on(endpoint) as answers:
            answers.wait_for(20)
            for host in balancer.hosts * ROLLS:
                restart(host)
                sleep(DELAYS[name])
            answers.wait_for(20)
        assert_nothing_failed(answers)
        stored = {alert.title for alert in list_stored_alerts(balancer.hosts[0], endpoint.project)}
    assert answers.accepted.keys() <= stored
