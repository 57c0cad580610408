"""Tests of the durable-intake benchmark, against small simulated intakes."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep

import pytest

from bench.constant_rate import DueRequest, Latencies, send_at_rate
from bench.durable_intake.__main__ import main

#: Numbers of the alerts that the intake handles incorrectly.
LOST, DOUBLED, MERGED, REFUSED, UNANSWERED = 3, 5, 7, 9, 11
_PAGE = 6


class Intake(BaseHTTPRequestHandler):
    """Stores alerts in memory, and handles some of them incorrectly."""

    stored: list[dict[str, object]]
    is_bad: bool
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        alert = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(alert["name"].rpartition("-")[2]) if self.is_bad else 0
        if number != LOST:
            self.stored.append({**alert, "repeats": 1 if number == MERGED else 0})
        if number == DOUBLED:
            self.stored.append(self.stored[-1])
        if number == UNANSWERED:
            self.close_connection = True
            return
        self._answer(503 if number == REFUSED else 202, {})

    def do_GET(self) -> None:
        page = int(self.path.rpartition("=")[2])
        if (page - 1) * _PAGE >= len(self.stored):
            self._answer(416, {"message": "page out of range"})
            return
        items = self.stored[(page - 1) * _PAGE : page * _PAGE]
        has_next = page * _PAGE < len(self.stored)
        following = f'</alerts?page={page + 1}>; rel="next"' if has_next else ""
        self._answer(200, {"alerts": items}, Link=following)

    def _answer(self, status: int, body: object, **headers: str) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def running_intake(*, is_bad: bool) -> Iterator[str]:
    handler = type("Handler", (Intake,), {"stored": [], "is_bad": is_bad})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("is_bad", [False, True])
@pytest.mark.parametrize("page", ["1", "{page}"])
def test_every_alert_is_accounted_for(tmp_path: Path, *, is_bad: bool, page: str) -> None:
    with running_intake(is_bad=is_bad) as url:
        listed = {
            "url": f"{url}/alerts?page={page}",
            "items": "alerts",
            "times": "repeats",
            "once": 0,
        }
        intakes = tmp_path / "intakes.json"
        intakes.write_text(
            json.dumps([{"url": url, "body": {"name": "{mark}"}, "stored": listed}] * 2)
        )
        account = tmp_path / "account.json"
        status = main(
            [
                *("--intakes", str(intakes), "--rate", "200", "--seconds", "0.1"),
                *("--fault", f"touch {tmp_path / 'killed'}", "--faults", "1"),
                *("--json", str(account)),
            ]
        )
    found = json.loads(account.read_text())
    numbers = {
        name: [int(mark.rpartition("-")[2]) for mark in found[name]] for name in ("lost", "doubled")
    }
    assert (tmp_path / "killed").exists()
    assert [fault["name"] for fault in found["faults"]] == ["the service"]
    assert found["sent"] == 20
    if is_bad:
        assert status == 1
        assert numbers == {"lost": [LOST], "doubled": [DOUBLED, MERGED]}
        assert (found["acknowledged"], found["stored"], found["extra"]) == (18, 17, 2)
        assert found["failed"] == {"503": 1, "no response (RemoteDisconnected)": 1}
    else:
        assert status == 0
        assert numbers == {"lost": [], "doubled": []}
        assert (found["acknowledged"], found["stored"], found["extra"]) == (20, 20, 0)


def test_latency_counts_from_the_time_when_a_request_was_due() -> None:
    hold = 0.15

    class Slow(Intake):
        stored: list[dict[str, object]]
        is_bad = False

        def do_GET(self) -> None:
            if self.path == "/0":
                sleep(hold)
            self._answer(200, {})

    latencies = Latencies()
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def next_request(number: int) -> DueRequest:
            return DueRequest(
                method="GET",
                url=f"http://127.0.0.1:{server.server_port}/{number}",
                body=None,
                headers={},
                judge=lambda status, _text: "" if status == 200 else str(status),
                into=latencies,
            )

        # One sender, ten milliseconds between two requests: all requests wait for the first
        # response.
        send_at_rate(next_request, rate=100, seconds=0.1, senders=1)
        server.shutdown()
        thread.join()
    assert latencies.sent == 10
    for number, took in enumerate(latencies.right):
        assert took >= (hold - number / 100) * 1000 - 1
    assert latencies.latest >= (hold - 0.01) * 1000 - 1


def test_the_benchmark_needs_only_the_standard_library() -> None:
    folder = Path(__file__).parents[3] / "bench"
    files = ("constant_rate.py", "durable_intake/__main__.py", "durable_intake/intake.py")
    ours = re.compile(r"^(?:from|import) ((?:bench|tests|domain|web|models)[\w.]*)", re.MULTILINE)
    needed = {name for file in files for name in ours.findall((folder / file).read_text())}
    assert needed == {"bench.constant_rate", "bench.durable_intake.intake"}
