"""When requests could arrive: the marks of the web servers, and the times without any.

Each web server marks every few seconds that it receives requests and reaches the database. A time
without any mark is one in which neither pings nor reports could arrive, so nobody may be blamed
for their absence: not jobs (`domain/heartbeats/states.py`) and not senders
(`domain/alerts/handling/retention.py`). Of several hosts, one that receives is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from sqlalchemy import Executable, bindparam, func, insert, select
from sqlalchemy.orm import Session

from domain.database.rows import insert_for
from domain.database.statements import KeptConnection
from models import UnreachableTime, WebServer
from models.base import UTCDateTime

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
