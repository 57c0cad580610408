"""State of the instance, for the administration overview page and for metrics."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from domain.accounts.passwords import FIRST_ADMINISTRATOR_USERNAME, has_initial_password
from domain.alerts.integrations.rejections import count_rejecting_integrations
from domain.core.database.locks import commit_to_release_locks
from domain.core.hosts import (
    MAX_HOST_REPORT_AGE,
    PRUNE_JOB,
    WORKER_HEARTBEAT_JOB,
    find_last_job_run,
)
from domain.core.job_results import (
    FAILURE_DISPLAY_TIME,
    BackupState,
    FailedJob,
    get_backup_state,
    list_failed_jobs,
)
from domain.core.types.base import get_column_values
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.audit_streams.types import AuditStream
from domain.delivery.mail.outbox import get_mail_queue_state
from domain.delivery.outgoing.destinations import DestinationState
from domain.delivery.queue import QueueState
from domain.delivery.webhooks.endpoints import get_webhook_backlog
from domain.housekeeping.queues import QUEUES
from domain.oauth.personal_tokens.token_lists import LegacyAdminToken, list_legacy_admin_tokens
from web.admin.security_warnings import SecurityWarning, list_security_warnings
from web.admin.settings import get_settings_in_transaction
from web.database.schema import get_newest_known_revision
from web.extensions import db
from web.metrics import AuditStreamMetrics, Gauge
from web.readiness import find_readiness_problem
from web.services import get_current_time, get_services, get_settings
from web.settings.environment import list_ignored_variables
from web.version import Build, get_running_build

_log = logging.getLogger("gatebell.worker")
ReadResult = TypeVar("ReadResult")


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """State that is shown on the administration overview page."""

    release: str
    build: Build
    tier: str
    base_url: str
    database: str
    #: Short description of the readiness problem, or None.
    missing: str | None
    worker_seen_at: datetime | None
    is_worker_alive: bool
    #: Username of the first administrator as long as the generated password is in use, or None.
    first_password_of: str | None
    risks: tuple[SecurityWarning, ...]
    #: Tokens that can administer the instance without the required scope.
    former_tokens: tuple[LegacyAdminToken, ...]
    #: Audit log destinations that have accepted no events for a day.
    failing_streams: tuple[AuditStream, ...]
    backup: BackupState
    is_backup_overdue: bool
    #: Jobs of the worker that failed within the last hour.
    failed_jobs: tuple[FailedJob, ...]
    #: Messages about ignored environment variables that look like settings.
    ignored_variables: tuple[str, ...]


def get_instance_state() -> InstanceState:
    """Return the state of the settings, the database and the background worker."""
    # The readiness check uses its own connection, so no lock may be held.
    commit_to_release_locks(db.session())
    missing = find_readiness_problem()
    current = get_settings_in_transaction(session=db.session())
    seen_at = find_last_worker_heartbeat()
    is_first = has_initial_password(FIRST_ADMINISTRATOR_USERNAME, current.instance_path)
    return InstanceState(
        release=current.release,
        build=get_running_build(),
        tier=current.tier,
        base_url=current.base_url,
        database=_describe_database(),
        missing=missing,
        worker_seen_at=seen_at,
        is_worker_alive=seen_at is not None
        and abs(get_current_time() - seen_at) < MAX_HOST_REPORT_AGE,
        first_password_of=FIRST_ADMINISTRATOR_USERNAME if is_first else None,
        risks=tuple(list_security_warnings(current)),
        former_tokens=list_legacy_admin_tokens(session=db.session(), now=get_current_time()),
        failing_streams=tuple(
            each
            for each in AUDIT_STREAM_KIND.list_all_destinations(
                session=db.session(), keyring=get_services().keyring, now=get_current_time()
            )
            if each.state is DestinationState.FAILING
        ),
        backup=(backup := get_backup_state(session=db.session())),
        is_backup_overdue=backup.is_overdue(get_current_time()),
        failed_jobs=tuple(
            each
            for each in list_failed_jobs(session=db.session())
            if get_current_time() - each.failed_at < FAILURE_DISPLAY_TIME
        ),
        ignored_variables=list_ignored_variables(),
    )


def find_last_worker_heartbeat() -> datetime | None:
    """Return the time of the last worker heartbeat, or None if it is unknown."""
    return _find_last_run(WORKER_HEARTBEAT_JOB)


def _find_last_run(job: str) -> datetime | None:
    """Return the time of a job's last run, or None if it is unknown.

    While the database is unavailable, return the last known time.
    """
    known = get_services().last_turns
    try:
        found = find_last_job_run(job, session=db.session())
    except SQLAlchemyError as error:
        db.session.rollback()
        told = {"job": job, "reason": type(error).__name__}
        _log.warning(
            "Last run of a job could not be read from the database.",
            extra={"event": "job.last_run_unknown", **told},
        )
        return known.get(job)
    if found is not None:
        known[job] = found
    return found


def list_database_independent_metrics(problem: str | None, *, build: Build) -> Sequence[Gauge]:
    """Return metrics that are available even while the database is not.

    Alerting rules must keep working while the database is unavailable. `problem` is the readiness
    problem.
    """
    return (
        Gauge(
            "gatebell_ready",
            "Whether requests can be served, with the reason if not; see /readyz.",
            int(problem is None),
            {"reason": problem or "ok"},
        ),
        Gauge(
            "gatebell_build_info",
            "The version and commit that this host runs, and the newest migration that it knows.",
            1,
            {
                "version": build.version,
                "commit": build.revision,
                "migration": get_newest_known_revision(),
            },
        ),
        Gauge(
            "gatebell_worker_last_seen_timestamp_seconds",
            "Time of the last heartbeat of a background worker, sent once a minute; 0 if never.",
            _to_timestamp(find_last_worker_heartbeat()),
        ),
        Gauge(
            "gatebell_prune_last_started_timestamp_seconds",
            "Time of the last start of pruning, which runs every ten minutes; 0 if never.",
            _to_timestamp(_find_last_run(PRUNE_JOB)),
        ),
        Gauge(
            "gatebell_database_pool_size",
            "Number of database connections in each of the two pools of a web process.",
            get_settings().database_pool_size,
        ),
    )


def _to_timestamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def _read_or_log_failure(subject: str, read_value: Callable[[], ReadResult]) -> ReadResult | None:
    """Return the result of `read_value`, or None if the database is unavailable.

    The failure is logged with the subject of the metrics.
    """
    try:
        return read_value()
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning(
            "Metrics for %s could not be read from the database.",
            subject,
            extra={
                "event": "metrics.unavailable",
                "metrics": subject,
                "reason": type(error).__name__,
            },
        )
        return None


def list_audit_stream_metrics() -> Sequence[AuditStreamMetrics]:
    """Return the states of the audit log's destinations, or an empty list if they are unknown."""
    moment = get_current_time()
    found = _read_or_log_failure(
        "audit streams",
        lambda: AUDIT_STREAM_KIND.list_all_destinations(
            session=db.session(), keyring=get_services().keyring, now=moment
        ),
    )
    return [
        AuditStreamMetrics(
            **get_column_values(each, AuditStreamMetrics),
            oldest_seconds=_get_age_seconds(each.oldest_event_at, moment),
            is_failing=each.state is DestinationState.FAILING,
        )
        for each in found or ()
    ]


def list_job_metrics() -> Sequence[Gauge]:
    """Return the times of the last successful and failed backup and of the last job failures."""
    known = get_services().last_backup
    found = _read_or_log_failure("backups", lambda: get_backup_state(session=db.session()))
    if found is not None:
        known["state"] = found
    state = known.get("state", BackupState())
    jobs = _read_or_log_failure("failed jobs", lambda: list_failed_jobs(session=db.session()))
    return (
        Gauge(
            "gatebell_backup_last_success_timestamp_seconds",
            "Time of the last successful `gatebell backup`; 0 if never.",
            _to_timestamp(state.succeeded_at),
        ),
        Gauge(
            "gatebell_backup_last_success_bytes",
            "Size of the last successful backup; 0 if there is none.",
            state.bytes or 0,
        ),
        Gauge(
            "gatebell_backup_last_failure_timestamp_seconds",
            "Time of the last failed `gatebell backup`; 0 if never.",
            _to_timestamp(state.failed_at),
        ),
        *(
            Gauge(
                "gatebell_task_last_failure_timestamp_seconds",
                "Time of the last failure of a job of the worker.",
                each.failed_at.timestamp(),
                {"task": each.name},
            )
            for each in jobs or ()
        ),
    )


def list_webhook_metrics() -> Sequence[Gauge]:
    """Return the backlog of all projects' webhooks, or an empty sequence if it is unknown."""
    found = _read_or_log_failure("webhooks", lambda: get_webhook_backlog(session=db.session()))
    if found is None:
        return ()
    waited = _get_age_seconds(found.oldest, get_current_time())
    return (
        Gauge("gatebell_webhook_backlog_deliveries", "Waiting deliveries.", found.deliveries),
        Gauge("gatebell_webhook_backlog_age_seconds", "Age of the oldest delivery.", waited),
        Gauge("gatebell_webhook_failing_endpoints", "Webhooks that are failing.", found.failing),
        Gauge("gatebell_webhook_paused_endpoints", "Webhooks paused by failures.", found.paused),
    )


def list_integration_metrics() -> Sequence[Gauge]:
    """Return the number of integrations that reject all deliveries, or an empty sequence.

    The sequence is empty if the number is unknown.
    """
    found = _read_or_log_failure(
        "integrations", lambda: count_rejecting_integrations(session=db.session())
    )
    if found is None:
        return ()
    words = "Integrations that worked before and have rejected all requests for ten minutes."
    return (Gauge("gatebell_integrations_rejecting", words, found),)


def list_mail_metrics() -> Sequence[Gauge]:
    """Return the state of the mail queue, or an empty sequence if it is unknown."""
    mail = _read_or_log_failure(
        "email", lambda: get_mail_queue_state(session=db.session(), now=get_current_time())
    )
    if mail is None:
        return ()
    return (
        Gauge("gatebell_mail_queue_messages", "Emails that wait to be sent.", mail.waiting),
        Gauge(
            "gatebell_mail_queue_age_seconds",
            "Age of the oldest waiting email.",
            _get_age_seconds(mail.oldest_at, get_current_time()),
        ),
        Gauge(
            "gatebell_mail_failing_messages",
            "Emails that wait for another attempt.",
            mail.failing,
        ),
    )


def list_queue_metrics() -> Sequence[Gauge]:
    """Return the state of each delivery queue, or an empty sequence if it is unknown."""
    moment = get_current_time()
    found = _read_or_log_failure(
        "queues",
        lambda: {each.name: each.get_state(db.session(), moment) for each in QUEUES},
    )
    families: tuple[tuple[str, str, Callable[[QueueState], float]], ...] = (
        ("gatebell_queue_waiting", "Items that wait in a queue.", lambda state: state.waiting),
        (
            "gatebell_queue_oldest_age_seconds",
            "Waiting time of the oldest item.",
            lambda state: _get_age_seconds(state.oldest_at, moment),
        ),
        (
            "gatebell_queue_failing",
            "Items or destinations whose last attempt failed.",
            lambda state: state.failing,
        ),
    )
    return [
        Gauge(name, words, get_value(state), {"queue": queue})
        for name, words, get_value in families
        for queue, state in (found or {}).items()
    ]


def _get_age_seconds(began_at: datetime | None, moment: datetime) -> float:
    return max((moment - began_at).total_seconds(), 0.0) if began_at else 0.0


def _describe_database() -> str:
    """Return the name and version of the database, such as `Postgres 16.2`."""
    kind = {"postgresql": "Postgres", "sqlite": "SQLite"}
    dialect = db.engine.dialect
    numbers = dialect.server_version_info or ()
    return f"{kind[dialect.name]} {'.'.join(str(each) for each in numbers)}".strip()
