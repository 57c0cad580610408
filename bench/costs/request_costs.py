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
from bench.processes import measure_process_sizes, measure_processor_seconds
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from bench.shots import COUNT_PLACEHOLDER, VALUE_PLACEHOLDER, Shot, ValueMode, find_refresh_token
from bench.workloads import COMPARED_KINDS, RequestKind
from tests.support.accounts.people import settings_of
from tests.support.database.sql_statements import round_trips
from tests.support.service.live import LiveGatebell, close_app

REQUEST_TIMEOUT_SECONDS = 60
#: Number of uncounted requests, in which statements are prepared and settings are read.
_WARM_UP_REQUESTS = 20
#: Divisors for the number of expensive requests, such as webhooks with a hundred alerts.
_REQUEST_DIVISORS = {RequestKind.METRICS: 10}
_REQUEST_KINDS = tuple(work for work in COMPARED_KINDS if work is not RequestKind.LARGE)

#: Function that sends a request (method, path, headers, body) and returns the status and text.
SendFunction = Callable[[str, str, Mapping[str, str], bytes | None], tuple[int, str]]
#: First counted value of the requests to the running service. Requests in this process use lower
#: values.
_FIRST_COUNTED_VALUE = 1_000_000
_SPARE_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class RequestCost:
    """The cost of a kind of request."""

    work: RequestKind
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


class ShotSender:
    """Sends a request repeatedly, each time with the value that it needs."""

    def __init__(self, shot: Shot, send: SendFunction, *, first: int = 0) -> None:
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
        path, body = (
            shot.path.replace(VALUE_PLACEHOLDER, value),
            shot.body.replace(VALUE_PLACEHOLDER, value).encode(),
        )
        headers = {
            name: text.replace(VALUE_PLACEHOLDER, value) for name, text in shot.headers.items()
        }
        status, text = self._send(shot.method, path, headers, body or None)
        if status not in shot.expected:
            raise CannotMeasureError(f"{shot.method} {shot.path}: {status} {text[:300]}")
        if shot.mode is ValueMode.CHAIN:
            self._next = find_refresh_token(text)

    def _value(self) -> str:
        shot, self._sent = self._shot, self._sent + 1
        if shot.mode is ValueMode.COUNT:
            return f"{self._sent:0{len(COUNT_PLACEHOLDER)}d}"
        if shot.mode is ValueMode.ROTATE:
            return shot.values.every[self._sent % len(shot.values.every)]
        if shot.mode is ValueMode.SAME:
            return ""
        return self._next or next(iter(shot.values.take(1)), "")


def measure_request_costs(
    requests: int, directory: Path, postgres: RunningPostgres
) -> tuple[Sequence[RequestCost], ProcessSizes]:
    """Start the service and send `requests` requests of each kind."""
    url = postgres.databases.new_database()
    # The use of a token is stored once a minute, so few tokens cause few updates. A refresh returns
    # the next refresh token, a code works once, and a device that polls too often gets an error.
    enough = requests + _SPARE_ROWS
    counts = Counts(
        access_tokens=_WARM_UP_REQUESTS,
        refresh_tokens=_SPARE_ROWS,
        codes=enough,
        device_codes=enough,
    )
    with running_gatebell(directory / "live", url, counts) as running:
        live, shots = running.live, running.shots
        waits = _count_round_trips(live, shots)
        costs = [
            _measure_cost(_MeasuredCase(work, shots[work], live, postgres), requests, waits[work])
            for work in _REQUEST_KINDS
        ]
        return costs, ProcessSizes(
            web=max(measure_process_sizes(live.pid, "gunicorn")),
            worker=max(measure_process_sizes(live.pid, "web.jobs.worker")),
            connection=max(measure_process_sizes(postgres.pid, get_database_name(url))),
        )


@dataclass(frozen=True)
class _MeasuredCase:
    work: RequestKind
    shot: Shot
    live: LiveGatebell
    postgres: RunningPostgres

    def computed(self) -> tuple[float, float]:
        """Return the processor seconds of the web processes and of Postgres."""
        web = measure_processor_seconds(self.live.pid, "gunicorn")
        return web, measure_processor_seconds(self.postgres.pid)

    def written(self) -> int:
        """Return the size of the write-ahead log in bytes."""
        with psycopg.connect(self.live.database_url) as connection:
            row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
        return int(row[0]) if row else 0


def _measure_cost(case: _MeasuredCase, requests: int, waits: int) -> RequestCost:
    count = requests // _REQUEST_DIVISORS.get(case.work, 1)
    connection = HTTPConnection("127.0.0.1", case.live.port, timeout=REQUEST_TIMEOUT_SECONDS)
    with closing(connection):
        sender = ShotSender(case.shot, build_send_function(connection), first=_FIRST_COUNTED_VALUE)
        for _ in range(min(_WARM_UP_REQUESTS, count)):
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


def build_send_function(connection: HTTPConnection) -> SendFunction:
    """Return a function that sends requests over a connection."""

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return send


def _count_round_trips(
    live: LiveGatebell, shots: Mapping[RequestKind, Shot]
) -> Mapping[RequestKind, int]:
    """Return the number of round trips to Postgres by kind of request, counted in this process."""
    app = create_app(settings_of(live))
    client = app.test_client()

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, str]:
        answer = client.open(path, method=method, headers=dict(headers), data=body)
        return answer.status_code, answer.text

    try:
        return {
            work: _find_fewest_round_trips(ShotSender(shots[work], send)) for work in _REQUEST_KINDS
        }
    finally:
        close_app(app)


def _find_fewest_round_trips(sender: ShotSender) -> int:
    for _ in range(_WARM_UP_REQUESTS):
        sender.send()
    counts = []
    # Some requests also read the settings.
    for _ in range(3):
        with round_trips() as waits:
            sender.send()
        counts.append(len(waits))
    return min(counts)


def get_database_name(database_url: str) -> str:
    """Return the name of a database, which is part of the process titles of its connections."""
    return database_url.rpartition("/")[2].partition("?")[0]
