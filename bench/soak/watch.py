"""Measures a running service: memory, files, threads, connections, rows and queues."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from bench.processes import (
    Process,
    list_process_family,
    measure_processor_seconds,
    read_busy_seconds,
    read_proportional_mib,
)
from bench.soak.soak_service import SoakService
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
_PROCESS_NAMES = {
    "web.server.serve": "supervisor",
    "web.server.watchdog": "watchdog",
    "web.jobs.worker": "worker",
    "apprise_child": "apprise",
    "gunicorn": "web",
}
_MASTER_COMMAND = "gunicorn"
_COUNTED_TABLES: tuple[type[Base], ...] = (
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
_QUEUE_QUERIES = {
    "alert changes": select(func.count()).select_from(AlertChange),
    "pages to be batched": select(func.count()).where(
        Page.batch_id.is_(None), Page.withdrawn_at.is_(None)
    ),
    "messages to contacts": select(func.count()).where(PageMessage.ended_at.is_(None)),
    "email": select(func.count()).where(Mail.next_try_at.is_not(None)),
    "webhook deliveries": select(func.count()).where(WebhookDelivery.next_try_at.is_not(None)),
    "audit events to be sent": select(func.count()).select_from(AuditStreamEntry),
}
_CONNECTIONS_QUERY = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """The resources of a process."""

    name: str
    #: Resident memory, and the proportional share with shared memory divided (proc_pid_smaps(5)),
    #: in MiB.
    resident: float
    proportional: float
    files: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurements at one time."""

    #: Seconds since the start.
    seconds: float
    #: Resources by process id.
    processes: Mapping[int, ProcessUse]
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


def measure_service(service: SoakService, seconds: float, *, counts: bool) -> Measurement:
    """Measure a service; rows and queues are counted only on request because that takes longer."""
    connections, rows, queues = _count_stored(service.live) if counts else (0, {}, {})
    return Measurement(
        seconds=seconds,
        processes=dict(_iterate_uses(service.live.pid)),
        connections=connections,
        rows=rows,
        queues=queues,
        messages=service.postbox.pages.messages,
        processor=measure_processor_seconds(service.live.pid),
        machine=read_busy_seconds(),
    )


@contextmanager
def open_for_reading(live: LiveGatebell) -> Iterator[Session]:
    """Open the database for reading; on SQLite, a write transaction would block writers."""
    engine = live.engine().execution_options(begin_mode="DEFERRED")
    with Session(engine) as session, session.begin():
        yield session


def _count_stored(live: LiveGatebell) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    with open_for_reading(live) as session:
        rows = {
            each.__tablename__: session.scalar(select(func.count()).select_from(each)) or 0
            for each in _COUNTED_TABLES
        }
        queues = {name: session.scalar(asked) or 0 for name, asked in _QUEUE_QUERIES.items()}
        is_sqlite = live.database_url.startswith("sqlite")
        connections = 0 if is_sqlite else session.scalar(_CONNECTIONS_QUERY) or 0
    return connections, rows, queues


def _iterate_uses(root: int) -> Iterator[tuple[int, ProcessUse]]:
    found = list_process_family(root)
    names = {each.pid: _get_process_name(each) for each in found}
    for each in found:
        name = names[each.pid]
        if name == "web" and names.get(each.parent) != "web":
            name = _MASTER_COMMAND
        if name:
            with suppress(OSError, KeyError):  # the process has ended
                yield each.pid, _measure_process(each.pid, name)


def _get_process_name(process: Process) -> str:
    return next((name for part, name in _PROCESS_NAMES.items() if part in process.command), "")


def _measure_process(pid: int, name: str) -> ProcessUse:
    folder = Path("/proc") / str(pid)
    lines = (line.split() for line in (folder / "status").read_text(encoding="utf-8").splitlines())
    status = {words[0]: words[1] for words in lines if len(words) > 1}
    return ProcessUse(
        name=name,
        resident=int(status["VmRSS:"]) / 1024,
        proportional=read_proportional_mib(pid),
        files=sum(1 for _ in (folder / "fd").iterdir()),
        threads=int(status["Threads:"]),
    )
