"""The background worker: huey with its queue in SQLite or Postgres.

Run `python -m web.jobs.worker`; several workers may run at once.
"""

import gc

if __name__ == "__main__":
    # Nothing of what is loaded from here on is garbage; `main` turns the collector on again.
    gc.disable()

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from time import monotonic

from huey import Huey, SqliteHuey, crontab
from huey.api import TaskWrapper
from peewee import PeeweeException
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from domain.programs.job_turns import PRUNE, WORKER_HEARTBEAT
from web.audit_log_lines import log_audit_events
from web.database.queue_tables import make_queue_tables, queue_on_postgres
from web.database.start_checks import CannotStartError, check_if_available, reasons_in_a_sentence
from web.database.wal_truncation import start_wal_truncation
from web.garbage import keep_what_is_loaded
from web.instance_files import make_private_file
from web.jobs.alert_batches import AlertBatches
from web.jobs.alert_changes import loops_of
from web.jobs.audit_streams import AuditStreaming
from web.jobs.clock_corrections import ClockCorrections
from web.jobs.deletion import run_deletions
from web.jobs.escalations import Escalations
from web.jobs.heartbeat import start_heartbeat
from web.jobs.heartbeats import Heartbeats
from web.jobs.incidents import run_waiting_incidents
from web.jobs.loops import Loop
from web.jobs.mail import queue_due_mail, send_due_mail
from web.jobs.maintenance import run_add_up, run_prune, run_resolve_silent, run_seal
from web.jobs.pages import Paging
from web.jobs.periodic_jobs import once_per_period
from web.jobs.registry import run_registry_removals
from web.jobs.repositories import run_pack
from web.jobs.self_monitor import SelfMonitor
from web.jobs.signs_of_life import start_signs_of_life
from web.jobs.webhooks import WebhookDeliveries
from web.logging import configure_logging
from web.settings.reader import Settings, SettingsError, settings_from_environment
from web.standard_streams import unblock_standard_streams

_MINUTE = timedelta(minutes=1)
#: Longest pause between polls of the queue.
_LONGEST_PAUSE_SECONDS = 1.0
#: How the queue and jobs say that the database is away.
_OUTAGES = (PeeweeException, InterfaceError, OperationalError, PoolTimeoutError)
#: What looks for work every second or so.
_LOOPS: tuple[type[Loop], ...] = (
    *(AlertBatches, AuditStreaming, ClockCorrections, Escalations, Heartbeats),
    *(Paging, SelfMonitor, WebhookDeliveries),
)


class BriefOutages(logging.Filter):
    """A log filter for an unavailable database, of which each poll would tell with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass one record of an outage in a minute, without its traceback, and all others."""
        if not record.exc_info or not isinstance(record.exc_info[1], _OUTAGES):
            return True
        is_due = monotonic() - self._said_at >= _MINUTE.total_seconds()
        if is_due:
            self._said_at = monotonic()
            record.msg, record.args = f"{record.getMessage()} (the database is unavailable)", ()
            record.exc_info = None
        return is_due


def open_queue(settings: Settings) -> Huey:
    """Open the queue and create it if it is missing."""
    make_queue_tables(settings)
    return open_existing_queue(settings)


def open_existing_queue(settings: Settings) -> Huey:
    """Open the queue without creating its tables."""
    if not settings.uses_sqlite:
        return queue_on_postgres(settings)
    # A separate file, so that polls and webhooks do not wait for each other.
    file = settings.instance_path / "queue.db"
    make_private_file(file)
    return SqliteHuey("gatebell", filename=str(file), results=False)


def add_tasks(
    queue: Huey,
    settings: Settings,
    *,
    prune: Callable[[], None],
    add_up: Callable[[], None],
    seal: Callable[[], None],
) -> TaskWrapper:
    """Register the maintenance tasks; return the task that prunes at once."""
    for name, job in (("add_up", add_up), ("seal_audit_events", seal)):
        once = once_per_period(name, _MINUTE, job, settings)
        queue.periodic_task(crontab(minute="*"), name=name)(once)
    # A run that takes longer than its period must not overlap with the next one.
    locked = queue.lock_task("prune")(once_per_period(PRUNE, 10 * _MINUTE, prune, settings))
    return queue.periodic_task(crontab(minute="*/10"), name="prune")(locked)


def add_worker_heartbeat(queue: Huey, settings: Settings) -> None:
    """Store a heartbeat now and every minute; see `domain.programs.job_turns`."""
    heartbeat = once_per_period(WORKER_HEARTBEAT, _MINUTE, lambda: None, settings)
    queue.periodic_task(crontab(minute="*"), name=WORKER_HEARTBEAT)(heartbeat)
    with suppress(SQLAlchemyError):  # away: the next one may find it
        heartbeat()


def add_mail_tasks(
    queue: Huey, settings: Settings, *, write: Callable[[], None], send: Callable[[], None]
) -> None:
    """Register the mail tasks: queue due messages every ten minutes, send every minute.

    Of several workers one queues; all of them send, each the messages that it has claimed.
    """
    once = once_per_period("queue_mail", 10 * _MINUTE, write, settings)
    queue.periodic_task(crontab(minute="*/10"), name="queue_mail")(once)
    queue.periodic_task(crontab(minute="*"), name="send_mail")(send)


def add_registry_task(queue: Huey, *, remove: Callable[[], None]) -> None:
    """Register the task that deletes in the container registry; each worker claims its removals."""
    queue.periodic_task(crontab(minute="*"), name="remove_from_registry")(remove)


def add_silence_task(queue: Huey, settings: Settings, *, resolve: Callable[[], None]) -> None:
    """Register the task that resolves alerts which no report repeats."""
    locked = queue.lock_task("silent")(once_per_period("silent", _MINUTE, resolve, settings))
    queue.periodic_task(crontab(minute="*"), name="resolve_silent_alerts")(locked)


def add_incident_task(queue: Huey, settings: Settings, *, look_again: Callable[[], None]) -> None:
    """Register the task that opens the incidents of alerts whose silence is over."""
    locked = queue.lock_task("incidents")(
        once_per_period("incidents", _MINUTE, look_again, settings)
    )
    queue.periodic_task(crontab(minute="*"), name="open_waiting_incidents")(locked)


def add_repository_task(queue: Huey, *, pack: Callable[[], None]) -> None:
    """Register the task that packs repositories, once an hour on each host."""
    queue.periodic_task(crontab(minute="17"), name="pack_repositories")(pack)


def add_deletion_task(queue: Huey, settings: Settings, *, remove: Callable[[], None]) -> None:
    """Register the task that removes what belongs to deleted groups and projects."""
    # It may take longer than its period.
    locked = queue.lock_task("delete")(once_per_period("delete", _MINUTE, remove, settings))
    queue.periodic_task(crontab(minute="*"), name="delete")(locked)


def main() -> None:
    """Run the worker until it is told to stop, and finish the current tasks."""
    keep_what_is_loaded()
    unblock_standard_streams()
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        check_if_available(settings)
        with reasons_in_a_sentence():
            queue = open_queue(settings)
    except (SettingsError, CannotStartError) as error:
        sys.exit(str(error))
    start_heartbeat(settings, "worker")
    start_wal_truncation(settings)
    for handler in logging.getLogger().handlers:
        handler.addFilter(BriefOutages())
    log_audit_events()
    _add_all_tasks(queue, settings)
    with _running_loops(settings):
        _work(queue, settings)


@contextmanager
def _running_loops(settings: Settings) -> Iterator[None]:
    with ExitStack() as stack:
        kinds = (*_LOOPS, *loops_of(settings))
        loops = [stack.enter_context(loop(settings)) for loop in kinds]
        for loop in loops:
            loop.start()
        start_signs_of_life(loops)
        yield


def _add_all_tasks(queue: Huey, settings: Settings) -> None:
    add_tasks(queue, settings, prune=run_prune, add_up=run_add_up, seal=run_seal)
    add_mail_tasks(queue, settings, write=queue_due_mail, send=send_due_mail)
    add_registry_task(queue, remove=run_registry_removals)
    add_repository_task(queue, pack=run_pack)
    add_incident_task(queue, settings, look_again=run_waiting_incidents)
    add_silence_task(queue, settings, resolve=run_resolve_silent)
    add_deletion_task(queue, settings, remove=run_deletions)
    add_worker_heartbeat(queue, settings)


def _work(queue: Huey, settings: Settings) -> None:
    queue.create_consumer(
        workers=settings.worker_threads,
        max_delay=_LONGEST_PAUSE_SECONDS,
        graceful_signal="TERM",
        shutdown_timeout=settings.graceful_timeout_seconds,
        # Releases locks of workers that were killed.
        flush_locks=True,
    ).run()


if __name__ == "__main__":
    main()
