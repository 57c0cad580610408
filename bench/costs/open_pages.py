"""Cost of open pages that refresh themselves: `make bench-open-pages`.

The scripts of a thousand open pages request the marks of their pages every 20 seconds
(static/js/live.js). The benchmark sends these requests for a minute, with SQLite and with Postgres,
and measures the processor time and the memory of the service. Nothing changes during this time, so
no page is reloaded.
"""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter, sleep

from bench.alert_lists import print_progress
from bench.costs.request_costs import REQUEST_TIMEOUT_SECONDS
from bench.durable_postgres import RunningPostgres, start_durable_postgres
from bench.gatebell import RunningGatebell, running_gatebell
from bench.machine import describe_noise, measure_busy_processors
from bench.options import parse_positive
from bench.processes import measure_process_sizes, measure_processor_seconds
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from tests.support.accounts.people import open_browser
from tests.support.alerts.senders import item, webhook

#: Seconds between two requests of a page.
_INTERVAL = 20
_ALERTS = 20
_CONNECTIONS = 16
_NO_CREDENTIALS = Counts(access_tokens=1, refresh_tokens=1, codes=1, device_codes=1)
_MS = 1000
_OK = 200


@dataclass(frozen=True, kw_only=True)
class OpenPagesCost:
    """The cost of open pages on one kind of database."""

    database: str
    #: Average number of processors used by the web processes and by Postgres.
    web: float
    postgres: float
    #: Response times of marks in milliseconds.
    median_ms: float
    p95_ms: float
    requests: int
    seconds: float
    #: Proportional set sizes of the web processes in MiB, before and after the requests.
    before: float
    after: float

    def row(self) -> str:
        """Return a row of the table."""
        cells = (
            self.database,
            f"{self.requests:,}",
            f"{self.web:.2f}",
            f"{self.web * self.seconds * _MS / self.requests:.1f}",
            f"{self.postgres:.2f}" if self.postgres else "",
            f"{self.median_ms:.0f}",
            f"{self.p95_ms:.0f}",
            f"{self.before:.0f}",
            f"{self.after:.0f}",
        )
        return f"| {' | '.join(cells)} |"


_TABLE_HEAD = (
    "| database | requests | processors, web | ms for a mark | processors, Postgres "
    "| median, ms | 95th percentile, ms | web processes, MiB | … afterwards |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def main() -> None:
    """Measure both databases and print the table."""
    parser = ArgumentParser(prog="python -m bench.costs.open_pages", description=__doc__)
    parser.add_argument("--pages", type=parse_positive, default=1_000, help="open pages (1000)")
    parser.add_argument("--seconds", type=parse_positive, default=60, help="duration (60)")
    given = parser.parse_args()
    print_progress(describe_noise(measure_busy_processors()))
    print_progress(_TABLE_HEAD)
    with start_durable_postgres() as postgres, TemporaryDirectory(prefix="gatebell-open-") as name:
        for kind in ("SQLite", "Postgres"):
            server = postgres if kind == "Postgres" else None
            cost = _measure(Path(name) / kind, server, pages=given.pages, seconds=given.seconds)
            print_progress(cost.row())


def _measure(
    directory: Path, server: RunningPostgres | None, *, pages: int, seconds: int
) -> OpenPagesCost:
    url = server.databases.new_database() if server else ""
    with running_gatebell(directory, url, _NO_CREDENTIALS) as running:
        paths = _prepare_pages(running)
        cookies = open_browser(running.live, running.owner).cookies.get_dict()
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        # Compile the statements and render the pages before the measurement.
        for path in (*paths, *(path.partition("?")[0] for path in paths)):
            for _ in range(4):
                _request(running.live.port, path, headers)
        pid = running.live.pid
        before = sum(measure_process_sizes(pid, "gunicorn"))
        web, database = measure_processor_seconds(pid, "gunicorn"), _measure_server(server)
        began = perf_counter()
        times = _send_requests(running.live.port, paths, headers, pages=pages, seconds=seconds)
        took = perf_counter() - began
        return OpenPagesCost(
            database="Postgres" if server else "SQLite",
            web=(measure_processor_seconds(pid, "gunicorn") - web) / took,
            postgres=(_measure_server(server) - database) / took,
            median_ms=median(times) * _MS,
            p95_ms=quantiles(times, n=20)[-1] * _MS,
            requests=len(times),
            seconds=took,
            before=before,
            after=sum(measure_process_sizes(pid, "gunicorn")),
        )


def _measure_server(server: RunningPostgres | None) -> float:
    return measure_processor_seconds(server.pid) if server else 0.0


def _prepare_pages(running: RunningGatebell) -> Sequence[str]:
    """Send alerts, create an incident, and return the URLs of the marks of different pages."""
    names = (item(f"Alert {number}") for number in range(_ALERTS))
    answer = running.metrics.post(webhook(*names))
    if answer.status_code != _OK:
        raise CannotMeasureError(answer.text)
    project = running.metrics.project
    running.live.cli("incidents", "create", project, "--title", "Checkout is slow")
    paths = (
        *("/", "/-/alerts", f"/{project}", f"/{project}/-/alerts", f"/{project}/-/on_call"),
        *(f"/{project}/-/alerts/{number}" for number in range(1, 5)),
        f"/{project}/-/incidents/1",
    )
    return tuple(f"{path}?_part=mark" for path in paths)


def _request(port: int, path: str, headers: Mapping[str, str]) -> None:
    with closing(HTTPConnection("127.0.0.1", port, timeout=REQUEST_TIMEOUT_SECONDS)) as connection:
        _send(connection, path, headers)


def _send(connection: HTTPConnection, path: str, headers: Mapping[str, str]) -> None:
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != _OK:
        raise CannotMeasureError(f"{path}: {answer.status} {content[:200]!r}")


def _send_requests(
    port: int, paths: Sequence[str], headers: Mapping[str, str], *, pages: int, seconds: int
) -> Sequence[float]:
    """Send the requests at regular times, and return the response times in seconds."""
    times: list[float] = []
    failures: list[BaseException] = []
    begin = perf_counter() + 0.5
    total = pages * seconds // _INTERVAL

    def send_share(number: int) -> None:
        try:
            with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                for index in range(number, total, _CONNECTIONS):
                    sleep(max(0.0, begin + index * _INTERVAL / pages - perf_counter()))
                    began = perf_counter()
                    _send(connection, paths[index % len(paths)], headers)
                    times.append(perf_counter() - began)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    threads = [Thread(target=send_share, args=(number,)) for number in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return times


if __name__ == "__main__":
    main()
