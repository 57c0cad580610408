"""Background worker that runs all jobs outside of requests.

Run `python -m web.jobs.worker`. Several workers may run at the same time. With `--prepare` it
prepares the database first, and exits with WRONG_SETTING_STATUS if that fails.
"""

import gc

if __name__ == "__main__":
    # Loading modules creates no garbage, so the collector is off until `main` turns it on again.
    gc.disable()

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from time import sleep
from types import FrameType
from typing import NoReturn

from gunicorn.systemd import sd_notify

from domain.core.hosts import PRUNE_JOB, WORKER_HEARTBEAT_JOB
from domain.housekeeping.pruning import CheckedDeliveries
from web.database.engine import share_engine
from web.database.prepare import prepare_database
from web.database.sqlite import start_wal_truncation
from web.database.start_checks import check_database_if_available
from web.database.start_errors import CannotStartError
from web.jobs.alert_changes import AlertBatches, list_alert_change_jobs, open_waiting_incidents
from web.jobs.audit_log_lines import register_audit_logging
from web.jobs.backchannel_logout import BackchannelLogout
from web.jobs.clock_corrections import ClockCorrections
from web.jobs.destinations import AuditStreaming, WebhookDeliveries
from web.jobs.escalations import Escalations, PendingEscalations
from web.jobs.heartbeats import Heartbeats
from web.jobs.host_heartbeat import start_host_heartbeat
from web.jobs.identities import check_identities
from web.jobs.mail import (
    MailJob,
    queue_assignment_notices,
    queue_due_mail,
    record_rejecting_integrations,
)
from web.jobs.on_call_calendars import queue_conflict_mail, refresh_calendars
from web.jobs.pages import PagingJob
from web.jobs.repositories import pack_repositories, run_registry_removals
from web.jobs.retention import (
    assign_alerts_to_monitors,
    deactivate_idle_accounts,
    encrypt_stored_secrets,
    pause_ended_webhooks,
    record_on_call_eligibility,
    resolve_unreported_alerts,
    run_deletions,
    run_prune,
    seal_audit_events,
    update_daily_counts,
)
from web.jobs.scheduler import Job, PeriodicJob, PerWorkerJob, Scheduler
from web.logging import configure_logging
from web.memory import freeze_loaded_objects, limit_allocator_memory
from web.settings.reader import (
    WRONG_SETTING_STATUS,
    Settings,
    SettingsError,
    load_settings,
)
from web.standard_streams import drain_standard_streams, unblock_standard_streams

_log = logging.getLogger("gatebell.jobs")
_MINUTE = timedelta(minutes=1)
_TEN_MINUTES = timedelta(minutes=10)
_HOUR = timedelta(hours=1)
#: Number of connections that the periodic jobs share. Each job holds a connection during a
#: transaction.
_SHARED_CONNECTIONS = 4
#: Interval of watchdog notifications in seconds. The supervisor, and WatchdogSec in
#: deploy/systemd/gatebell-worker.service, tolerate several missed notifications.
_SIGN_OF_LIFE_INTERVAL_SECONDS = 5.0
#: Duration in seconds after which a job counts as hung. Each wait within a job has its own timeout.
_MAX_RUN_SECONDS = 1_800


class WorkerHeartbeatJob(PeriodicJob):
    """Job without work. Its claim shows that a worker is running."""

    starts_immediately = True

    def __init__(self, settings: Settings) -> None:
        """Use the job name with which other processes find the worker."""
        super().__init__(WORKER_HEARTBEAT_JOB, _MINUTE, lambda _settings: None, settings)


def build_jobs(settings: Settings) -> Sequence[Job]:
    """Return all jobs that a worker runs."""
    once = partial(PeriodicJob, settings=settings)
    each = partial(PerWorkerJob, settings=settings)
    return (
        PagingJob(settings),
        *(followed(settings) for followed in list_alert_change_jobs(settings)),
        Escalations(settings),
        PendingEscalations(settings),
        Heartbeats(settings),
        AlertBatches(settings),
        WebhookDeliveries(settings),
        AuditStreaming(settings),
        MailJob(settings),
        BackchannelLogout(settings),
        ClockCorrections(settings),
        WorkerHeartbeatJob(settings),
        once("add_up", _MINUTE, update_daily_counts),
        once("seal_audit_events", _MINUTE, seal_audit_events),
        once("monitors", _MINUTE, assign_alerts_to_monitors),
        once("rejections", _MINUTE, record_rejecting_integrations),
        once("silent", _MINUTE, resolve_unreported_alerts),
        once("incidents", _MINUTE, open_waiting_incidents),
        once("delete", _MINUTE, run_deletions),
        once("encrypt", _MINUTE, encrypt_stored_secrets),
        once("pause_webhooks", _MINUTE, pause_ended_webhooks),
        once("check_identities", _MINUTE, check_identities),
        once(PRUNE_JOB, _TEN_MINUTES, partial(run_prune, checked_deliveries=CheckedDeliveries())),
        once("note_who_can_be_on_call", _TEN_MINUTES, record_on_call_eligibility),
        once("on_call_calendars", _MINUTE, refresh_calendars),
        once("on_call_conflicts", _TEN_MINUTES, queue_conflict_mail),
        once("deactivate", _HOUR, deactivate_idle_accounts),
        once("queue_mail", _TEN_MINUTES, queue_due_mail),
        each("queue_assignments", _MINUTE, queue_assignment_notices),
        each("remove_from_registry", _MINUTE, run_registry_removals),
        each("pack_repositories", _HOUR, pack_repositories),
    )


def main(*, is_first: bool = False) -> None:
    """Run the worker until it receives a signal, and let active jobs finish.

    Before that, the first worker that `make run` starts prepares the database.
    """
    limit_allocator_memory()
    freeze_loaded_objects()
    unblock_standard_streams()
    try:
        settings = load_settings()
        configure_logging(settings)
        if is_first:
            prepare_database(settings)
            # The web server waits for this message.
            sd_notify("STATUS=The database is prepared.", _log)
            _restart_without_migrations()
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
            _send_signs_of_life(
                partial(scheduler.list_hanging_jobs, longest_seconds=_MAX_RUN_SECONDS)
            )


def _restart_without_migrations() -> None:
    """Replace this process with a process without migrations, which take a third of its memory."""
    if "alembic" in sys.modules:
        drain_standard_streams()
        os.execv(sys.executable, [sys.executable, "-m", "web.jobs.worker"])  # noqa: S606 - ourselves


def _start_shutdown(_number: int, _frame: FrameType | None) -> NoReturn:
    """Start the shutdown, and ignore further signals from systemd or the supervisor."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _send_signs_of_life(hanging: Callable[[], Sequence[str]]) -> None:
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
