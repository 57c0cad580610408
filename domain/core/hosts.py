"""The programs of the service: its hosts, turns of periodic jobs, and when requests could arrive.

Each host reports once a minute. The reports let commands check what all hosts have in common, such
as their secret keys.

Each web server marks every few seconds that it receives requests and reaches the database. A time
without any mark is one in which neither pings nor reports could arrive, so nobody may be blamed
for their absence: not jobs (`domain/heartbeats/states.py`) and not senders
(`domain/alerts/handling/retention.py`). Of several hosts, one that receives is enough.
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

#: The interval of reports.
REPORT_INTERVAL = timedelta(minutes=1)
#: A host without a report for longer counts as gone.
LONGEST_SILENCE = timedelta(minutes=3)
#: How long the report of a gone host is kept.
_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """The report of a host about itself."""

    name: str
    #: Fingerprints of its secret keys; the first is of the key that it writes with.
    key_fingerprints: tuple[str, ...]
    #: The newest migration that its code knows.
    revision: str
    #: Milliseconds that its clock is ahead of the database's.
    clock_lead_ms: int | None
    seen_at: datetime

    @property
    def place(self) -> str:
        """Machine and port."""
        return self.name.rpartition(" ")[0]

    @property
    def program(self) -> str:
        """What runs there: `web` or `worker`."""
        return self.name.rpartition(" ")[2]

    def as_json(self) -> dict[str, object]:
        """Return the report as commands print it."""
        return {
            "name": self.name,
            "writes_with": self.key_fingerprints[0],
            "knows": list(self.key_fingerprints),
            "revision": self.revision,
            "clock_lead_ms": self.clock_lead_ms,
            "seen_at": self.seen_at.isoformat(),
        }


def record_host_report(report: HostReport, *, session: Session) -> None:
    """Store the report of a host, and delete those of hosts that are long gone."""
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
    """Return the reports of the hosts that are present, by name."""
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
    """Return whether a host is present whose code does not know a migration."""
    return any(each.revision < revision for each in list_present(session=session, now=now))


#: The job that shows every minute that a background worker is running.
WORKER_HEARTBEAT = "pulse"
#: The job that removes what has expired.
PRUNE = "prune"
#: Not a job, but when it was last noticed that a clock had been ahead.
CLOCK_CORRECTION = "clock correction"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def last_turn(name: str, *, session: Session) -> datetime | None:
    """Return the start of the period of the last turn; None if there was none."""
    return session.scalar(select(JobTurn.taken_at).where(JobTurn.name == name))


def record_turn(name: str, *, session: Session, now: datetime) -> None:
    """Record that something happens now, whoever else does it."""
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=now)
    session.execute(
        statement.on_conflict_do_update(index_elements=[JobTurn.name], set_={"taken_at": now})
    )


def claim_turn(name: str, *, period: timedelta, session: Session, now: datetime) -> bool:
    """Claim the turn of the current period; return whether it was free."""
    begins_at = now - (now - _EPOCH) % period
    statement = insert_into(JobTurn, session=session).values(name=name, taken_at=begins_at)
    taken = session.scalar(
        statement.on_conflict_do_update(
            index_elements=[JobTurn.name],
            set_={"taken_at": begins_at},
            where=or_(
                JobTurn.taken_at < begins_at,
                # A turn far in the future was taken by a host with a wrong clock; it is ignored.
                JobTurn.taken_at > begins_at + period,
            ),
        ).returning(JobTurn.name)
    )
    return taken is not None


MARK_INTERVAL = timedelta(seconds=10)
#: Without a mark for longer, no web server receives.
SILENCE = timedelta(seconds=30)
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Unreachable:
    """A time in which no request could arrive."""

    began_at: datetime
    #: None while it lasts.
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The last marks, when a web server is about to make one."""

    #: Of the server itself, None if it has made none.
    own: datetime | None
    others: Sequence[datetime] = ()
    #: When the server began, for the first mark of one of its processes.
    began_at: datetime | None = None


def ended_by(marks: Marks, now: datetime) -> Unreachable | None:
    """Return the time without a receiver that ends with a mark now, if there was one.

    A mark ahead of now was made by a clock that is or was wrong. It counts as one of now, so that
    such a clock never makes a time seem unreachable.
    """
    known = [each for each in (marks.own, *marks.others) if each is not None]
    if not known or any(now - each <= SILENCE for each in marks.others):
        return None
    # The server was stopped in between, however briefly: what arrived meanwhile found nobody.
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
    """Note that a web server receives requests; return the time without any that ends with it.

    `began_at` is when the server began, for the first mark of one of its processes. Another
    process of the same server may have marked a moment ago; then nothing is written.
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
#: Two servers that are back at the same time note one time between them.
_LOCKED_SERVERS = _SERVERS.order_by(WebServer.name).with_for_update()
_KEEP = insert(UnreachableTime)


@cache
def _marking(dialect_name: str) -> Executable:
    statement = insert_for(dialect_name, WebServer)
    return statement.on_conflict_do_update(
        index_elements=[WebServer.name], set_={"seen_at": statement.excluded.seen_at}
    )


_LAST_MARK = select(func.max(WebServer.seen_at, type_=UTCDateTime()))
#: One that ends ahead of now was noted by a clock that was wrong.
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
    """Return the times that ended after a moment or last until now, in their order."""
    row = connection.first(_LAST_MARK, {})
    rows = connection.look_up(_TIMES, {"since": since, "now": now})
    times = tuple(Unreachable(began_at=began, ended_at=ended) for began, ended in rows)
    last: datetime | None = row[0] if row else None
    if last is None or now - last <= SILENCE:
        return times
    return (*times, Unreachable(began_at=last, ended_at=None))


def reachable_since(*, longer_than: timedelta, session: Session, now: datetime) -> datetime | None:
    """Return since when requests could arrive, leaving out interruptions up to a length.

    None if none can at present. Before the first mark, they could always.
    """
    last = session.scalar(_LAST_MARK)
    if last is not None and now - last > SILENCE:
        return None
    since = _ALWAYS
    for began_at, ended_at in session.execute(_TIMES, {"since": _ALWAYS, "now": now}):
        if ended_at - began_at > longer_than:
            since = ended_at
    return since
