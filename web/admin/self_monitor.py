"""What the self-monitor found last, for the overview of administrators and for /metrics."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from domain.self_monitor.checks import Check, MonitorState, monitor_state
from web.extensions import db
from web.metrics import Gauge
from web.services import now, settings
from web.settings.reader import Settings

_log = logging.getLogger("gatebell.self_monitor")


def self_monitor_state(current: Settings) -> MonitorState | None:
    """Return what the last check found; None while the self-monitor is off."""
    if not current.self_monitor_project:
        return None
    period = timedelta(seconds=current.self_monitor_interval_seconds)
    return monitor_state(period=period, session=db.session(), now=now())


def self_monitor_metrics() -> Sequence[Gauge]:
    """Return the gauges of the last check; none if there was none or it is unknown."""
    try:
        found = self_monitor_state(settings())
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning(
            "the state of the self-monitor is unknown", extra={"reason": type(error).__name__}
        )
        return ()
    if found is None or found.last is None:
        return ()
    success = found.last_success_at.timestamp() if found.last_success_at else 0.0
    return (
        Gauge("gatebell_self_monitor_up", "Whether the last check went well.", int(found.is_well)),
        Gauge(
            "gatebell_self_monitor_last_success_timestamp_seconds",
            "When the last check that succeeded began.",
            success,
        ),
        *_lengths(found.last),
    )


def _lengths(last: Check) -> Sequence[Gauge]:
    lengths = (
        ("gatebell_self_monitor_stored_seconds", "taken by the public URL", last.stored),
        ("gatebell_self_monitor_paged_seconds", "paged", last.paged),
        ("gatebell_self_monitor_resolved_seconds", "resolved", last.resolved),
    )
    return [
        Gauge(name, f"How long the alert took to be {words}.", length / _SECOND)
        for name, words, length in lengths
        if length is not None
    ]


_SECOND = timedelta(seconds=1)
