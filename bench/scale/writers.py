"""Measures how long writers to SQLite wait for each other: `bench.scale.large_run --sqlite`.

Sixteen clients send alerts to a project that pages, each as soon as the last response arrives. Four
clients refresh tokens, and one changes a page. Meanwhile the worker handles the changes, and
another process prunes. SQLite allows one writer at a time.
"""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, sleep
from urllib.parse import urlencode

from sqlalchemy import insert

from bench.alert_bodies import build_generic_alert
from bench.gatebell import RAISED_LIMITS, create_paging_project
from bench.gatebell_seed import seed_gatebell
from bench.oauth_shots import SeedData
from bench.scale.timed_waits import BUSY_WORD
from bench.seed_counts import Counts
from models import Mail
from tests.support.accounts.people import Person, database_of, now, open_browser, settings_of
from tests.support.alerts.senders import JSON, Endpoint, connect
from tests.support.service.live import ROOT, LiveGatebell
from tests.support.wire.html_forms import form_with, submit
from web.database.schema import migrate_to_newest

SENDER_COUNT, REFRESHER_COUNT = 16, 4
_WARM_UP_SECONDS = 3.0
#: Pause between two requests of clients that do not send alerts.
_PAUSE_SECONDS = 0.05
#: Number of expired mails, which are pruned in slices of 500 while others write.
_EXPIRED_MAILS = 60_000


@dataclass
class WriterWaits:
    """The durations for one kind of writer in milliseconds."""

    kind: str
    taken: list[float] = field(default_factory=list)
    #: Number of 503 responses, and of waits for the lock that timed out.
    busy: int = 0
    other: int = 0

    def quantile(self, share: float) -> float:
        """Return the duration that this share of the requests did not exceed."""
        every = sorted(self.taken)
        return every[min(int(share * len(every)), len(every) - 1)] if every else 0.0


def measure_writers(place: Path, *, web_processes: int, seconds: float) -> Sequence[WriterWaits]:
    """Run all writers at the same time, and return the durations by kind."""
    with _run_writers(place, web_processes) as (live, seed, alice, endpoint):
        end = Event()
        kinds = {
            "new alert": [_build_sender(endpoint, live, each) for each in range(SENDER_COUNT)],
            "refresh": [_build_refresher(live, seed, each) for each in range(REFRESHER_COUNT)],
            "form": [_build_changer(live, alice)],
        }
        pauses = {"new alert": 0.0}
        found = {kind: WriterWaits(kind) for kind in kinds}
        noted = {name: place / f"{name}.waits" for name in ("worker", "prune")}
        threads = [
            Thread(
                target=_repeat_until_end,
                args=(ask, found[kind], end, pauses.get(kind, _PAUSE_SECONDS)),
            )
            for kind, asking in kinds.items()
            for ask in asking
        ]
        with _run_program(live, noted["worker"], "worker"):
            for each in threads:
                each.start()
            sleep(_WARM_UP_SECONDS)
            for waits in found.values():
                waits.taken.clear()
            for file in noted.values():
                file.write_text("")
            with _run_program(live, noted["prune"], "prune"):
                sleep(seconds)
            end.set()
            for each in threads:
                each.join()
    kept = {"worker": "worker, wait for the lock", "prune": "pruning, wait for the lock"}
    return [*found.values(), *(_read_waits(noted[name], kind) for name, kind in kept.items())]


def _repeat_until_end(ask: Callable[[], int], waits: WriterWaits, end: Event, pause: float) -> None:
    while not end.wait(pause):
        began = perf_counter()
        status = ask()
        if status < HTTPStatus.BAD_REQUEST:
            waits.taken.append((perf_counter() - began) * 1000)
        elif status == HTTPStatus.SERVICE_UNAVAILABLE:
            waits.busy += 1
        else:
            waits.other += 1


def _read_waits(file: Path, kind: str) -> WriterWaits:
    lines = file.read_text().split()
    return WriterWaits(
        kind,
        taken=[float(each) for each in lines if each != BUSY_WORD],
        busy=lines.count(BUSY_WORD),
    )


@contextmanager
def _run_writers(
    place: Path, web_processes: int
) -> Iterator[tuple[LiveGatebell, SeedData, Person, Endpoint]]:
    live = LiveGatebell(
        instance_path=place,
        database_url="",
        only="web",
        WEB_CONCURRENCY=str(web_processes),
        DATABASE_CONNECT_TIMEOUT_SECONDS="2",  # the default: tests use a longer timeout
        **RAISED_LIMITS,
    )
    place.mkdir(parents=True)
    migrate_to_newest(settings_of(live))
    counts = Counts(access_tokens=1, refresh_tokens=REFRESHER_COUNT, codes=1, device_codes=1)
    seed, alice = seed_gatebell(live, counts)
    endpoint = connect(live, create_paging_project(live, alice))
    long_ago = now() - timedelta(days=100)
    mails = [
        {
            "key": f"old {number}",
            "recipient": alice.email,
            "subject": "Sign-in",
            "text": "text " * 60,
            "created_at": long_ago,
            "tries": 1,
            "sent_at": long_ago,
        }
        for number in range(_EXPIRED_MAILS)
    ]
    with database_of(live) as session:
        session.execute(insert(Mail), mails)
    live.start()
    try:
        yield live, seed, alice, endpoint
    finally:
        live.stop()


@contextmanager
def _run_program(live: LiveGatebell, notes: Path, name: str) -> Iterator[None]:
    """Run a program next to the web server that records its waits for the lock."""
    command = [sys.executable, "-m", "bench.scale.timed_waits", str(notes), name]
    with (notes.parent / f"{name}.log").open("ab") as log:
        running = subprocess.Popen(command, cwd=ROOT, env=live.environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.terminate()
        running.wait()


def _connect(live: LiveGatebell) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", live.port, timeout=60)


def _build_sender(endpoint: Endpoint, live: LiveGatebell, sender: int) -> Callable[[], int]:
    wire, headers = _connect(live), {"Content-Type": JSON, **endpoint.bearer}
    numbers = count(1)

    def send() -> int:
        body = build_generic_alert(f"New {sender} {next(numbers)}")
        return _send_request(wire, endpoint.path, headers, body)[0]

    return send


def _build_refresher(live: LiveGatebell, seed: SeedData, number: int) -> Callable[[], int]:
    wire, basic = _connect(live), f"{seed.client_id}:{seed.client_secret}".encode()
    headers = {
        "Authorization": f"Basic {b64encode(basic).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    token = seed.refresh_tokens[number]

    def refresh() -> int:
        nonlocal token
        form = {"grant_type": "refresh_token", "refresh_token": token}
        status, text = _send_request(wire, "/oauth/token", headers, urlencode(form))
        if status == HTTPStatus.OK:
            token = json.loads(text)["refresh_token"]
        return status

    return refresh


def _build_changer(live: LiveGatebell, person: Person) -> Callable[[], int]:
    browser, numbers = open_browser(live, person), count(1)
    page = browser.get(f"{live.url}/-/user_settings/profile")
    form = form_with(page, "name")

    def change() -> int:
        return submit(browser, page, form, name=f"Alice {next(numbers)}").status_code

    return change


def _send_request(
    wire: HTTPConnection, path: str, headers: Mapping[str, str], body: str
) -> tuple[int, bytes]:
    wire.request("POST", path, body, dict(headers))
    answer = wire.getresponse()
    return answer.status, answer.read()
