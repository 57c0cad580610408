"""Background work: huey, which keeps its queue in a database of the service's own kind.

`python -m web.worker` is the process that does it; as many as wanted may run.
"""

import logging
import sys
from collections.abc import Callable

import psycopg
from huey import Huey, SqliteHuey, crontab
from huey.api import TaskWrapper
from huey.contrib.sql_huey import SqlHuey
from peewee import PeeweeException, PostgresqlDatabase
from sqlalchemy.engine import make_url

from domain.clock import system_clock
from web.audit_log import log_audit_events
from web.heartbeat import start_heartbeat
from web.letters import send_due_letters, write_due_letters
from web.logging import configure_logging
from web.maintenance import run_add_up, run_prune, run_seal
from web.settings import Settings, SettingsError, settings_from_environment
from web.start_checks import CannotStartError, check_if_it_answers
from web.worker_pulse import add_pulse

#: The queue's tables have general names, and are none of the migrations' business.
_SCHEMA = "gatebell_queue"
#: Any number, as long as nobody else locks it.
_ADVISORY_LOCK = 7_240_118_365
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
    if not settings.uses_sqlite:
        _make_tables(_on_postgres(settings), _address(settings))
    return look_at_queue(settings)


def look_at_queue(settings: Settings) -> Huey:
    """Open the queue without making its tables, where that is a matter of its own."""
    if not settings.uses_sqlite:
        return _on_postgres(settings)
    # A file of its own, so that polling never waits for a webhook, nor a webhook for it.
    file = settings.instance_path / "queue.db"
    return SqliteHuey("gatebell", filename=str(file), results=False)


def _on_postgres(settings: Settings) -> Huey:
    database = PostgresqlDatabase(
        _address(settings),
        prefer_psycopg3=True,
        connect_timeout=settings.database_connect_timeout_seconds,
        options=f"-c search_path={_SCHEMA}",
    )
    return SqlHuey("gatebell", database=database, results=False, create_tables=False)


def add_tasks(
    queue: Huey,
    *,
    prune: Callable[[], None],
    add_up: Callable[[], None],
    seal: Callable[[], None],
) -> TaskWrapper:
    """Say what is done in the background, and when; return what asks for pruning at once."""
    queue.periodic_task(crontab(minute="*"), name="add_up")(add_up)
    queue.periodic_task(crontab(minute="*"), name="seal_audit_events")(seal)
    # With several workers each of them asks; the lock lets one do it.
    locked = queue.lock_task("prune")(prune)
    return queue.periodic_task(crontab(minute="*/10"), name="prune")(locked)


def add_letters(queue: Huey, *, write: Callable[[], None], send: Callable[[], None]) -> None:
    """Write the letters that are due every ten minutes, and send what waits every minute."""
    queue.periodic_task(crontab(minute="*/10"), name="write_letters")(write)
    queue.periodic_task(crontab(minute="*"), name="send_letters")(send)


def main() -> None:
    """Work until told to stop; then finish what is in hand."""
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        check_if_it_answers(settings)
    except (SettingsError, CannotStartError) as error:
        sys.exit(str(error))
    start_heartbeat(settings, "worker")
    for handler in logging.getLogger().handlers:
        handler.addFilter(BriefOutages())
    log_audit_events()
    queue = open_queue(settings)
    add_tasks(queue, prune=run_prune, add_up=run_add_up, seal=run_seal)
    add_letters(queue, write=write_due_letters, send=send_due_letters)
    add_pulse(queue, clock=system_clock)
    queue.create_consumer(
        workers=settings.worker_threads,
        max_delay=_LONGEST_PAUSE_SECONDS,
        graceful_signal="TERM",
        shutdown_timeout=settings.graceful_timeout_seconds,
        # A worker that was killed must not keep its lock for ever.
        flush_locks=True,
    ).run()


def _address(settings: Settings) -> str:
    url = make_url(settings.database_url).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def _make_tables(queue: Huey, address: str) -> None:
    # Two processes that make the same table at once would fail, IF NOT EXISTS or not.
    with psycopg.connect(address) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
        connection.commit()
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_LOCK,))
        queue.storage.initialize_schema()


if __name__ == "__main__":
    main()
