"""Measures a running service: memory, files, threads, connections, rows and queues."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from bench.processes import Process, busy_seconds, family, processor_seconds, proportional_mib
from bench.soaking.ground import Ground
from models import (
    AccessToken,
    Alert,
    AlertChange,
    AuditEvent,
    AuditStreamEntry,
    Authorization,
    Base,
    Delivery,
    Escalation,
    Mail,
    Occurrence,
    Page,
    PageMessage,
    SignIn,
    WebhookDelivery,
)
from tests.support.service.live import LiveGatebell

#: Process names by a part of their command. The first match applies. Other processes, such as Git,
#: are short-lived.
_NAMES = {
    "web.server.serve": "supervisor",
    "web.server.watchdog": "watchdog",
    "web.jobs.worker": "worker",
    "apprise_child": "apprise",
    "gunicorn": "web",
}
_MASTER = "gunicorn"
_TABLES: tuple[type[Base], ...] = (
    Alert,
    Occurrence,
    Delivery,
    WebhookDelivery,
    AuditEvent,
    AccessToken,
    Authorization,
    SignIn,
    Escalation,
    Page,
    PageMessage,
)
_QUEUES = {
    "alert changes": select(func.count()).select_from(AlertChange),
    "pages to be batched": select(func.count()).where(
        Page.batch_id.is_(None), Page.withdrawn_at.is_(None)
    ),
    "messages to contacts": select(func.count()).where(PageMessage.ended_at.is_(None)),
    "email": select(func.count()).where(Mail.next_try_at.is_not(None)),
    "webhook deliveries": select(func.count()).where(WebhookDelivery.next_try_at.is_not(None)),
    "audit events to be sent": select(func.count()).select_from(AuditStreamEntry),
}
_CONNECTIONS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True, kw_only=True)
class Use:
    """The resources of a process."""

    name: str
    #: Resident memory, and the proportional share with shared memory divided (proc_pid_smaps(5)),
    #: in MiB.
    resident: float
    proportional: float
    files: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The measurements at one time."""

    #: Seconds since the start.
    seconds: float
    #: Resources by process id.
    processes: Mapping[int, Use]
    #: Number of connections to Postgres, including the connections of the soak. 0 on SQLite.
    connections: int
    rows: Mapping[str, int]
    queues: Mapping[str, int]
    #: Number of messages about alerts that users have received so far.
    messages: int
    #: Processor seconds of the running processes of the service.
    processor: float
    #: Processor seconds of the whole machine since it started.
    machine: float


def look_at(ground: Ground, seconds: float, *, counts: bool) -> Sight:
    """Measure a service; rows and queues are counted only on request because that takes longer."""
    connections, rows, queues = _stored(ground.live) if counts else (0, {}, {})
    return Sight(
        seconds=seconds,
        processes=dict(_uses(ground.live.pid)),
        connections=connections,
        rows=rows,
        queues=queues,
        messages=ground.postbox.pages.messages,
        processor=processor_seconds(ground.live.pid),
        machine=busy_seconds(),
    )


@contextmanager
def looking_at(live: LiveGatebell) -> Iterator[Session]:
    """Open the database for reading; on SQLite, a write transaction would block writers."""
    engine = live.engine().execution_options(begin_mode="DEFERRED")
    with Session(engine) as session, session.begin():
        yield session


def _stored(live: LiveGatebell) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    with looking_at(live) as session:
        rows = {
            each.__tablename__: session.scalar(select(func.count()).select_from(each)) or 0
            for each in _TABLES
        }
        queues = {name: session.scalar(asked) or 0 for name, asked in _QUEUES.items()}
        is_sqlite = live.database_url.startswith("sqlite")
        connections = 0 if is_sqlite else session.scalar(_CONNECTIONS) or 0
    return connections, rows, queues


def _uses(root: int) -> Iterator[tuple[int, Use]]:
    found = family(root)
    names = {each.pid: _name_of(each) for each in found}
    for each in found:
        name = names[each.pid]
        if name == "web" and names.get(each.parent) != "web":
            name = _MASTER
        if name:
            with suppress(OSError, KeyError):  # the process has ended
                yield each.pid, _use(each.pid, name)


def _name_of(process: Process) -> str:
    return next((name for part, name in _NAMES.items() if part in process.command), "")


def _use(pid: int, name: str) -> Use:
    folder = Path("/proc") / str(pid)
    lines = (line.split() for line in (folder / "status").read_text(encoding="utf-8").splitlines())
    status = {words[0]: words[1] for words in lines if len(words) > 1}
    return Use(
        name=name,
        resident=int(status["VmRSS:"]) / 1024,
        proportional=proportional_mib(pid),
        files=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(status["Threads:"]),
    )
