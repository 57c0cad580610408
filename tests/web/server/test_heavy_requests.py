"""Tests of the heavy process, which answers requests that compute for a long time."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import wait
from unittest.mock import Mock

import psutil
import pytest

from tests.conftest import KINDS
from tests.faults.processes import heavy_processes, is_held, wait_until, web_processes
from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.senders import JSON, Endpoint, connect, item, webhook
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.kept_connection import Answer, KeptConnection, build_request_head
from web.server.heavy_requests import MAX_WAITING_REQUESTS, HeavyProcess

#: Number of body bytes that make a request heavy.
LARGE = 200_000
#: Number of seconds, longer than any of these requests takes.
A_MOMENT = 0.3
CHECK = "/api/v4/releases/check"


@pytest.fixture(scope="module", params=KINDS)
def live(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[LiveGatebell]:
    """Run a web server with one web process and one heavy process."""
    with running(new_service(request.param, only="web", WEB_CONCURRENCY="1")) as made:
        yield made


@pytest.fixture(scope="module")
def endpoint(live: LiveGatebell) -> Endpoint:
    return connect(live)


def cookie(live: LiveGatebell) -> str:
    cookies = signed_in(live, alice(live)).cookies.get_dict()
    return "Cookie: " + "; ".join(f"{name}={text}" for name, text in cookies.items())


@contextmanager
def held_heavy_process(live: LiveGatebell) -> Iterator[int]:
    """Stop the heavy process, and continue it at the end if it still exists."""
    wait_until(lambda: heavy_processes(live))
    (pid,) = heavy_processes(live)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_held(pid))
    try:
        yield pid
    finally:
        if pid in heavy_processes(live):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def asking(live: LiveGatebell, *requests: bytes) -> Iterator[list[KeptConnection]]:
    """Send each request on its own connection."""
    with ExitStack() as opened:
        clients = [opened.enter_context(KeptConnection(live.port)) for _ in requests]
        for client, request in zip(clients, requests, strict=True):
            client.socket.sendall(request)
        yield clients


@contextmanager
def begun(
    live: LiveGatebell, endpoint: Endpoint, title: str
) -> Iterator[tuple[KeptConnection, bytes]]:
    """Send the head of a large alert, and return its body once the heavy process waits for it."""
    body = alert(title)
    lines = (f"Content-Length: {len(body)}", "Expect: 100-continue")
    with asking(live, posted(endpoint, b"", *lines)) as (client,):
        assert client.answer().status == 100
        yield client, body


def are_answered(clients: list[KeptConnection]) -> bool:
    return bool(wait([each.socket for each in clients], A_MOMENT))


def alert(title: str, size: int = LARGE) -> bytes:
    return json.dumps({"title": title, "filler": "x" * size}).encode()


def posted(endpoint: Endpoint, body: bytes, *lines: str) -> bytes:
    """Return a request with a body, with a Content-Length unless lines are given."""
    told = lines or (f"Content-Length: {len(body)}",)
    key = f"Authorization: Bearer {endpoint.key}"
    return (
        build_request_head(endpoint.path, f"Content-Type: {JSON}", key, *told, method="POST") + body
    )


def stored(live: LiveGatebell, endpoint: Endpoint) -> list[str]:
    path = f"{live.url}/{endpoint.project}/-/alerts/export.json?status=all"
    answer = signed_in(live, alice(live)).get(path, timeout=60)
    assert answer.status_code == 200, answer.text
    return [each["title"] for each in answer.json()]


def check() -> bytes:
    body = json.dumps({"name": "a.sh", "content": "curl https://x.example/api/v4/users"}).encode()
    lines = (f"Content-Type: {JSON}", f"Content-Length: {len(body)}")
    return build_request_head(CHECK, *lines, method="POST") + body


def test_the_heavy_process_answers_only_heavy_requests(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    metrics = connect(live, endpoint.project, kind="prometheus", name="Metrics")
    page, signed = f"/{endpoint.project}/-/alerts", cookie(live)
    many = webhook(*(item(f"many {number}") for number in range(500)))
    heavy = [
        posted(endpoint, alert("large")),
        posted(metrics, many),
        *(
            build_request_head(path, signed)
            for path in (
                f"{page}?search=large",
                "/-/alerts?search=large",
                f"{page}/export.csv?status=all",
                f"{page}/export.json?status=all",
                "/-/alerts/export.csv?status=all",
            )
        ),
        check(),
    ]
    with held_heavy_process(live), asking(live, *heavy) as clients:
        light = [
            posted(endpoint, alert("small", 9)),
            build_request_head("/users/sign_in"),
            build_request_head("/healthz"),
        ]
        with asking(live, *light) as others:
            assert [each.answer().status for each in others] == [200] * len(light)
        assert not are_answered(clients)
        (heavy_process,) = heavy_processes(live)
        os.kill(heavy_process, signal.SIGCONT)
        assert [each.answer().status for each in clients] == [200] * len(heavy)
    assert {"large", "small", *(f"many {number}" for number in range(500))} <= set(
        stored(live, endpoint)
    )


def test_the_heavy_process_answers_like_a_web_process(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    path, signed = f"/{endpoint.project}/-/alerts/export.csv?status=all", cookie(live)
    with KeptConnection(live.port) as connection:
        whole = connection.get(path, signed)
        assert whole.headers["content-type"].startswith("text/csv")
        assert whole.headers["transfer-encoding"] == "chunked"
        assert whole.headers["x-request-id"]
        requests = (
            build_request_head(path, signed, method="HEAD")
            + build_request_head("/healthz")
            + build_request_head(path, signed)
        )
        connection.socket.sendall(requests)
        assert connection.answer(to="HEAD").headers["content-type"].startswith("text/csv")
        assert connection.answer().headers["content-type"] == "application/json"
        assert connection.answer().body == whole.body
        assert connection.get(path).status == 302  # Without the cookie, the user has to sign in.


@pytest.mark.parametrize("size", [LARGE, 9])
def test_a_body_of_unknown_length_is_stored(
    live: LiveGatebell, endpoint: Endpoint, size: int
) -> None:
    body = alert(f"in chunks {size}", size)
    half = len(body) // 2
    chunks = [body[:half], body[half:], b""]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    with asking(live, posted(endpoint, sent, "Transfer-Encoding: chunked")) as (client,):
        assert client.answer().status == 200
    assert f"in chunks {size}" in stored(live, endpoint)


def test_a_large_body_is_requested_only_if_its_key_is_valid(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    lines = (f"Content-Length: {LARGE}", "Expect: 100-continue")
    wrong = posted(endpoint, b"", *lines).replace(endpoint.key.encode(), b"wrong")
    with asking(live, wrong) as (client,), begun(live, endpoint, "asked") as (other, body):
        assert client.answer().status == 401
        other.socket.sendall(body)
        assert other.answer().status == 200


def test_clients_that_pause_in_a_body_do_not_block_others(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    slow = posted(endpoint, alert("slow"))
    with asking(live, *[slow[:-99]] * 8) as clients:
        with asking(live, posted(endpoint, alert("quick")), check()) as others:
            assert [each.answer().status for each in others] == [200, 200]
        for client in clients:
            client.socket.sendall(slow[-99:])
        assert [each.answer().status for each in clients] == [200] * 8


def test_a_client_that_disconnects_during_a_download_leaves_no_open_file(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    (pid,) = heavy_processes(live)
    path, signed = f"/{endpoint.project}/-/alerts/export.csv?status=all", cookie(live)
    request = build_request_head(path, signed)
    with asking(live, *[request] * 8) as clients:
        assert [each.answer().status for each in clients] == [200] * 8
    with asking(live, *[request] * 8) as clients:  # They open what the process keeps open.
        for client in clients:
            client.vanish()
    with asking(live, check()) as (another,):
        assert another.answer().status == 200
    before = psutil.Process(pid).num_fds()
    with asking(live, *[request] * 8) as clients:
        for client in clients:
            client.vanish()
    with asking(live, check()) as (another,):
        assert another.answer().status == 200
    wait_until(lambda: psutil.Process(pid).num_fds() <= before)


def test_a_killed_heavy_process_is_replaced_and_nothing_is_stored_twice(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    kept = posted(endpoint, alert("kept"))
    with held_heavy_process(live) as pid, asking(live, kept, check()) as clients:
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        assert not are_answered(clients)
        os.kill(pid, signal.SIGKILL)
        # The next heavy process answers requests that were not accepted yet.
        answers = [each.answer() for each in clients]
    for answer in answers:
        assert answer.status == 200 or is_to_be_repeated(answer)
    with asking(live, kept) as (client,):
        assert client.answer().status == 200
    assert stored(live, endpoint).count("kept") == 1


def test_a_request_that_a_killed_heavy_process_had_started_has_to_be_repeated(
    live: LiveGatebell, endpoint: Endpoint
) -> None:
    with begun(live, endpoint, "begun") as (client, body):
        (pid,) = heavy_processes(live)
        os.kill(pid, signal.SIGKILL)
        client.socket.sendall(body)
        assert is_to_be_repeated(client.answer())
        wait_until(lambda: heavy_processes(live) not in ([], [pid]))
    assert "begun" not in stored(live, endpoint)


def is_to_be_repeated(answer: Answer) -> bool:
    return answer.status == 503 and int(answer.headers["retry-after"]) > 0


def test_requests_beyond_the_queue_limit_have_to_be_repeated(live: LiveGatebell) -> None:
    with held_heavy_process(live), asking(live, *[check()] * MAX_WAITING_REQUESTS) as waiting:
        assert not are_answered(waiting)
        with asking(live, check(), build_request_head("/healthz")) as (refused, light):
            assert is_to_be_repeated(refused.answer())
            assert light.answer().status == 200
        (pid,) = heavy_processes(live)
        os.kill(pid, signal.SIGCONT)
        assert {each.answer().status for each in waiting} <= {200, 429}


@pytest.mark.long
def test_heavy_requests_are_answered_while_the_server_stops(new_service: NewService) -> None:
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1")
    endpoint = connect(live)
    with running(live), begun(live, endpoint, "last") as (client, body):
        os.kill(live.pid, signal.SIGTERM)
        wait_until(lambda: "Handling signal" in live.log_text())
        client.socket.sendall(body)
        assert client.answer().status == 200


@pytest.mark.long
def test_proxies_and_the_base_path_are_applied_once_to_a_heavy_request(
    new_service: NewService,
) -> None:
    settings = {"BASE_URL": "http://gate.example/base", "TRUSTED_PROXIES": "1"}
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1", **settings)
    export = "/base/-/alerts/export.csv"
    with running(live), KeptConnection(live.port) as connection:
        answer = connection.get(export, "X-Forwarded-For: 203.0.113.5, 203.0.113.6")
        assert answer.status == 302
        assert answer.headers["location"].partition("?")[0] == "/base/users/sign_in"
        line = json.loads(live.logged_line("export."))
        assert line["remote_address"] == "203.0.113.6"


@pytest.mark.long
def test_a_request_that_times_out_has_to_be_repeated(new_service: NewService) -> None:
    settings = {"REQUEST_TIMEOUT_SECONDS": "1"}
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1", **settings)
    with running(live), held_heavy_process(live), asking(live, check()) as (client,):
        assert is_to_be_repeated(client.answer())


@pytest.mark.long
def test_a_heavy_process_that_hangs_is_replaced(new_service: NewService) -> None:
    settings = {"WEB_CONCURRENCY": "1", "GUNICORN_CMD_ARGS": "--timeout 8"}
    live = new_service("sqlite", only="web", **settings)
    with running(live):
        with asking(live, check()) as (client,):
            # The process runs and has sent its first heartbeat.
            assert client.answer().status == 200
        with held_heavy_process(live) as pid, asking(live, check()) as (client,):
            wait_until(lambda: heavy_processes(live) not in ([], [pid]))
            # The next process answers requests that the former one had not started.
            answer = client.answer()
            assert answer.status == 200 or is_to_be_repeated(answer)
        with asking(live, check()) as (client,):
            assert client.answer().status == 200


@pytest.mark.long
def test_signals_do_not_change_the_number_of_processes(new_service: NewService) -> None:
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1")
    with running(live):
        wait_until(lambda: heavy_processes(live))
        before = heavy_processes(live), web_processes(live)
        for told, number in enumerate((signal.SIGTTOU, signal.SIGTTIN), start=1):
            os.kill(live.pid, number)
            wait_until(partial(is_logged, live, "set WEB_CONCURRENCY", told))
        with asking(live, check(), build_request_head("/healthz")) as clients:
            assert [each.answer().status for each in clients] == [200, 200]
        assert (heavy_processes(live), web_processes(live)) == before


@pytest.mark.long
def test_reloads_leave_no_file_open(new_service: NewService) -> None:
    live = new_service("sqlite", only="web", WEB_CONCURRENCY="1")
    with running(live):
        wait_until(lambda: heavy_processes(live))
        reload(live)
        before = psutil.Process(live.pid).num_fds()
        reload(live)
        reload(live)
        wait_until(lambda: psutil.Process(live.pid).num_fds() <= before, seconds=10)
        with asking(live, check()) as (client,):
            assert client.answer().status == 200


def is_logged(live: LiveGatebell, words: str, times: int) -> bool:
    return live.log_text().count(words) >= times


def reload(live: LiveGatebell) -> None:
    """Reload gunicorn's configuration, and wait until only new processes are left."""
    former = {*heavy_processes(live), *web_processes(live)}
    os.kill(live.pid, signal.SIGHUP)

    def is_new() -> bool:
        heavy, web = heavy_processes(live), web_processes(live)
        return len(heavy) == len(web) == 1 and former.isdisjoint([*heavy, *web])

    wait_until(is_new)


def test_dropped_log_lines_of_a_heavy_process_are_counted(request: pytest.FixtureRequest) -> None:
    calls: list[str] = []
    worker = Mock(alive=True, worker_connections=1)
    worker.notify = lambda: calls.append("alive")

    def count() -> None:
        calls.append("counted")
        worker.alive = False

    worker.count_dropped_lines = count
    worker.cfg.graceful_timeout = 0
    ours, theirs = socket.socketpair()
    former = signal.getsignal(signal.SIGTERM)
    request.addfinalizer(lambda: signal.signal(signal.SIGTERM, former))
    process = HeavyProcess(worker, theirs, Mock(), is_wanted=lambda: False)
    process._stops.set()  # noqa: SLF001 - so that it does not wait
    with ours, theirs:
        process.run()
    assert calls == ["alive", "counted"]
