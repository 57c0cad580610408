"""Cost of a request: processor time of the service and Postgres, round trips, and WAL bytes.

The requests are sent one after the other over a single connection, and processor time is measured
instead of wall-clock time. Other load on the machine therefore has little effect.
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
#: Number of uncounted requests, in which statements are prepared and settings are read.
_WARM = 20
#: Divisors for the number of expensive requests, such as webhooks with a hundred alerts.
_LIGHTER = {Work.METRICS: 10}
_WORKS = tuple(work for work in COMPARED if work is not Work.LARGE)

#: Function that sends a request (method, path, headers, body) and returns the status and text.
Send = Callable[[str, str, Mapping[str, str], bytes | None], tuple[int, str]]
#: First counted value of the requests to the running service. Requests in this process use lower
#: values.
_COUNTED_HERE = 1_000_000
_SPARE = 100


@dataclass(frozen=True, kw_only=True)
class RequestCost:
    """The cost of a kind of request."""

    work: Work
    requests: int
    #: Processor milliseconds of the web process and of Postgres.
    web: float
    postgres: float
    #: Number of round trips to Postgres.
    waits: int
    #: Bytes written to Postgres' write-ahead log.
    wal: float


@dataclass(frozen=True, kw_only=True)
class ProcessSizes:
    """The memory of processes after the load in MiB, with shared memory divided among them."""

    #: Sizes of the largest web process, the background worker, and the largest Postgres connection.
    web: float
    worker: float
    connection: float


class Sender:
    """Sends a request repeatedly, each time with the value that it needs."""

    def __init__(self, shot: Shot, send: Send, *, first: int = 0) -> None:
        """Store the request and the function that sends it; counted values start after `first`."""
        self._shot = shot
        self._send = send
        self._sent = first
        self._next = ""

    def send(self) -> None:
        """Send a request.

        Raise CannotMeasureError if the response is wrong.
        """
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
    """Start the service and send `requests` requests of each kind."""
    url = postgres.databases.new_database()
    # The use of a token is stored once a minute, so few tokens cause few updates. A refresh returns
    # the next refresh token, a code works once, and a device that polls too often gets an error.
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
        """Return the processor seconds of the web processes and of Postgres."""
        web = processor_seconds(self.live.pid, "gunicorn")
        return web, processor_seconds(self.postgres.pid)

    def written(self) -> int:
        """Return the size of the write-ahead log in bytes."""
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
    """Return a function that sends requests over a connection."""

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return send


def _waits(live: LiveGatebell, shots: Mapping[Work, Shot]) -> Mapping[Work, int]:
    """Return the number of round trips to Postgres by kind of request, counted in this process."""
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
    # Some requests also read the settings.
    for _ in range(3):
        with round_trips() as waits:
            sender.send()
        counts.append(len(waits))
    return min(counts)


def name_of(database_url: str) -> str:
    """Return the name of a database, which is part of the process titles of its connections."""
    return database_url.rpartition("/")[2].partition("?")[0]
