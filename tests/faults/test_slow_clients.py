"""Clients that take their time take nobody else's."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import sleep

import pytest

from tests.live import LiveGatebell
from tests.senders import Endpoint, connect
from tests.web.kept_connection import KeptConnection, asked
from web.unhurried_worker import LONGEST_GATHERED_BYTES, is_whole

THREADS = 2
#: Many more than there are threads.
CROWD = 20


@contextmanager
def _service(
    tmp_path_factory: pytest.TempPathFactory, **settings: str
) -> Iterator[tuple[LiveGatebell, Endpoint]]:
    live = LiveGatebell(
        instance_path=tmp_path_factory.mktemp("live"),
        database_url="",
        WEB_CONCURRENCY="1",
        WEB_THREADS=str(THREADS),
        **settings,
    )
    live.start()
    try:
        yield live, connect(live)
    finally:
        live.stop()


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LiveGatebell, Endpoint]]:
    with _service(tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LiveGatebell, Endpoint]]:
    worker = "--worker-class tests.faults.hasty_worker.HastyWorker"
    with _service(tmp_path_factory, GUNICORN_CMD_ARGS=worker) as running:
        yield running


def _webhook(endpoint: Endpoint, title: str) -> bytes:
    body = json.dumps({"title": title}).encode()
    return _head(endpoint, len(body)) + body


def _head(endpoint: Endpoint, length: int) -> bytes:
    lines = (
        f"Authorization: Bearer {endpoint.key}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    )
    return asked(endpoint.path, *lines, method="POST")


@pytest.mark.parametrize("missing", [1, 30, 200], ids=["a byte", "a body", "half a head"])
def test_requests_that_come_byte_by_byte_hold_up_nobody(
    service: tuple[LiveGatebell, Endpoint], missing: int
) -> None:
    live, endpoint = service
    with ExitStack() as opened:
        crowd = [opened.enter_context(KeptConnection(live.port)) for _ in range(CROWD)]
        webhooks = [_webhook(endpoint, f"slow {missing} {number}") for number in range(CROWD)]
        for client, webhook in zip(crowd, webhooks, strict=True):
            client.socket.sendall(webhook[: -missing - 1])
        quick = opened.enter_context(KeptConnection(live.port))
        for client, webhook in zip(crowd, webhooks, strict=True):
            client.socket.sendall(webhook[-missing - 1 : len(webhook) - missing])
            assert quick.get("/healthz").status == 200
        for client, webhook in zip(crowd, webhooks, strict=True):
            client.socket.sendall(webhook[-missing:])
        assert [client.answer().status for client in crowd] == [200] * CROWD


def test_clients_that_never_finish_are_told_so_and_left(
    hasty: tuple[LiveGatebell, Endpoint],
) -> None:
    live, endpoint = hasty
    webhook = _webhook(endpoint, "x")
    with KeptConnection(live.port) as client:
        client.socket.sendall(webhook[:9])
        for number in range(9, len(webhook)):
            sleep(0.05)
            client.socket.sendall(webhook[number : number + 1])
            if _has_answer(client):
                break
        assert client.answer().status == 408
        assert client.rest() == b""


def test_clients_that_stop_in_the_middle_are_told_so_and_left(
    hasty: tuple[LiveGatebell, Endpoint],
) -> None:
    live, endpoint = hasty
    with KeptConnection(live.port) as client:
        client.socket.sendall(_webhook(endpoint, "x")[:-1])
        assert client.answer().status == 408
        assert client.rest() == b""


def test_without_keep_alive_a_client_has_its_time_all_the_same(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        _service(tmp_path_factory, GUNICORN_CMD_ARGS="--keep-alive 0") as (live, endpoint),
        KeptConnection(live.port) as client,
    ):
        webhook = _webhook(endpoint, "x")
        sleep(1.5)
        client.socket.sendall(webhook[:9])
        sleep(1.5)
        client.socket.sendall(webhook[9:])
        assert client.answer().status == 200


def _has_answer(client: KeptConnection) -> bool:
    client.socket.setblocking(False)  # noqa: FBT003 - the socket's own way to say it
    try:
        return bool(client.socket.recv(1, 2))  # MSG_PEEK
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(30)


def test_a_long_body_that_stops_coming_holds_a_thread_for_a_moment(
    hasty: tuple[LiveGatebell, Endpoint],
) -> None:
    live, endpoint = hasty
    length = LONGEST_GATHERED_BYTES * 2
    with ExitStack() as opened:
        crowd = [opened.enter_context(KeptConnection(live.port)) for _ in range(2 * THREADS)]
        for client in crowd:
            client.socket.sendall(_head(endpoint, length) + b" " * (length - 1))
        quick = opened.enter_context(KeptConnection(live.port))
        assert quick.get("/healthz").status == 200
        assert {client.answer().status for client in crowd} == {400}


_HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"", False),
        (b"GET / HTTP/1.1\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
        (b"GET / HTTP/1.1\nHost: x\n\n", True),
        (_HEAD + b"Content-Length: 3\r\n\r\n", False),
        (_HEAD + b"Content-Length: 3\r\n\r\nab", False),
        (_HEAD + b"content-length:3\r\n\r\nabc", True),
        (_HEAD + b"CONTENT-LENGTH: \t3\r\n\r\nabcGET", True),
        (_HEAD + b"Content-Length: 0\r\n\r\n", True),
        (_HEAD + b"Content-Length: x\r\n\r\n", True),
        (_HEAD + b"X-Content-Length: 9\r\n\r\n", True),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", True),
        (_HEAD + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n", True),
        (_HEAD + b"Content-Length: 99999\r\n\r\n", False),
        (_HEAD + b"Content-Length: %d\r\n\r\n" % LONGEST_GATHERED_BYTES, True),
        (b"x" * LONGEST_GATHERED_BYTES, True),
    ],
)
def test_a_thread_serves_what_is_there_as_a_whole(said: bytes, *, expected: bool) -> None:
    assert is_whole(said) is expected
