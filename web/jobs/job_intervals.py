"""All jobs that a worker runs, with their intervals."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from domain.core.hosts import PRUNE_JOB, WORKER_HEARTBEAT_JOB
from domain.housekeeping.pruning import DeliveryCheckProgress
from web.jobs.alert_changes import AlertBatchJob, list_alert_change_jobs, open_waiting_incidents
from web.jobs.backchannel_logout import BackchannelLogoutJob
from web.jobs.clock_corrections import ClockCorrectionJob
from web.jobs.destinations import AuditStreamJob, WebhookDeliveryJob
from web.jobs.escalations import EscalationJob, PendingEscalationJob
from web.jobs.heartbeats import HeartbeatJob
from web.jobs.identities import check_identities
from web.jobs.mail import (
    MailJob,
    queue_assignment_notices,
    queue_due_mail,
    record_rejecting_integrations,
)
from web.jobs.on_call_calendars import queue_conflict_mail, refresh_calendars
from web.jobs.paging import PagingJob
from web.jobs.repositories import pack_repositories, run_registry_removals
from web.jobs.retention import (
    assign_alerts_to_monitors,
    deactivate_idle_accounts,
    encrypt_stored_secrets,
    pause_unauthorized_webhooks,
    record_on_call_eligibility,
    resolve_unreported_alerts,
    run_deletions,
    run_prune,
    seal_audit_events,
    update_daily_counts,
)
from web.jobs.scheduler import Job, PeriodicJob, PerWorkerJob
from web.settings.environment import Settings

_MINUTE = timedelta(minutes=1)
_TEN_MINUTES = timedelta(minutes=10)
_HOUR = timedelta(hours=1)


class WorkerHeartbeatJob(PeriodicJob):
    """Job that does nothing. Its regular claim shows that a worker is running."""

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
        EscalationJob(settings),
        PendingEscalationJob(settings),
        HeartbeatJob(settings),
        AlertBatchJob(settings),
        WebhookDeliveryJob(settings),
        AuditStreamJob(settings),
        MailJob(settings),
        BackchannelLogoutJob(settings),
        ClockCorrectionJob(settings),
        WorkerHeartbeatJob(settings),
        once("add_up", _MINUTE, update_daily_counts),
        once("seal_audit_events", _MINUTE, seal_audit_events),
        once("monitors", _MINUTE, assign_alerts_to_monitors),
        once("rejections", _MINUTE, record_rejecting_integrations),
        once("silent", _MINUTE, resolve_unreported_alerts),
        once("incidents", _MINUTE, open_waiting_incidents),
        once("delete", _MINUTE, run_deletions),
        once("encrypt", _MINUTE, encrypt_stored_secrets),
        once("pause_webhooks", _MINUTE, pause_unauthorized_webhooks),
        once("check_identities", _MINUTE, check_identities),
        once(
            PRUNE_JOB, _TEN_MINUTES, partial(run_prune, checked_deliveries=DeliveryCheckProgress())
        ),
        once("note_who_can_be_on_call", _TEN_MINUTES, record_on_call_eligibility),
        once("on_call_calendars", _MINUTE, refresh_calendars),
        once("on_call_conflicts", _TEN_MINUTES, queue_conflict_mail),
        once("deactivate", _HOUR, deactivate_idle_accounts),
        once("queue_mail", _TEN_MINUTES, queue_due_mail),
        each("queue_assignments", _MINUTE, queue_assignment_notices),
        each("remove_from_registry", _MINUTE, run_registry_removals),
        each("pack_repositories", _HOUR, pack_repositories),
    )
