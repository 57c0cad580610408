"""Tests that the web server uses a systemd socket, which stays open during a restart."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
import requests

from tests.faults.load import load_on
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell, NewService, running
from tests.support.service.ports import free_port

_PATIENCE_SECONDS = 60
RESTARTS = 2
#: Code that starts the server as systemd does: the first socket is file descriptor 3, and the
#: process that gets the number of sockets is the server itself.
_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py"])
"""


@contextmanager
def activated(listening: socket.socket, live: LiveGatebell) -> Iterator[subprocess.Popen[bytes]]:
    """Run the web server on a socket that is already open."""
    command = (sys.executable, "-c", _START, str(listening.fileno()))
    with (live.instance_path / "activated.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=live.environment,
            pass_fds=(listening.fileno(),),
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(_PATIENCE_SECONDS) == 0


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_no_request_fails_while_a_single_host_restarts(new_service: NewService) -> None:
    # Another service has created the database, and this one creates the integration.
    with running(new_service("sqlite")) as live:
        direct = connect(live)
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as listening:
        url = f"http://127.0.0.1:{port}"
        endpoint = replace(direct, url=f"{url}{direct.path}", service=url)
        with ExitStack() as servers:
            servers.enter_context(activated(listening, live))
            # The server has not loaded yet, so the connection waits.
            assert requests.get(f"{url}/healthz", timeout=_PATIENCE_SECONDS).status_code == 200
            with load_on(endpoint, kept=False) as answers:
                for _ in range(RESTARTS):
                    answers.wait_for(20)
                    servers.close()
                    servers.enter_context(activated(listening, live))
                answers.wait_for(20)
        assert set(answers.answered) == {200}
        assert (answers.reset, answers.unheard) == (0, 0)
