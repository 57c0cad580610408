"""Background worker that runs all jobs outside of requests.

Run `python -m web.jobs.worker`. Several workers may run at the same time. With `--prepare` it
prepares the database first, and exits with WRONG_SETTING if that fails.
"""

import gc

if __name__ == "__main__":
    # Nothing loaded from here on becomes garbage. `main` turns the collector on again.
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

from domain.core.hosts import PRUNE, WORKER_HEARTBEAT
from domain.housekeeping.pruning import KeptDeliveries
from web.database.engine import sharing_engine
from web.database.prepare import prepare
from web.database.sqlite import start_wal_truncation
from web.database.start_checks import check_if_available
from web.database.start_errors import CannotStartError
from web.jobs.alert_changes import AlertBatches, alert_changes_of, open_waiting_incidents
from web.jobs.audit_log_lines import log_audit_events
from web.jobs.backchannel_logout import BackchannelLogout
from web.jobs.clock_corrections import ClockCorrections
from web.jobs.destinations import AuditStreaming, WebhookDeliveries
from web.jobs.escalations import Escalations, PendingEscalations
from web.jobs.heartbeats import Heartbeats
from web.jobs.host_heartbeat import start_pulse
from web.jobs.identities import check_identities
from web.jobs.mail import (
    SendingMail,
    queue_assignments,
    queue_due_mail,
    watch_integrations,
)
from web.jobs.pages import Paging
from web.jobs.repositories import pack_repositories, remove_from_registry
from web.jobs.retention import (
    add_up_days,
    deactivate_idle_accounts,
    encrypt_stored,
    let_alerts_follow_monitors,
    note_who_can_be_on_call,
    pause_ended_webhooks,
    resolve_silent_alerts,
    run_deletions,
    run_prune,
    seal_audit_events,
)
from web.jobs.scheduler import Job, JobOfEachWorker, PeriodicJob, Scheduler
from web.logging import configure_logging
from web.memory import keep_little_memory, keep_what_is_loaded
from web.settings.reader import (
    WRONG_SETTING,
    Settings,
    SettingsError,
    settings_from_environment,
)
from web.standard_streams import drain_standard_streams, unblock_standard_streams

_log = logging.getLogger("gatebell.jobs")
_MINUTE = timedelta(minutes=1)
_TEN_MINUTES = timedelta(minutes=10)
_HOUR = timedelta(hours=1)
#: Number of connections that the periodic jobs share. Each job holds one during a transaction.
_SHARED_CONNECTIONS = 4
#: Interval of the signs of life in seconds. The supervisor, and WatchdogSec of
#: deploy/systemd/gatebell-worker.service, allow for several missed signs.
_SIGNS_OF_LIFE_EVERY_SECONDS = 5.0
#: Duration in seconds after which a job counts as hung. Each of its waits has its own limit.
_LONGEST_LOOK_SECONDS = 1_800


class Pulse(PeriodicJob):
    """Job that only claims its turn, which shows that a worker is running."""

    begins_at_once = True

    def __init__(self, settings: Settings) -> None:
        """Use the turn name under which other processes find the worker."""
        super().__init__(WORKER_HEARTBEAT, _MINUTE, lambda _settings: None, settings)


def jobs_of(settings: Settings) -> Sequence[Job]:
    """Return all jobs of a worker."""
    once = partial(PeriodicJob, settings=settings)
    each = partial(JobOfEachWorker, settings=settings)
    return (
        Paging(settings),
        *(followed(settings) for followed in alert_changes_of(settings)),
        Escalations(settings),
        PendingEscalations(settings),
        Heartbeats(settings),
        AlertBatches(settings),
        WebhookDeliveries(settings),
        AuditStreaming(settings),
        SendingMail(settings),
        BackchannelLogout(settings),
        ClockCorrections(settings),
        Pulse(settings),
        once("add_up", _MINUTE, add_up_days),
        once("seal_audit_events", _MINUTE, seal_audit_events),
        once("monitors", _MINUTE, let_alerts_follow_monitors),
        once("rejections", _MINUTE, watch_integrations),
        once("silent", _MINUTE, resolve_silent_alerts),
        once("incidents", _MINUTE, open_waiting_incidents),
        once("delete", _MINUTE, run_deletions),
        once("encrypt", _MINUTE, encrypt_stored),
        once("pause_webhooks", _MINUTE, pause_ended_webhooks),
        once("check_identities", _MINUTE, check_identities),
        once(PRUNE, _TEN_MINUTES, partial(run_prune, kept=KeptDeliveries())),
        once("note_who_can_be_on_call", _TEN_MINUTES, note_who_can_be_on_call),
        once("deactivate", _HOUR, deactivate_idle_accounts),
        once("queue_mail", _TEN_MINUTES, queue_due_mail),
        each("queue_assignments", _MINUTE, queue_assignments),
        each("remove_from_registry", _MINUTE, remove_from_registry),
        each("pack_repositories", _HOUR, pack_repositories),
    )


def main(*, is_first: bool = False) -> None:
    """Run the worker until it receives a signal, and let active jobs finish.

    The first worker of `make run` prepares the database beforehand.
    """
    keep_little_memory()
    keep_what_is_loaded()
    unblock_standard_streams()
    try:
        settings = settings_from_environment()
        configure_logging(settings)
        if is_first:
            prepare(settings)
            # The web server waits for this message.
            sd_notify("STATUS=The database is prepared.", _log)
            _begin_anew_after_migrating()
        else:
            check_if_available(settings)
    except (SettingsError, CannotStartError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_SETTING if is_first else 1)
    log_audit_events()
    with suppress(KeyboardInterrupt), sharing_engine(settings, connections=_SHARED_CONNECTIONS):
        signal.signal(signal.SIGTERM, _stop)
        start_pulse(settings, "worker")
        start_wal_truncation(settings)
        with Scheduler(jobs_of(settings), settings) as scheduler:
            _log.info("Worker started.", extra={"event": "worker.started"})
            _show_life(partial(scheduler.hanging, longest_seconds=_LONGEST_LOOK_SECONDS))


def _begin_anew_after_migrating() -> None:
    """Replace this process by one without migrations, which take a third of its memory."""
    if "alembic" in sys.modules:
        drain_standard_streams()
        os.execv(sys.executable, [sys.executable, "-m", "web.jobs.worker"])  # noqa: S606 - ourselves


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """Start the shutdown, and ignore further signals from systemd or the supervisor."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _show_life(hanging: Callable[[], Sequence[str]]) -> None:
    """Notify the supervisor or systemd that the worker is alive, until a job hangs."""
    sd_notify("READY=1", _log)
    while not (found := hanging()):
        sd_notify("WATCHDOG=1", _log)
        sleep(_SIGNS_OF_LIFE_EVERY_SECONDS)
    _log.error(
        "Job hung; the worker no longer notifies its supervisor.",
        extra={"event": "job.hung", "job": found},
    )
    while True:
        sleep(_SIGNS_OF_LIFE_EVERY_SECONDS)


if __name__ == "__main__":
    main(is_first="--prepare" in sys.argv[1:])
