"""Prometheus metrics for the notification queue, by type of contact."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.housekeeping.clock_corrections import count_future_times
from domain.paging.notifications.message_queue_state import (
    ContactTypeState,
    count_overdue_pages,
    find_contact_type_states,
)
from domain.paging.notifications.states import ENDED_STATES
from web.database.errors import SQLAlchemyError
from web.extensions import db
from web.services import get_current_time

_log = logging.getLogger("gatebell.pages")
_TYPE_LABEL = "channel"


def build_queue_collectors() -> Sequence[Collector]:
    """Return a list with the queue metrics collector.

    Return an empty list if the database cannot be read.
    """
    try:
        session, moment = db.session(), get_current_time()
        return [
            _MessageMetricsCollector(
                find_contact_type_states(session=session, now=moment),
                moment,
                overdue=count_overdue_pages(session=session, now=moment),
                ahead=sum(count_future_times(session=session, now=moment).values()),
            )
        ]
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning(
            "Metrics for %s could not be read from the database.",
            "pages",
            extra={
                "event": "metrics.unavailable",
                "metrics": "pages",
                "reason": type(error).__name__,
            },
        )
        return ()


@dataclass(frozen=True)
class _MessageMetricsCollector(Collector):
    """A collector of message metrics for each type of contact."""

    states: Sequence[ContactTypeState]
    moment: datetime
    overdue: int
    #: Number of stored due times from a clock that ran ahead.
    ahead: int

    def collect(self) -> Iterator[Metric]:
        """Return gauges of queued messages, and counters of messages by outcome."""
        depth = GaugeMetricFamily(
            "gatebell_page_queue_messages",
            "Number of messages waiting to be sent.",
            labels=[_TYPE_LABEL],
        )
        age = GaugeMetricFamily(
            "gatebell_page_queue_age_seconds",
            "Age of the oldest queued message in seconds.",
            labels=[_TYPE_LABEL],
        )
        failing = GaugeMetricFamily(
            "gatebell_page_failing_contacts",
            "Number of contacts with queued messages and a failed last attempt.",
            labels=[_TYPE_LABEL],
        )
        ended = CounterMetricFamily(
            "gatebell_page_messages", "Messages by outcome.", labels=[_TYPE_LABEL, "outcome"]
        )
        failed = CounterMetricFamily(
            "gatebell_page_failed_attempts",
            "Failed attempts to send a message to a contact.",
            labels=[_TYPE_LABEL],
        )
        for each in self.states:
            failed.add_metric([each.type.name], each.failed_attempts)
            waited = (self.moment - each.oldest_at).total_seconds() if each.oldest_at else 0.0
            depth.add_metric([each.type.name], each.waiting)
            age.add_metric([each.type.name], max(waited, 0.0))
            failing.add_metric([each.type.name], each.failing)
            for outcome in ENDED_STATES:
                ended.add_metric([each.type.name, outcome.value], each.ended[outcome])
        overdue = GaugeMetricFamily(
            "gatebell_pages_overdue",
            "Number of pages and messages that are more than a minute overdue.",
            value=self.overdue,
        )
        ahead = GaugeMetricFamily(
            "gatebell_times_ahead_of_clock",
            "Number of stored due times that were set by a clock that ran ahead.",
            value=self.ahead,
        )
        yield from (depth, age, failing, ended, failed, overdue, ahead)
