"""The state of the instance, for the overview page of the administration."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from domain.audit.streaming.destinations import StreamView, list_streams
from domain.mail.queue_state import queue_state
from domain.outgoing.states import DestinationState
from domain.programs.hosts import SILENCE
from domain.programs.job_turns import PRUNE, WORKER_HEARTBEAT, last_turn
from domain.self_monitor.checks import MonitorState
from domain.webhooks.upkeep import backlog
from web.admin.security_warnings import SecurityWarning, security_warnings
from web.admin.self_monitor import self_monitor_state
from web.admin.setting_changes import settings_now
from web.extensions import db
from web.metrics import AuditStreamMetrics, Gauge
from web.readiness import readiness_problem
from web.server.bootstrap import FIRST_USERNAME, has_first_password
from web.services import now, settings

_log = logging.getLogger("gatebell.worker")


@dataclass(frozen=True, kw_only=True)
class InstanceState:
    """The state of the instance."""

    release: str
    tier: str
    base_url: str
    database: str
    #: The readiness problem in a few words; None if there is none.
    missing: str | None
    worker_seen_at: datetime | None
    is_worker_alive: bool
    #: The first administrator's user name while the generated password is still in use.
    first_password_of: str | None
    risks: tuple[SecurityWarning, ...]
    #: Destinations of the audit log that have taken nothing for a day.
    failing_streams: tuple[StreamView, ...]
    #: None while the self-monitor is off.
    self_monitor: MonitorState | None


def state_of_the_instance() -> InstanceState:
    """Return the state of the settings, the database and the background worker."""
    current = settings_now(session=db.session())
    seen_at = worker_seen_at()
    return InstanceState(
        release=current.release,
        tier=current.tier,
        base_url=current.base_url,
        database=_database(),
        missing=readiness_problem(),
        worker_seen_at=seen_at,
        is_worker_alive=seen_at is not None and now() - seen_at < SILENCE,
        first_password_of=FIRST_USERNAME if has_first_password(FIRST_USERNAME) else None,
        risks=tuple(security_warnings(current)),
        failing_streams=tuple(
            each
            for each in list_streams(session=db.session(), now=now())
            if each.state is DestinationState.FAILING
        ),
        self_monitor=self_monitor_state(current),
    )


def worker_seen_at() -> datetime | None:
    """Return the time of the last worker heartbeat; None if there was none or it is unknown."""
    try:
        return last_turn(WORKER_HEARTBEAT, session=db.session())
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning("the state of the worker is unknown", extra={"reason": type(error).__name__})
        return None


def audit_stream_metrics() -> Sequence[AuditStreamMetrics]:
    """Return the state of the destinations of the audit log; none if it is unknown."""
    moment = now()
    try:
        found = list_streams(session=db.session(), now=moment)
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning(
            "the state of audit streams is unknown", extra={"reason": type(error).__name__}
        )
        return ()
    return [
        AuditStreamMetrics(
            id=each.id,
            backlog=each.backlog,
            oldest_seconds=_age(each.oldest_event_at, moment),
            failures=each.failures,
            is_failing=each.state is DestinationState.FAILING,
            dropped=each.dropped,
        )
        for each in found
    ]


def webhook_metrics() -> Sequence[Gauge]:
    """Return what waits for the webhooks of all projects; nothing if it is unknown."""
    try:
        found = backlog(session=db.session())
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning("the state of webhooks is unknown", extra={"reason": type(error).__name__})
        return ()
    waited = _age(found.oldest, now())
    return (
        Gauge("gatebell_webhook_backlog_deliveries", "Deliveries that wait.", found.deliveries),
        Gauge("gatebell_webhook_backlog_age_seconds", "How long the oldest has waited.", waited),
        Gauge("gatebell_webhook_failing_endpoints", "Webhooks that failed last.", found.failing),
        Gauge("gatebell_webhook_paused_endpoints", "Webhooks paused by failures.", found.paused),
    )


def upkeep_metrics() -> Sequence[Gauge]:
    """Return what waits in the outbox, and when pruning began; nothing if it is unknown."""
    try:
        mail, pruned_at = queue_state(session=db.session()), last_turn(PRUNE, session=db.session())
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning("the state of e-mail is unknown", extra={"reason": type(error).__name__})
        return ()
    pruning = Gauge(
        "gatebell_prune_last_started_timestamp_seconds",
        "When pruning began last; every ten minutes.",
        pruned_at.timestamp() if pruned_at else 0.0,
    )
    return (
        *([pruning] if pruned_at else []),
        Gauge("gatebell_mail_queue_messages", "E-mail that waits to be sent.", mail.waiting),
        Gauge(
            "gatebell_mail_queue_age_seconds",
            "How long the oldest has waited.",
            _age(mail.oldest_at, now()),
        ),
        Gauge(
            "gatebell_mail_failing_messages",
            "E-mail that waits because an attempt has failed.",
            mail.failing,
        ),
        Gauge(
            "gatebell_database_pool_size",
            "Connections to the database of each of the two pools of a web process.",
            settings().database_pool_size,
        ),
    )


def _age(began_at: datetime | None, moment: datetime) -> float:
    return max((moment - began_at).total_seconds(), 0.0) if began_at else 0.0


def _database() -> str:
    """Return the name and the version of the database: `Postgres 16.2`."""
    kind = {"postgresql": "Postgres", "sqlite": "SQLite"}
    dialect = db.engine.dialect
    numbers = dialect.server_version_info or ()
    return f"{kind[dialect.name]} {'.'.join(str(each) for each in numbers)}".strip()
