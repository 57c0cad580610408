"""The cost of alert list pages with a million rows, compared with ten thousand.

The benchmark starts a separate Postgres, fills two databases, and requests each page several times
in this process, alternating between both. It prints the best time of each page and the ratio. Run
it with `make bench-alerts`; it takes some minutes and 2 GB of disk space. Another number of rows:
`python -m bench.alert_lists 100000`.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text

from app import create_app
from domain.core.clock import read_system_clock
from tests.support.database.postgres import Postgres, own_server
from web.database.schema import migrate_to_newest
from web.extensions import db
from web.services import get_services
from web.settings.environment import parse_settings

_FEW_ROWS, _MANY_ROWS = 10_000, 1_000_000
_ROWS_PER_STATEMENT = 50_000
_REPEATS = 7
_PASSWORD = "a long password of the benchmark"  # noqa: S105 - of a database that is thrown away

#: Statement that inserts alerts in all statuses.
_FILL_STATEMENT = text(
    """
INSERT INTO alerts (project_id, iid, item_index, fingerprint, status, severity, title, description,
  service, monitoring_tool, hosts, environment, events, started_at, last_event_at, created_at)
SELECT :project_id, n, 0, sha256(n::text::bytea),
  CASE WHEN n % 10 = 0 THEN 'triggered' WHEN n % 100 = 1 THEN 'acknowledged'
    WHEN n % 50 = 2 THEN 'ignored' ELSE 'resolved' END,
  n % 6, 'Disk full on web-' || n % 5000, 'Free space is low. Rack r' || n % 300,
  'service-' || n % 40, 'Nagios', 'web-' || n % 5000,
  CASE WHEN n % 3 = 0 THEN 'production' WHEN n % 9973 = 1 THEN 'rare' END,
  1 + n % 97, moment, moment, moment
FROM generate_series(CAST(:first AS int), CAST(:last AS int)) AS n,
  LATERAL (SELECT now() - n * interval '1 s' AS moment) AS clock
"""
)

ALERT_LIST_PATHS = {
    "open": "",
    "triggered": "?status=triggered",
    "acknowledged": "?status=acknowledged",
    "resolved": "?status=resolved",
    "ignored": "?status=ignored",
    "all": "?status=all",
    "all, oldest first": "?status=all&sort=oldest",
    "all, by severity": "?status=all&sort=severity",
    "all, by events": "?status=all&sort=events",
    "all, by last event": "?status=all&sort=last_event",
    "severity low": "?status=all&severity=low",
    "common environment": "?status=all&environment=production",
    "rare environment": "?status=all&environment=rare",
    "a service": "?status=all&service=service-7",
    "assigned to nobody": "?status=all&assignee=-",
    "search, common": "?status=all&search=disk",
    "search, common, open": "?search=disk+full",
    "search, rare": "?status=all&search=4711",
    "search, two words": "?status=all&search=rack+r17",
    "search, nothing": "?status=all&search=zebra",
    "deep in the list": "?status=all&before={middle}_9",
    "one alert": "/77",
}
#: Pages that list the same alerts for all projects of the visitor.
ALL_PROJECTS_LIST_PATHS = {
    "home": "/",
    "all projects, open": "/-/alerts",
    "all projects, all": "/-/alerts?status=all",
    "all projects, severity": "/-/alerts?status=all&sort=severity",
    "all projects, a service": "/-/alerts?status=all&service=service-7",
    "all projects, rare words": "/-/alerts?status=all&search=4711",
    "all projects, common": "/-/alerts?status=all&search=disk",
}
_PROJECT_LIST_PATH = "/acme/shop/-/alerts"


@contextmanager
def open_filled_app(url: str, directory: Path, rows: int) -> Iterator[Flask]:
    """Yield an app with one project that has `rows` alerts."""
    settings = parse_settings(
        {
            "BASE_URL": "http://localhost",
            "DATABASE_URL": url,
            "INSTANCE_PATH": str(directory),
            "SECRET_KEY": "of a database that is thrown away, thrown away",
            "DATABASE_STATEMENT_TIMEOUT_MS": "600000",
        }
    )
    migrate_to_newest(settings)
    app = create_app(settings)
    alice = ("alice", "--email", "alice@example.com", "--password-stdin")
    run_command(app, "users", "create", *alice)
    run_command(app, "groups", "create", "acme", "--owner", "alice")
    run_command(app, "projects", "create", "acme/shop", "--owner", "alice")
    try:
        with app.app_context():
            insert_alerts(rows)
        yield app
    finally:
        with app.app_context():
            get_services().connections.close_idle_connections()
            db.session.remove()
            db.engine.dispose()


def run_command(app: Flask, *arguments: str) -> None:
    """Run an operator's command."""
    done = app.test_cli_runner().invoke(args=arguments, input=f"{_PASSWORD}\n")
    if done.exit_code:
        raise SystemExit(done.output)


def insert_alerts(rows: int) -> None:
    """Insert `rows` alerts into the project as fast as the triggers allow."""
    project_id = db.session.scalar(text("SELECT id FROM projects"))
    began = perf_counter()
    for first in range(1, rows + 1, _ROWS_PER_STATEMENT):
        last = min(rows, first + _ROWS_PER_STATEMENT - 1)
        db.session.execute(
            _FILL_STATEMENT, {"project_id": project_id, "first": first, "last": last}
        )
        db.session.commit()
    for table in ("alerts", "alert_search"):
        with db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"VACUUM ANALYZE {table}"))
    print_progress(f"{rows:,} alerts stored in {perf_counter() - began:.0f} s")


def open_signed_in_client(app: Flask) -> FlaskClient:
    """Return a client that is signed in as a user who may see the alerts."""
    client = app.test_client()
    page = client.get("/users/sign_in").text
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    given = {"login": "alice", "password": _PASSWORD, "csrf_token": token[1] if token else ""}
    answer = client.post("/users/sign_in", data=given)
    if answer.status_code != 302:  # noqa: PLR2004 - to the first page
        raise SystemExit(answer.text)
    return client


@dataclass(frozen=True)
class ListVisitor:
    """A signed-in client for one of the databases."""

    client: FlaskClient
    #: Start time of the middle alert in microseconds since the epoch.
    middle: int


def measure_best_times(visitors: Sequence[ListVisitor], address: str) -> tuple[float, ...]:
    """Return the best time of a page for each visitor in milliseconds; the visitors alternate."""
    times = [[measure_time(visitor, address) for visitor in visitors] for _ in range(_REPEATS)]
    return tuple(min(column) for column in zip(*times, strict=True))


def measure_time(visitor: ListVisitor, address: str) -> float:
    """Return the time that a page takes in milliseconds."""
    began = perf_counter()
    answer = visitor.client.get(address.format(middle=visitor.middle))
    took = (perf_counter() - began) * 1000
    if answer.status_code != 200:  # noqa: PLR2004 - a page
        raise SystemExit(f"{address}: {answer.status_code}")
    return took


def print_progress(line: str) -> None:
    """Print a line without buffering."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Measure both databases and print a table."""
    many = int(sys.argv[1]) if len(sys.argv) > 1 else _MANY_ROWS
    with ExitStack() as stack:
        postgres = Postgres(stack.enter_context(own_server()).get_uri())
        visitors = []
        for rows in (_FEW_ROWS, many):
            directory = Path(stack.enter_context(TemporaryDirectory()))
            app = stack.enter_context(open_filled_app(postgres.new_database(), directory, rows))
            middle = int((read_system_clock().timestamp() - rows / 2) * 1_000_000)
            visitors.append(ListVisitor(open_signed_in_client(app), middle))
        print_progress(f"{'page':<24}{_FEW_ROWS:>12,}{many:>12,}  ratio")
        addresses = {
            name: _PROJECT_LIST_PATH + address for name, address in ALERT_LIST_PATHS.items()
        }
        for name, address in (addresses | ALL_PROJECTS_LIST_PATHS).items():
            few, most = measure_best_times(visitors, address)
            print_progress(f"{name:<24}{few:>9.1f} ms{most:>9.1f} ms{most / few:>7.1f}")


if __name__ == "__main__":
    main()
