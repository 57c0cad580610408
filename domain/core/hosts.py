"""Hosts of the service, runs of periodic jobs, and periods without a reachable web server.

Each host reports once a minute. The reports let commands check settings that all hosts must share,
such as their secret keys.

Each web server records a heartbeat every few seconds while it receives requests and reaches the
database. Without any heartbeat, neither pings nor reports could arrive. Their absence is then
neither the fault of jobs (`domain/heartbeats/states.py`) nor of senders
(`domain/alerts/handling/retention.py`). One reachable host is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from sqlalchemy import Executable, bindparam, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from domain.core.database.rows import insert_for, insert_into
from domain.core.database.statements import KeptConnection
from domain.core.types.base import columns_of
from models import Host, JobTurn, UnreachableTime, WebServer
from models.base import UTCDateTime

#: Interval between reports.
REPORT_INTERVAL = timedelta(minutes=1)
#: Time without a report after which a host counts as gone.
LONGEST_SILENCE = timedelta(minutes=3)
#: Retention time of the reports of hosts that are gone.
_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """The report of a host about itself."""

    name: str
    #: Fingerprints of the host's secret keys, starting with the key that it writes with.
    key_fingerprints: tuple[str, ...]
    #: Newest migration that the host's code knows.
    revision: str
    #: Milliseconds that the host's clock is ahead of the database's clock.
    clock_lead_ms: int | None
    seen_at: datetime

    @property
    def place(self) -> str:
        """The machine and the port."""
        return self.name.rpartition(" ")[0]

    @property
    def program(self) -> str:
        """The program on the host: `web` or `worker`."""
        return self.name.rpartition(" ")[2]

    def as_json(self) -> dict[str, object]:
        """Return the report in the format of commands."""
        return {
            "name": self.name,
            "writes_with": self.key_fingerprints[0],
            "knows": list(self.key_fingerprints),
            "revision": self.revision,
            "clock_lead_ms": self.clock_lead_ms,
            "seen_at": self.seen_at.isoformat(),
        }


def record_host_report(report: HostReport, *, session: Session) -> None:
    """Store the report of a host, and delete reports of hosts that are long gone."""
    values = {
        "key_fingerprints": " ".join(report.key_fingerprints),
        "revision": report.revision,
        "clock_lead_ms": report.clock_lead_ms,
        "seen_at": report.seen_at,
    }
    session.execute(
        insert_into(Host, session=session)
        .values(name=report.name, **values)
        .on_conflict_do_update(index_elements=[Host.name], set_=values)
    )
    session.execute(delete(Host).where(Host.seen_at < report.seen_at - _REMEMBERED))


def list_present(*, session: Session, now: datetime) -> Sequence[HostReport]:
    """Return the reports of the hosts that are currently running, by name."""
    rows = session.scalars(
        select(Host).where(Host.seen_at > now - LONGEST_SILENCE).order_by(Host.name)
    )
    return [
        HostReport(
            **columns_of(row, HostReport)
            | {"key_fingerprints": tuple(row.key_fingerprints.split())}
        )
        for row in rows
    ]


def is_upgrading(revision: str, *, session: Session, now: datetime) -> bool:
    """Return whether a running host has older code that does not know a migration."""
    return any(each.revision < revision for each in list_present(session=session, now=now))


#: Job that records every minute that a background worker is running.
WORKER_HEARTBEAT = "pulse"
#: Job that deletes expired data.
PRUNE = "prune"
#: Name of the record of the last detected clock that was ahead; not a job.
CLOCK_CORRECTION = "clock correction"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_turn(name: str, *, session: Session) -> datetime | None:
    """Return the start of the period of the last run, or None if there was none."""
    return session.scalar(select(JobTurn.taken_at).where(JobTurn.name == name))


def record_turn(name: str, *, session: Session, now: datetime) -> None:
    """Record that a job runs now, regardless of other hosts."""
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=now)
    session.execute(
        statement.on_conflict_do_update(index_elements=[JobTurn.name], set_={"taken_at": now})
    )


def claim_turn(name: str, *, period: timedelta, session: Session, now: datetime) -> bool:
    """Claim the run of the current period, and return whether it was still unclaimed."""
    begins_at = now - (now - _EPOCH) % period
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=begins_at)
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


MARK_INTERVAL = timedelta(seconds=10)
#: Time without a heartbeat after which no web server counts as reachable.
SILENCE = timedelta(seconds=30)
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """A period in which no request could arrive."""

    began_at: datetime
    #: End of the period; None while it lasts.
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The latest heartbeats, read when a web server is about to record the next one."""

    #: Last heartbeat of the server itself, or None if there is none.
    own: datetime | None
    others: Sequence[datetime] = ()
    #: Start time of the server, for the first heartbeat of one of its processes.
    began_at: datetime | None = None


def ended_by(marks: Marks, now: datetime) -> Unreachable | None:
    """Return the unreachable period that a heartbeat at this time ends, if there is one.

    A heartbeat in the future was recorded by a host with a wrong clock. It counts as recorded now,
    so that a wrong clock never creates an unreachable period.
    """
    known = [each for each in (marks.own, *marks.others) if each is not None]
    if not known or any(now - each <= SILENCE for each in marks.others):
        return None
    # The server was restarted, and no requests could arrive in between, however briefly.
    is_restarted = marks.began_at is not None and (
        marks.own is None or marks.own < marks.began_at <= now
    )
    last = max(known)
    if now - last <= SILENCE and not is_restarted:
        return None
    return Unreachable(began_at=last, ended_at=now)


def mark(
    name: str, *, began_at: datetime | None, connection: KeptConnection, now: datetime
) -> Unreachable | None:
    """Record a heartbeat of a web server, and return the unreachable period that it ends, if any.

    `began_at` is the start time of the server, for the first heartbeat of one of its processes. If
    another process of the same server has just recorded a heartbeat, nothing is written.
    """
    own = _marks(_SERVERS, name, began_at, connection).own
    since = max(now - MARK_INTERVAL, began_at or _ALWAYS)
    if own is not None and since < own <= now:
        return None
    return connection.transact(lambda: _mark(name, began_at, connection, now))


def _mark(
    name: str, began_at: datetime | None, connection: KeptConnection, now: datetime
) -> Unreachable | None:
    over = ended_by(_marks(_LOCKED_SERVERS, name, began_at, connection), now)
    if over is not None:
        connection.all(_KEEP, {"began_at": over.began_at, "ended_at": over.ended_at})
    connection.all(_marking(connection.dialect_name), {"name": name, "seen_at": now})
    return over


def _marks(
    servers: Executable, name: str, began_at: datetime | None, connection: KeptConnection
) -> Marks:
    found = {row[0]: row[1] for row in connection.all(servers, {})}
    own = found.pop(name, None)
    return Marks(own=own, others=tuple(found.values()), began_at=began_at)


_SERVERS = select(WebServer.name, WebServer.seen_at)
#: Locks the rows, so that two servers that return at the same time record only one period.
_LOCKED_SERVERS = _SERVERS.order_by(WebServer.name).with_for_update()
_KEEP = insert(UnreachableTime)


@cache
def _marking(dialect_name: str) -> Executable:
    statement = insert_for(dialect_name, WebServer)
    return statement.on_conflict_do_update(
        index_elements=[WebServer.name], set_={"seen_at": statement.excluded.seen_at}
    )


_LAST_MARK = select(func.max(WebServer.seen_at, type_=UTCDateTime()))
#: A period that ends in the future was recorded by a host with a wrong clock, and is ignored.
_TIMES = (
    select(UnreachableTime.began_at, UnreachableTime.ended_at)
    .where(
        UnreachableTime.ended_at > bindparam("since", type_=UTCDateTime()),
        UnreachableTime.ended_at <= bindparam("now", type_=UTCDateTime()),
    )
    .order_by(UnreachableTime.ended_at)
)


def times_unreachable(
    since: datetime, *, connection: KeptConnection, now: datetime
) -> tuple[Unreachable, ...]:
    """Return the unreachable periods that ended after a time or still last, in order."""
    row = connection.first(_LAST_MARK, {})
    rows = connection.look_up(_TIMES, {"since": since, "now": now})
    times = tuple(Unreachable(began_at=began, ended_at=ended) for began, ended in rows)
    last: datetime | None = row[0] if row else None
    if last is None or now - last <= SILENCE:
        return times
    return (*times, Unreachable(began_at=last, ended_at=None))


def reachable_since(*, longer_than: timedelta, session: Session, now: datetime) -> datetime | None:
    """Return the time since which requests could arrive, without counting short interruptions.

    Interruptions of at most `longer_than` do not count. Return None if no requests can arrive now.
    Before the first heartbeat, the service counts as always reachable.
    """
    last = session.scalar(_LAST_MARK)
    if last is not None and now - last > SILENCE:
        return None
    since = _ALWAYS
    for began_at, ended_at in session.execute(_TIMES, {"since": _ALWAYS, "now": now}):
        if ended_at - began_at > longer_than:
            since = ended_at
    return since
