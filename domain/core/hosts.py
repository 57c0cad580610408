"""Hosts of the service, runs of periodic jobs, and periods without a reachable web server.

Each host sends a report once a minute. Commands use the reports to check settings that all hosts
must share, such as secret keys.

Each web server records a heartbeat every few seconds while it receives requests and reaches the
database. If no web server records heartbeats, neither pings of monitored jobs nor alerts can
arrive. Jobs (`domain/heartbeats/states.py`) and alert senders
(`domain/alerts/handling/retention.py`) are then not considered silent. The service is reachable if
at least one host is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from sqlalchemy import Executable, bindparam, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_insert, build_session_insert
from domain.core.database.statements import StatementConnection
from domain.core.types.base import get_column_values
from models import Host, JobTurn, UnreachableTime, WebServer
from models.base import UTCDateTime

#: Interval between reports from a host.
HOST_REPORT_INTERVAL = timedelta(minutes=1)
#: Time without a report after which a host is considered stopped.
MAX_HOST_REPORT_AGE = timedelta(minutes=3)
#: Retention time for reports from stopped hosts.
_REPORT_RETENTION = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """A host's report about its secret keys, database migration and clock."""

    name: str
    #: Fingerprints of the host's secret keys. The host encrypts new data with the first key.
    key_fingerprints: tuple[str, ...]
    #: Latest database migration in the host's code.
    revision: str
    #: Number of milliseconds by which the host's clock is ahead of the database's clock, or None on
    #: SQLite.
    clock_lead_ms: int | None
    seen_at: datetime

    @property
    def address(self) -> str:
        """The name of the machine, and the port of its web server."""
        return self.name.rpartition(" ")[0]

    @property
    def process_kind(self) -> str:
        """The kind of process on the host: `web` or `worker`."""
        return self.name.rpartition(" ")[2]

    def convert_to_json_value(self) -> dict[str, object]:
        """Return the report in the output format of commands."""
        return {
            "name": self.name,
            "writes_with": self.key_fingerprints[0],
            "knows": list(self.key_fingerprints),
            "revision": self.revision,
            "clock_lead_ms": self.clock_lead_ms,
            "seen_at": self.seen_at.isoformat(),
        }


def record_host_report(report: HostReport, *, session: Session) -> None:
    """Store the report from a host, and delete reports from hosts that stopped long ago."""
    values = {
        "key_fingerprints": " ".join(report.key_fingerprints),
        "revision": report.revision,
        "clock_lead_ms": report.clock_lead_ms,
        "seen_at": report.seen_at,
    }
    session.execute(
        build_session_insert(Host, session=session)
        .values(name=report.name, **values)
        .on_conflict_do_update(index_elements=[Host.name], set_=values)
    )
    session.execute(delete(Host).where(Host.seen_at < report.seen_at - _REPORT_RETENTION))


def list_running_hosts(*, session: Session, now: datetime) -> Sequence[HostReport]:
    """Return the reports from hosts that are currently running, ordered by host name."""
    rows = session.scalars(
        select(Host).where(Host.seen_at > now - MAX_HOST_REPORT_AGE).order_by(Host.name)
    )
    return [
        HostReport(
            **get_column_values(row, HostReport)
            | {"key_fingerprints": tuple(row.key_fingerprints.split())}
        )
        for row in rows
    ]


def is_upgrading(revision: str, *, session: Session, now: datetime) -> bool:
    """Return whether a running host has older code without the given migration."""
    return any(each.revision < revision for each in list_running_hosts(session=session, now=now))


#: Name of the job that records, once a minute, that a background worker is running.
WORKER_HEARTBEAT_JOB = "pulse"
#: Name of the job that deletes expired data.
PRUNE_JOB = "prune"
#: Name of the record with the time at which stored future times were last corrected. The record
#: does not belong to a job.
CLOCK_CORRECTION_RECORD = "clock correction"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_last_job_run(name: str, *, session: Session) -> datetime | None:
    """Return the start of the period in which a job last ran, or None if it has never run."""
    return session.scalar(select(JobTurn.taken_at).where(JobTurn.name == name))


def record_job_run(name: str, *, session: Session, now: datetime) -> None:
    """Record that a job runs now, even if another host runs it in the same period."""
    statement = build_session_insert(JobTurn, session=session).values(name=name, taken_at=now)
    session.execute(
        statement.on_conflict_do_update(index_elements=[JobTurn.name], set_={"taken_at": now})
    )


def claim_job_run(name: str, *, period: timedelta, session: Session, now: datetime) -> bool:
    """Claim a job's run in the current period, and return whether the claim succeeded."""
    begins_at = now - (now - _EPOCH) % period
    statement = build_session_insert(JobTurn, session=session).values(name=name, taken_at=begins_at)
    taken = session.scalar(
        statement.on_conflict_do_update(
            index_elements=[JobTurn.name],
            set_={"taken_at": begins_at},
            where=or_(
                JobTurn.taken_at < begins_at,
                # A run far in the future was claimed by a host with a wrong clock, and is ignored.
                JobTurn.taken_at > begins_at + period,
            ),
        ).returning(JobTurn.name)
    )
    return taken is not None


SERVER_HEARTBEAT_INTERVAL = timedelta(seconds=10)
#: Time without a heartbeat from any web server after which the service is considered unreachable.
UNREACHABLE_AFTER = timedelta(seconds=30)
_EARLIEST_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class UnreachablePeriod:
    """A period in which no request could arrive."""

    began_at: datetime
    #: End of the period, or None while it lasts.
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ServerHeartbeats:
    """The latest heartbeats of all web servers, as seen by one server before its next heartbeat."""

    #: Last heartbeat of this server, or None if it has not recorded any.
    own: datetime | None
    others: Sequence[datetime] = ()
    #: Start time of this server. It is set only for the first heartbeat of each process.
    began_at: datetime | None = None


def find_ended_unreachable_period(
    marks: ServerHeartbeats, now: datetime
) -> UnreachablePeriod | None:
    """Return the unreachable period that a heartbeat at `now` ends, or None if there is none.

    A heartbeat in the future was recorded by a host with a wrong clock. Such a heartbeat is treated
    as recorded now, so that a wrong clock never creates an unreachable period.
    """
    known = [each for each in (marks.own, *marks.others) if each is not None]
    if not known or any(now - each <= UNREACHABLE_AFTER for each in marks.others):
        return None
    # The server was restarted. No requests could arrive in the meantime, even during a short
    # restart.
    is_restarted = marks.began_at is not None and (
        marks.own is None or marks.own < marks.began_at <= now
    )
    last = max(known)
    if now - last <= UNREACHABLE_AFTER and not is_restarted:
        return None
    return UnreachablePeriod(began_at=last, ended_at=now)


def record_server_heartbeat(
    name: str, *, began_at: datetime | None, connection: StatementConnection, now: datetime
) -> UnreachablePeriod | None:
    """Record a heartbeat from a web server, and return the unreachable period it ends, if any.

    `began_at` is the start time of the server, and is given only for the first heartbeat of each
    process. If another process of the same server has just recorded a heartbeat, nothing is
    written.
    """
    own = _read_heartbeats(_SERVERS_QUERY, name, began_at, connection).own
    since = max(now - SERVER_HEARTBEAT_INTERVAL, began_at or _EARLIEST_TIME)
    if own is not None and since < own <= now:
        return None
    return connection.run_transaction(lambda: _record_heartbeat(name, began_at, connection, now))


def _record_heartbeat(
    name: str, began_at: datetime | None, connection: StatementConnection, now: datetime
) -> UnreachablePeriod | None:
    over = find_ended_unreachable_period(
        _read_heartbeats(_LOCKED_SERVERS_QUERY, name, began_at, connection), now
    )
    if over is not None:
        connection.execute_statement(
            _STORE_PERIOD, {"began_at": over.began_at, "ended_at": over.ended_at}
        )
    connection.execute_statement(
        _build_heartbeat_statement(connection.dialect_name), {"name": name, "seen_at": now}
    )
    return over


def _read_heartbeats(
    servers: Executable, name: str, began_at: datetime | None, connection: StatementConnection
) -> ServerHeartbeats:
    found = {row[0]: row[1] for row in connection.execute_statement(servers, {})}
    own = found.pop(name, None)
    return ServerHeartbeats(own=own, others=tuple(found.values()), began_at=began_at)


_SERVERS_QUERY = select(WebServer.name, WebServer.seen_at)
#: Query that locks the rows, so that two servers that recover at the same time record only one
#: period.
_LOCKED_SERVERS_QUERY = _SERVERS_QUERY.order_by(WebServer.name).with_for_update()
_STORE_PERIOD = insert(UnreachableTime)


@cache
def _build_heartbeat_statement(dialect_name: str) -> Executable:
    statement = build_insert(dialect_name, WebServer)
    return statement.on_conflict_do_update(
        index_elements=[WebServer.name], set_={"seen_at": statement.excluded.seen_at}
    )


_LAST_HEARTBEAT_QUERY = select(func.max(WebServer.seen_at, type_=UTCDateTime()))
#: Query for the unreachable periods that ended after `since`. A period that ends in the future was
#: recorded by a host with a wrong clock, and is ignored.
_PERIODS_QUERY = (
    select(UnreachableTime.began_at, UnreachableTime.ended_at)
    .where(
        UnreachableTime.ended_at > bindparam("since", type_=UTCDateTime()),
        UnreachableTime.ended_at <= bindparam("now", type_=UTCDateTime()),
    )
    .order_by(UnreachableTime.ended_at)
)


def list_unreachable_periods(
    since: datetime, *, connection: StatementConnection, now: datetime
) -> tuple[UnreachablePeriod, ...]:
    """Return the unreachable periods that ended after `since` or have not ended yet, in order."""
    row = connection.fetch_first_row(_LAST_HEARTBEAT_QUERY, {})
    rows = connection.fetch_rows(_PERIODS_QUERY, {"since": since, "now": now})
    times = tuple(UnreachablePeriod(began_at=began, ended_at=ended) for began, ended in rows)
    last: datetime | None = row[0] if row else None
    if last is None or now - last <= UNREACHABLE_AFTER:
        return times
    return (*times, UnreachablePeriod(began_at=last, ended_at=None))


def find_reachable_since(
    *, longer_than: timedelta, session: Session, now: datetime
) -> datetime | None:
    """Return the time since which the service has been reachable.

    Interruptions of at most `longer_than` are ignored. Return None if the service is unreachable
    now. Before the first heartbeat, the service is considered reachable.
    """
    last = session.scalar(_LAST_HEARTBEAT_QUERY)
    if last is not None and now - last > UNREACHABLE_AFTER:
        return None
    since = _EARLIEST_TIME
    for began_at, ended_at in session.execute(
        _PERIODS_QUERY, {"since": _EARLIEST_TIME, "now": now}
    ):
        if ended_at - began_at > longer_than:
            since = ended_at
    return since
