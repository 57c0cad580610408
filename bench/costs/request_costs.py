"""What one request costs: processor time here and in Postgres, waits for it, and what it writes.

Requests come one after the other over a single connection, so that what others do to the machine
hardly shows: it is time of a processor that is measured, and not time on the clock.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psycopg

from app import create_app
from bench.durable_postgres import RunningPostgres
from bench.gatebell import running_gatebell
from bench.processes import process_sizes, processor_seconds
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from bench.shots import COUNTED, HOLE, Mode, Shot, refresh_token_in
from bench.workloads import COMPARED, Work
from tests.support.accounts.people import settings_of
from tests.support.database.sql_statements import round_trips
from tests.support.service.live import LiveGatebell, close_app

PATIENCE_SECONDS = 60
#: Statements are prepared and settings are read; then come the requests that count.
_WARM = 20
#: A webhook of a hundred alerts is as much work as many of the others.
_LIGHTER = {Work.METRICS: 10}
_WORKS = tuple(work for work in COMPARED if work is not Work.LARGE)

#: Sends method, path, headers and body, and returns status and text.
Send = Callable[[str, str, Mapping[str, str], bytes | None], tuple[int, str]]
#: Values that the requests in this process count with come before those of the running service.
_COUNTED_HERE = 1_000_000
_SPARE = 100


@dataclass(frozen=True, kw_only=True)
class RequestCost:
    """What a kind of request costs."""

    work: Work
    requests: int
    #: Milliseconds of a processor: of the web process, and of all of Postgres.
    web: float
    postgres: float
    #: How often it waits for Postgres.
    waits: int
    #: Bytes of Postgres' log of changes.
    wal: float


@dataclass(frozen=True, kw_only=True)
class ProcessSizes:
    """MiB in memory after all this; what processes share is shared out among them."""

    #: The largest web process, the background worker, and the largest connection of Postgres.
    web: float
    worker: float
    connection: float


class Sender:
    """Sends a request again and again, each time with the value that it needs."""

    def __init__(self, shot: Shot, send: Send, *, first: int = 0) -> None:
        """Take what is sent, and what sends it; counted values begin after the first."""
        self._shot = shot
        self._send = send
        self._sent = first
        self._next = ""

    def send(self) -> None:
        """Send one, and raise CannotMeasureError unless it is answered rightly."""
        value, shot = self._value(), self._shot
        path, body = shot.path.replace(HOLE, value), shot.body.replace(HOLE, value).encode()
        headers = {name: text.replace(HOLE, value) for name, text in shot.headers.items()}
        status, text = self._send(shot.method, path, headers, body or None)
        if status not in shot.expected:
            raise CannotMeasureError(f"{shot.method} {shot.path}: {status} {text[:300]}")
        if shot.mode is Mode.CHAIN:
            self._next = refresh_token_in(text)

    def _value(self) -> str:
        shot, self._sent = self._shot, self._sent + 1
        if shot.mode is Mode.COUNT:
            return f"{self._sent:0{len(COUNTED)}d}"
        if shot.mode is Mode.ROTATE:
            return shot.values.every[self._sent % len(shot.values.every)]
        if shot.mode is Mode.SAME:
            return ""
        return self._next or next(iter(shot.values.take(1)), "")


def request_costs(
    requests: int, directory: Path, postgres: RunningPostgres
) -> tuple[Sequence[RequestCost], ProcessSizes]:
    """Start the service and ask it for everything, so many times each."""
    url = postgres.databases.new_database()
    # That a token was used is noted once a minute: few of them are noted soon. A refreshed one
    # leads to the next, a code is good once, and a device that asks too often is told so.
    enough = requests + _SPARE
    counts = Counts(access_tokens=_WARM, refresh_tokens=_SPARE, codes=enough, device_codes=enough)
    with running_gatebell(directory / "live", url, counts) as running:
        live, shots = running.live, running.shots
        waits = _waits(live, shots)
        costs = [
            _cost(_Case(work, shots[work], live, postgres), requests, waits[work])
            for work in _WORKS
        ]
        return costs, ProcessSizes(
            web=max(process_sizes(live.pid, "gunicorn")),
            worker=max(process_sizes(live.pid, "web.jobs.worker")),
            connection=max(process_sizes(postgres.pid, name_of(url))),
        )


@dataclass(frozen=True)
class _Case:
    work: Work
    shot: Shot
    live: LiveGatebell
    postgres: RunningPostgres

    def computed(self) -> tuple[float, float]:
        """Return the seconds of a processor that the web processes and Postgres have taken."""
        web = processor_seconds(self.live.pid, "gunicorn")
        return web, processor_seconds(self.postgres.pid)

    def written(self) -> int:
        """Return how long the log of changes has become, in bytes."""
        with psycopg.connect(self.live.database_url) as connection:
            row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
        return int(row[0]) if row else 0


def _cost(case: _Case, requests: int, waits: int) -> RequestCost:
    count = requests // _LIGHTER.get(case.work, 1)
    connection = HTTPConnection("127.0.0.1", case.live.port, timeout=PATIENCE_SECONDS)
    with closing(connection):
        sender = Sender(case.shot, send_over(connection), first=_COUNTED_HERE)
        for _ in range(min(_WARM, count)):
            sender.send()
        written, (web, postgres) = case.written(), case.computed()
        for _ in range(count):
            sender.send()
        web_then, postgres_then = case.computed()
    return RequestCost(
        work=case.work,
        requests=count,
        web=(web_then - web) * 1000 / count,
        postgres=(postgres_then - postgres) * 1000 / count,
        waits=waits,
        wal=(case.written() - written) / count,
    )


def send_over(connection: HTTPConnection) -> Send:
    """Return what sends requests over a connection."""

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return send


def _waits(live: LiveGatebell, shots: Mapping[Work, Shot]) -> Mapping[Work, int]:
    """Return how often each request waits for Postgres, asked in this process."""
    app = create_app(settings_of(live))
    client = app.test_client()

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        answer = client.open(path, method=method, headers=dict(headers), data=body)
        return answer.status_code, answer.text

    try:
        return {work: _fewest_waits(Sender(shots[work], send)) for work in _WORKS}
    finally:
        close_app(app)


def _fewest_waits(sender: Sender) -> int:
    for _ in range(_WARM):
        sender.send()
    counts = []
    # Now and then a request reads the settings as well.
    for _ in range(3):
        with round_trips() as waits:
            sender.send()
        counts.append(len(waits))
    return min(counts)


def name_of(database_url: str) -> str:
    """Return the name of a database, which is in the titles of its connections."""
    return database_url.rpartition("/")[2].partition("?")[0]
