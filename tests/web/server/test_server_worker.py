"""Tests that the web server follows HTTP on persistent connections (RFC 9112)."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.senders import connect
from tests.support.service.live import ROOT, LiveGatebell, NewService, running
from tests.support.wire.kept_connection import KeptConnection, build_request_head

CROWD = 20
CSS = "/static/css/base.css"


@pytest.fixture(scope="module")
def live(new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a web server with one process, which serves all connections."""
    with running(new_service("sqlite", only="web", WEB_CONCURRENCY="1")) as made:
        yield made


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux counts segments")
def test_a_head_and_its_body_arrive_together(live: LiveGatebell) -> None:
    with KeptConnection(live.port) as connection:
        for path in ("/healthz", "/users/sign_in", "/"):
            before = connection.segments
            assert connection.get(path).body
            assert connection.segments == before + 1


def test_pipelined_requests_are_answered_in_order(live: LiveGatebell) -> None:
    paths = ["/healthz", CSS, "/", "/users/sign_in"] * 3
    with KeptConnection(live.port) as connection:
        connection.socket.sendall(b"".join(build_request_head(path) for path in paths))
        answers = [connection.answer() for _ in paths]
    kinds = [(each.status, each.headers["content-type"].partition(";")[0]) for each in answers]
    page, css = "text/html", "text/css"
    assert kinds == [(200, "application/json"), (200, css), (302, page), (200, page)] * 3


def test_head_requests_keep_the_connection_open(live: LiveGatebell) -> None:
    with KeptConnection(live.port) as connection:
        for path in (CSS, "/healthz"):
            whole = connection.get(path)
            connection.socket.sendall(
                build_request_head(path, method="HEAD") + build_request_head(path)
            )
            head = connection.answer(to="HEAD")
            assert head.headers["content-length"] == str(len(whole.body))
            assert connection.answer().body == whole.body


def test_an_unchanged_file_is_not_sent_again(live: LiveGatebell) -> None:
    with KeptConnection(live.port) as connection:
        first = connection.get(CSS)
        assert first.body == (ROOT / CSS.lstrip("/")).read_bytes()
        assert connection.get(CSS, f"If-None-Match: {first.headers['etag']}").status == 304
        assert connection.get("/healthz").status == 200


@pytest.mark.long
def test_a_streamed_list_arrives_complete(live: LiveGatebell) -> None:
    endpoint = connect(live)
    for number in range(9):
        endpoint.accepted(title=f"a{number}", description="磁" * 900)
    path, cookie = f"/{endpoint.project}/-/alerts/export.json", _cookie_of_alice(live)
    with KeptConnection(live.port) as connection:
        for _ in range(3):
            answer = connection.get(path, cookie)
            assert answer.headers["transfer-encoding"] == "chunked"
            rows = json.loads(answer.body)
            assert {row["title"] for row in rows} == {f"a{number}" for number in range(9)}


def _cookie_of_alice(live: LiveGatebell) -> str:
    cookies = signed_in(live, alice(live)).cookies.get_dict()
    return "Cookie: " + "; ".join(f"{name}={text}" for name, text in cookies.items())


@pytest.mark.parametrize("path", ["/healthz", CSS, "/"])
def test_the_connection_of_an_http_1_0_client_is_closed(live: LiveGatebell, path: str) -> None:
    with KeptConnection(live.port) as kept, KeptConnection(live.port) as old:
        new = kept.get(path)
        old.socket.sendall(build_request_head(path, version="1.0"))
        answer = old.answer()
        assert (answer.status, len(answer.body)) == (new.status, len(new.body))
        assert answer.headers["connection"] == "close"
        assert old.rest() == b""


@pytest.mark.long
def test_clients_that_send_requests_without_pause_do_not_block_others(live: LiveGatebell) -> None:
    others_are_done = Event()
    with ThreadPoolExecutor(8) as clients, ExitStack() as opened:
        many = [opened.enter_context(KeptConnection(live.port)) for _ in range(8)]
        opened.callback(others_are_done.set)
        insatiable = [clients.submit(_ask_until, others_are_done, each) for each in many[:2]]
        others = [clients.submit(_ask, each, 30) for each in many[2:]]
        assert [each.result() for each in others] == [[200] * 30] * len(others)
        others_are_done.set()
        assert {each.result() for each in insatiable} == {200}


def _ask(connection: KeptConnection, times: int) -> list[int]:
    return [connection.get("/healthz").status for _ in range(times)]


def _ask_until(over: Event, connection: KeptConnection) -> int:
    # The server always has the next requests already.
    ahead = 9
    connection.socket.sendall(build_request_head("/healthz") * ahead)
    while not over.is_set():
        assert connection.answer().status == 200
        connection.socket.sendall(build_request_head("/healthz"))
    return {connection.answer().status for _ in range(ahead)}.pop()


def test_idle_connections_do_not_block_others(live: LiveGatebell) -> None:
    with ExitStack() as opened:
        idle = [opened.enter_context(KeptConnection(live.port)) for _ in range(CROWD)]
        for each in idle:
            assert each.get("/healthz").headers["connection"] == "keep-alive"
        another = opened.enter_context(KeptConnection(live.port))
        assert another.get("/healthz").status == 200
        assert [each.get("/healthz").status for each in idle] == [200] * len(idle)


@pytest.mark.parametrize(
    "said",
    [
        build_request_head("/users/sign_in"),
        build_request_head("/users/sign_in") * 9,
        build_request_head(CSS)[:-2],
        build_request_head("/oauth/token", "Content-Length: 99", method="POST") + b"grant_type",
    ],
    ids=["an answer", "answers", "in a head", "in a body"],
)
def test_clients_that_vanish_do_not_block_the_server(live: LiveGatebell, said: bytes) -> None:
    for _ in range(CROWD):
        client = KeptConnection(live.port)
        assert client.get("/healthz").status == 200
        client.socket.sendall(said)
        client.vanish()
    with KeptConnection(live.port) as another:
        assert another.get("/healthz").status == 200


@pytest.mark.parametrize("coding", ["Content-Length: {size}", "Transfer-Encoding: chunked"])
def test_an_unread_body_is_not_parsed_as_the_next_request(live: LiveGatebell, coding: str) -> None:
    hidden = build_request_head("/users/sign_in")
    head = build_request_head("/healthz", coding.format(size=len(hidden)), method="POST")
    is_chunked = "chunked" in coding
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden) if is_chunked else hidden
    with KeptConnection(live.port) as connection:
        connection.socket.sendall((head + body + build_request_head("/")) * 2)
        statuses = [connection.answer().status for _ in range(4)]
        assert statuses == [405, 302] * 2
        assert connection.get("/healthz").status == 200


def test_a_client_that_expects_100_continue_gets_it(live: LiveGatebell) -> None:
    lines = ("Content-Type: application/x-www-form-urlencoded", "Content-Length: 12")
    with KeptConnection(live.port) as connection:
        for _ in range(2):
            head = build_request_head("/oauth/token", *lines, "Expect: 100-continue", method="POST")
            connection.socket.sendall(head)
            assert connection.answer().status == 100
            connection.socket.sendall(b"grant_type=x")
            assert json.loads(connection.answer().body)["error"] == "unsupported_grant_type"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"no request\r\n\r\n", 400),
        (build_request_head("/oauth/token", "Content-Length: many", method="POST"), 400),
        (build_request_head(f"/api/v4/user?{'x' * 9_000}"), 414),
        (
            build_request_head(
                "/acme/shop/alerts/notify.json", f"X-Long: {'x' * 20_000}", method="POST"
            ),
            431,
        ),
        (build_request_head("/oauth/token", "Expect: the unexpected", method="POST"), 417),
    ],
    ids=["no request", "no length", "address", "header", "expectation"],
)
def test_invalid_http_is_rejected_in_json_and_the_connection_is_closed(
    live: LiveGatebell, said: bytes, status: int
) -> None:
    with KeptConnection(live.port) as connection:
        connection.socket.sendall(build_request_head("/healthz") + said)
        assert connection.answer().status == 200
        answer = connection.answer()
        assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
        said_why = json.loads(answer.body)
        assert said_why["message"].startswith(str(status))
        assert {"error", "error_description"} < set(said_why)
        assert connection.rest() == b""
    assert "Traceback" not in live.log_text()


@pytest.mark.parametrize("path", ["/oauth/authorize", "/users/sign_in", "/-/alerts", "/"])
@pytest.mark.parametrize("length", [9_000, 30_000])
def test_a_page_url_that_is_too_long_is_answered_with_an_error_page(
    live: LiveGatebell, path: str, length: int
) -> None:
    with KeptConnection(live.port) as connection:
        connection.socket.sendall(build_request_head(f"{path}?state={'x' * length}"))
        answer = connection.answer()
        assert answer.status == 414
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src" in answer.headers["content-security-policy"]
        assert "set-cookie" not in answer.headers
        assert b"URL too long" in answer.body
        assert connection.rest() == b""
    assert "Traceback" not in live.log_text()


@pytest.mark.advisory("CVE-2024-1135")
@pytest.mark.parametrize(
    "lines",
    [
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
    ],
)
def test_contradictory_transfer_codings_cannot_hide_a_request(
    live: LiveGatebell, lines: tuple[str, ...]
) -> None:
    head = build_request_head("/oauth/token", *lines, method="POST")
    with KeptConnection(live.port) as connection:
        connection.socket.sendall(head + b"0\r\n\r\n" + build_request_head("/healthz"))
        assert connection.answer().status in {400, 501}
        assert connection.rest() == b""


@pytest.mark.long
def test_a_body_that_violates_http_is_rejected_in_json(live: LiveGatebell) -> None:
    lines = ("Transfer-Encoding: chunked", "Content-Type: application/x-www-form-urlencoded")
    with KeptConnection(live.port) as connection:
        connection.socket.sendall(
            build_request_head("/oauth/token", *lines, method="POST") + b"no size\r\n"
        )
        answer = connection.answer()
        assert (answer.status, json.loads(answer.body)["error"]) == (400, "invalid_request")
        assert connection.rest() == b""
