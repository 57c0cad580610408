"""Tests of response shapes that the service's own views do not use, and of graceful shutdown."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.support.service.plain_app import LONG
from tests.support.service.plain_server import PlainServer, running_plain_server
from tests.support.wire.kept_connection import KeptConnection, build_request_head


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainServer]:
    with running_plain_server(tmp_path_factory.mktemp("plain")) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[PlainServer]:
    """Run a server that the test can stop."""
    with running_plain_server(tmp_path) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("path", ["/long", "/file"])
def test_a_long_response_arrives_complete(plain: PlainServer, path: str) -> None:
    with KeptConnection(plain.port) as connection:
        connection.socket.sendall(
            build_request_head(path, method="HEAD")
            + build_request_head(path) * 2
            + build_request_head("/short")
        )
        assert connection.answer(to="HEAD").headers["content-length"] == str(len(LONG))
        assert [connection.answer().body for _ in range(3)] == [LONG, LONG, b"short"]


def test_an_answer_without_a_body_is_sent(plain: PlainServer) -> None:
    with KeptConnection(plain.port) as connection:
        assert [connection.get("/nothing").status for _ in range(2)] == [204, 204]
        assert connection.get("/short").body == b"short"


def test_a_response_that_fails_midway_is_cut_without_a_last_chunk(plain: PlainServer) -> None:
    with KeptConnection(plain.port) as connection:
        connection.socket.sendall(
            build_request_head("/breaks-later") + build_request_head("/short")
        )
        head, _, body = connection.rest().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body == b"6\r\nso far\r\n"


def test_a_partly_received_request_is_answered_during_shutdown(own: PlainServer) -> None:
    with KeptConnection(own.port) as slow, KeptConnection(own.port) as busy:
        assert {slow.get("/short").status, busy.get("/short").status} == {200}
        slow.socket.sendall(build_request_head("/short")[:-2])
        own.process.terminate()
        while (last := busy.get("/short")).headers["connection"] == "keep-alive":
            assert last.body == b"short"
        assert busy.rest() == b""
        slow.socket.sendall(b"\r\n")
        answer = slow.answer()
        assert (answer.headers["connection"], answer.body) == ("close", b"short")
        assert slow.rest() == b""
    assert own.process.wait(30) == 0


@pytest.mark.long
def test_a_busy_client_does_not_keep_a_web_process_alive_after_its_server_died(
    tmp_path: Path,
) -> None:
    with (
        running_plain_server(tmp_path, GRACEFUL_TIMEOUT_SECONDS="1") as own,
        ThreadPoolExecutor(1) as clients,
        KeptConnection(own.port) as busy,
    ):
        assert busy.get("/short").body == b"short"
        clients.submit(_ask_for_ever, busy)
        own.process.kill()
        with suppress(ConnectionError):
            assert any(not busy.socket.recv(65_536) for _ in range(99_999))


def _ask_for_ever(connection: KeptConnection) -> None:
    with suppress(OSError):
        while True:
            connection.socket.sendall(build_request_head("/short") * 99)


@pytest.mark.long
def test_connections_without_a_request_do_not_block_others(plain: PlainServer) -> None:
    with ExitStack() as opened:
        *_, last = [opened.enter_context(KeptConnection(plain.port)) for _ in range(40)]
        assert last.get("/short").body == b"short"


@pytest.mark.long
def test_connections_that_are_closing_do_not_block_others(plain: PlainServer) -> None:
    with ExitStack() as opened:
        first, *others = [opened.enter_context(KeptConnection(plain.port)) for _ in range(40)]
        assert {each.get("/short").status for each in (first, *others)} == {200}
        for each in others:
            each.socket.sendall(build_request_head("/short", "Connection: close"))
        assert {each.answer().status for each in others} == {200}
        # The server closes these connections; the clients do not.
        assert first.get("/short").body == b"short"
