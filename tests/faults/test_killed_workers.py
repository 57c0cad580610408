"""Web processes die under load: what was answered 200 is there."""

import os
import signal
import subprocess
from time import sleep

import pytest

from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.support.live import LiveGatebell
from tests.support.senders import connect


@pytest.mark.spec("I1")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_web_process_takes_nothing_with_it_that_was_answered(
    kind: str, request: pytest.FixtureRequest, start: Start
) -> None:
    url = request.getfixturevalue("new_postgres")() if kind == "postgres" else ""
    live = start(url)
    endpoint = connect(live)
    with load_on(endpoint) as answers:
        for _ in range(3):
            sleep(0.7)
            os.kill(web_processes(live)[0], signal.SIGKILL)
    assert answers.statuses <= {200, 503}
    while endpoint.send(title="after").status_code != 200:
        sleep(0.1)
    assert_nothing_was_lost(live, endpoint, answers)


def web_processes(live: LiveGatebell) -> list[int]:
    """Return the processes that answer, the oldest first."""
    server = next(pid for pid, words in children(live.pid) if "gunicorn" in words)
    return [pid for pid, _ in children(server)]


def children(parent: int) -> list[tuple[int, str]]:
    listed = ["ps", "--no-headers", "-o", "pid,args", "--ppid", str(parent)]
    # Its status is 1 where there are none.
    lines = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.splitlines()
    return sorted((int(line.split()[0]), line) for line in lines)
