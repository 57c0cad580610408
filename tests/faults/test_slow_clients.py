"""Tests that slow clients do not delay others."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest
import requests

from tests.faults.bystander import bystander
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.faults.slow_clients import (
    KINDS,
    half_a_handshake,
    head,
    silent,
    trickled_length,
    trickling,
    webhook_of,
)
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.certificates import make_certificate
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.plain_server import running_plain_server
from tests.support.wire.kept_connection import KeptConnection

CROWD = 20
#: Maximum number of seconds that a client waits for others on a busy machine.
SOON = 10.0

Service = tuple[LiveGatebell, Endpoint]


@contextmanager
def _service(new_service: NewService, **settings: str) -> Iterator[Service]:
    with running(new_service("sqlite", only="web", WEB_CONCURRENCY="1", **settings)) as live:
        yield live, connect(live)
    assert "Traceback" not in live.log_text()


@pytest.fixture(scope="module")
def service(new_service: NewService) -> Iterator[Service]:
    with _service(new_service) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(new_service: NewService) -> Iterator[Service]:
    """Run a service with a request timeout of one second."""
    with _service(new_service, REQUEST_TIMEOUT_SECONDS="1") as running:
        yield running


@pytest.mark.long
@pytest.mark.fault("20 slow requests ({kind})")
@pytest.mark.parametrize("kind", KINDS)
def test_trickling_requests_do_not_delay_others(service: Service, kind: str) -> None:
    live, endpoint = service
    said = KINDS[kind](endpoint)
    with (
        trickling(live.port, said, CROWD),
        bystander(live) as other,
        load_on(endpoint, kept=False) as answers,
    ):
        answers.wait_for(20)
        other.is_served()
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert (set(account.answered), account.reset, account.unheard) == ({200}, 0, 0)


@pytest.mark.parametrize("missing", [1, 30, 200], ids=["a byte", "a body", "half a head"])
def test_paused_requests_are_answered_when_they_are_complete(
    service: Service, missing: int
) -> None:
    live, endpoint = service
    with ExitStack() as opened:
        crowd = [opened.enter_context(KeptConnection(live.port)) for _ in range(CROWD)]
        webhooks = [webhook_of(endpoint, f"slow {missing} {number}") for number in range(CROWD)]
        for client, webhook in zip(crowd, webhooks, strict=True):
            client.socket.sendall(webhook[:-missing])
        quick = opened.enter_context(KeptConnection(live.port))
        assert quick.get("/healthz").status == 200
        for client, webhook in zip(crowd, webhooks, strict=True):
            client.socket.sendall(webhook[-missing:])
        assert [client.answer().status for client in crowd] == [200] * CROWD


@pytest.mark.long
@pytest.mark.parametrize("kind", ["length", "chunked", "expect", "head"])
def test_endless_requests_are_answered_with_408_and_closed(hasty: Service, kind: str) -> None:
    live, endpoint = hasty
    began = monotonic()
    with trickling(live.port, KINDS[kind](endpoint), 3) as clients:
        answers = [client.answer() for client in clients]
        if kind == "expect":
            assert [answer.status for answer in answers] == [100] * 3
            answers = [client.answer() for client in clients]
    assert [answer.status for answer in answers] == [408] * 3
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
    assert {answer.headers["connection"] for answer in answers} == {"close"}
    assert monotonic() - began < 30


@pytest.mark.long
@pytest.mark.parametrize("kept", [0, 1], ids=["a new connection", "a kept connection"])
def test_an_incomplete_request_is_answered_with_408_and_closed(hasty: Service, kept: int) -> None:
    live, endpoint = hasty
    with KeptConnection(live.port) as client:
        for _ in range(kept):
            assert client.get("/healthz").status == 200
        client.socket.sendall(webhook_of(endpoint, "x")[:-1])
        assert client.answer().status == 408
        assert client.rest() == b""


@pytest.mark.long
def test_a_silent_connection_is_closed_without_a_response(hasty: Service) -> None:
    live, _ = hasty
    with KeptConnection(live.port) as client:
        assert client.rest() == b""


@pytest.mark.long
def test_requests_without_a_key_are_rejected_before_their_body(service: Service) -> None:
    live, endpoint = service
    for given, status in (({"key": "wrong"}, 401), ({}, 404)):
        said = head(endpoint, "Content-Length: 9000", **given)
        with KeptConnection(live.port) as client:
            client.socket.sendall(said if given else said.replace(b"/hook/", b"/hook/0", 1))
            answer = client.answer()
            assert (answer.status, answer.headers["content-type"]) == (status, "application/json")


@pytest.mark.long
@pytest.mark.parametrize(("length", "key", "status"), [(9_000_000, "", 413), (9, "wrong", 401)])
def test_a_bad_request_that_expects_100_continue_is_rejected_immediately(
    service: Service, length: int, key: str, status: int
) -> None:
    live, endpoint = service
    said = head(endpoint, f"Content-Length: {length}", "Expect: 100-continue", key=key)
    with KeptConnection(live.port) as client:
        client.socket.sendall(said)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert client.rest() == b""


@pytest.mark.long
def test_clients_that_continue_to_send_still_get_the_rejection(service: Service) -> None:
    live, endpoint = service
    with KeptConnection(live.port) as client:
        client.socket.sendall(head(endpoint, "Content-Length: 9000000"))
        for _ in range(50):
            with suppress(OSError):
                client.socket.sendall(b" " * 4096)
        assert client.answer().status == 413


@pytest.mark.long
def test_clients_that_do_not_read_do_not_delay_others(service: Service) -> None:
    live, _ = service
    asked_often = b"GET /static/css/base.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500
    with silent(live.port, CROWD, said=asked_often), bystander(live) as other:
        other.is_served()


@pytest.mark.long
def test_silent_connections_do_not_delay_others(service: Service) -> None:
    live, _ = service
    with silent(live.port, 300), bystander(live) as other:
        other.is_served()


@pytest.mark.faults_full
@pytest.mark.fault("2,100 idle connections")
def test_thousands_of_silent_connections_do_not_delay_others(
    new_service: NewService,
) -> None:
    # There are fewer slots than connections, so idle connections are closed.
    with _service(new_service, WEB_CONNECTIONS="1000") as (live, endpoint):
        with (
            silent(live.port, 2_100),
            bystander(live) as other,
            load_on(endpoint, kept=False) as answers,
        ):
            sleep(10)
            answers.wait_for(20)
            other.is_served()
        account = assert_nothing_was_lost(live, endpoint, answers)
        assert (set(account.answered), account.reset, account.unheard) == ({200}, 0, 0)
        assert account.longest_wait < SOON


@pytest.mark.long
def test_silent_connections_are_closed_when_all_slots_are_used(
    new_service: NewService,
) -> None:
    with (
        _service(new_service, WEB_CONNECTIONS="30") as (live, endpoint),
        silent(live.port, 100),
        trickling(live.port, trickled_length(endpoint), 5),
        bystander(live) as other,
    ):
        other.is_served()
        assert live.logged_line('"event":"server.connections_nearly_exhausted"')


@pytest.mark.long
@pytest.mark.parametrize(
    "crowd", [CROWD, pytest.param(60, marks=pytest.mark.faults_full)], ids=["small", "full"]
)
def test_incomplete_handshakes_do_not_delay_others(tmp_path: Path, crowd: int) -> None:
    certificate = str(make_certificate(tmp_path))
    with running_plain_server(
        tmp_path,
        TLS_CERTIFICATE=certificate,
        TLS_KEY=certificate,
        BASE_URL="https://localhost",
        REQUEST_TIMEOUT_SECONDS="2",
    ) as server:
        url = f"https://127.0.0.1:{server.port}/short"
        assert requests.get(url, verify=certificate, timeout=30).text == "short"  # The server runs.
        with silent(server.port, crowd, said=half_a_handshake()[:50]) as clients:
            for _ in range(5):
                began = monotonic()
                assert requests.get(url, verify=certificate, timeout=30).text == "short"
                assert monotonic() - began < SOON
            # Stalled connections are closed after a while.
            assert {client.recv(1) for client in clients} == {b""}
    assert "Traceback" not in server.log.read_text()
