"""Background work: huey, which keeps its queue in a database of the service's own kind.

`python -m web.jobs.worker` is the process that does it; as many as wanted may run.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from huey import Huey, SqliteHuey, crontab
from huey.api import TaskWrapper
from peewee import PeeweeException
from sqlalchemy.exc import SQLAlchemyError

from domain.programs.job_turns import PULSE
from web.audit_stream import log_audit_events
from web.database.queue_tables import make_queue_tables, queue_on_postgres
from web.database.start_checks import CannotStartError, check_if_it_answers, reasons_in_a_sentence
from web.database.wal_keeper import start_wal_keeper
from web.instance_files import make_private_file
from web.jobs.heartbeat import start_heartbeat
from web.jobs.mail import send_due_letters, write_due_letters
from web.jobs.maintenance import run_add_up, run_prune, run_seal
from web.jobs.turns import in_turn
from web.logging import configure_logging
from web.settings.reader import Settings, SettingsError, settings_from_environment

_MINUTE = timedelta(minutes=1)
#: An idle worker looks for work at least this often.
_LONGEST_PAUSE_SECONDS = 1.0


class BriefOutages(logging.Filter):
    """Leaves out the traceback when the queue cannot be reached: every poll would write one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record through, without the traceback of an outage."""
        if record.exc_info and isinstance(record.exc_info[1], PeeweeException):
            record.msg, record.args = f"{record.getMessage()} (the database is away)", ()
            record.exc_info = None
        return True


def open_queue(settings: Settings) -> Huey:
    """Open the queue, and make it if it is new."""
    make_queue_tables(settings)
    return look_at_queue(settings)


def look_at_queue(settings: Settings) -> Huey:
    """Open the queue without making its tables, where that is a matter of its own."""
    if not settings.uses_sqlite:
        return queue_on_postgres(settings)
    # A file of its own, so that polling never waits for a webhook, nor a webhook for it.
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
    """Say what is done in the background, and when; return what asks for pruning at once."""
    for name, job in (("add_up", add_up), ("seal_audit_events", seal)):
        once = in_turn(name, _MINUTE, job, settings)
        queue.periodic_task(crontab(minute="*"), name=name)(once)
    # One that takes longer than its period must not meet the next one.
    locked = queue.lock_task("prune")(in_turn("prune", 10 * _MINUTE, prune, settings))
    return queue.periodic_task(crontab(minute="*/10"), name="prune")(locked)


def add_pulse(queue: Huey, settings: Settings) -> None:
    """Leave a sign of life now, and from now on every minute; see `domain.programs.job_turns`."""
    pulse = in_turn(PULSE, _MINUTE, lambda: None, settings)
    queue.periodic_task(crontab(minute="*"), name=PULSE)(pulse)
    with suppress(SQLAlchemyError):  # away: the next one may find it
        pulse()


def add_letters(
    queue: Huey, settings: Settings, *, write: Callable[[], None], send: Callable[[], None]
) -> None:
    """Write the letters that are due every ten minutes, and send what waits every minute.

    Of several workers one writes; all of them send, each what nobody else has in hand.
    """
    once = in_turn("write_letters", 10 * _MINUTE, write, settings)
    queue.periodic_task(crontab(minute="*/10"), name="write_letters")(once)
    queue.periodic_task(crontab(minute="*"), name="send_letters")(send)


def main() -> None:
    """Work until told to stop; then finish what is in hand."""
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        check_if_it_answers(settings)
        with reasons_in_a_sentence():
            queue = open_queue(settings)
    except (SettingsError, CannotStartError) as error:
        sys.exit(str(error))
    start_heartbeat(settings, "worker")
    start_wal_keeper(settings)
    for handler in logging.getLogger().handlers:
        handler.addFilter(BriefOutages())
    log_audit_events()
    add_tasks(queue, settings, prune=run_prune, add_up=run_add_up, seal=run_seal)
    add_letters(queue, settings, write=write_due_letters, send=send_due_letters)
    add_pulse(queue, settings)
    queue.create_consumer(
        workers=settings.worker_threads,
        max_delay=_LONGEST_PAUSE_SECONDS,
        graceful_signal="TERM",
        shutdown_timeout=settings.graceful_timeout_seconds,
        # A worker that was killed must not keep its lock for ever.
        flush_locks=True,
    ).run()


if __name__ == "__main__":
    main()
