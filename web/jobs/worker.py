"""Background worker that runs all jobs outside of requests.

Run `python -m web.jobs.worker`. Several workers may run at the same time. With `--prepare` it
prepares the database first, and exits with WRONG_SETTING_STATUS if that fails.
"""

import gc

if __name__ == "__main__":
    # Loading modules creates no garbage, so the collector is off until `main` turns it on again.
    gc.disable()

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import sleep
from types import FrameType
from typing import NoReturn

from gunicorn.systemd import sd_notify

from web.child_work import run_in_child
from web.database.engine import share_engine
from web.database.preparation import prepare_database
from web.database.sqlite import start_wal_truncation
from web.database.startup_checks import check_database_if_available
from web.database.startup_errors import CannotStartError
from web.jobs.audit_log_lines import register_audit_logging
from web.jobs.host_heartbeat import start_host_heartbeat
from web.jobs.job_intervals import build_jobs
from web.jobs.scheduler import Scheduler
from web.logging import configure_logging
from web.memory import freeze_loaded_objects, limit_allocator_memory
from web.settings.environment import (
    WRONG_SETTING_STATUS,
    SettingsError,
    load_settings,
)
from web.standard_streams import unblock_standard_streams

_log = logging.getLogger("gatebell.jobs")
#: Number of connections that the periodic jobs share. Each job holds a connection during a
#: transaction.
_SHARED_CONNECTIONS = 4
#: Interval of watchdog notifications in seconds. The supervisor, and WatchdogSec in
#: deploy/systemd/gatebell-worker.service, tolerate several missed notifications.
_SIGN_OF_LIFE_INTERVAL_SECONDS = 5.0
#: Duration in seconds after which a job counts as hung. Each wait within a job has its own timeout.
_MAX_RUN_SECONDS = 1_800


def main(*, is_first: bool = False) -> None:
    """Run the worker until it receives a signal, and let active jobs finish.

    `is_first` is set for the first worker that `make run` starts, which also prepares the database.
    """
    limit_allocator_memory()
    freeze_loaded_objects()
    unblock_standard_streams()
    try:
        settings = load_settings()
        configure_logging(settings)
        if is_first:
            run_in_child(partial(prepare_database, settings))
            # The web server waits for this message.
            sd_notify("STATUS=The database is prepared.", _log)
        else:
            check_database_if_available(settings)
    except (SettingsError, CannotStartError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_SETTING_STATUS if is_first else 1)
    register_audit_logging()
    with suppress(KeyboardInterrupt), share_engine(settings, connections=_SHARED_CONNECTIONS):
        signal.signal(signal.SIGTERM, _start_shutdown)
        start_host_heartbeat(settings, "worker")
        start_wal_truncation(settings)
        with Scheduler(build_jobs(settings), settings) as scheduler:
            _log.info("Worker started.", extra={"event": "worker.started"})
            _send_watchdog_notifications(
                partial(scheduler.list_hanging_jobs, longest_seconds=_MAX_RUN_SECONDS)
            )


def _start_shutdown(_number: int, _frame: FrameType | None) -> NoReturn:
    """Start the shutdown, and ignore further signals from systemd or the supervisor."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _send_watchdog_notifications(hanging: Callable[[], Sequence[str]]) -> None:
    """Notify the supervisor or systemd that the worker is alive, until a job hangs."""
    sd_notify("READY=1", _log)
    while not (found := hanging()):
        sd_notify("WATCHDOG=1", _log)
        sleep(_SIGN_OF_LIFE_INTERVAL_SECONDS)
    _log.error(
        "Job hung; the worker stopped notifying its supervisor.",
        extra={"event": "job.hung", "job": found},
    )
    while True:
        sleep(_SIGN_OF_LIFE_INTERVAL_SECONDS)


if __name__ == "__main__":
    main(is_first="--prepare" in sys.argv[1:])
