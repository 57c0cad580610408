"""Prometheus metrics of the page queue, by type of contact."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from domain.housekeeping.clock_corrections import times_ahead
from domain.paging.notifications.queue_state import TypeState, count_overdue, states_by_type
from domain.paging.notifications.states import ENDED
from web.database.errors import SQLAlchemyError
from web.extensions import db
from web.services import now

_log = logging.getLogger("gatebell.pages")
_LABEL = "channel"


def page_metrics() -> Sequence[Collector]:
    """Return the collector of page metrics, or an empty list if the database cannot be read."""
    try:
        session, moment = db.session(), now()
        return [
            _Pages(
                states_by_type(session=session, now=moment),
                moment,
                overdue=count_overdue(session=session, now=moment),
                ahead=sum(times_ahead(session=session, now=moment).values()),
            )
        ]
    except SQLAlchemyError as error:
        db.session.rollback()
        _log.warning(
            "Metrics of %s could not be read from the database.",
            "pages",
            extra={
                "event": "metrics.unavailable",
                "metrics": "pages",
                "reason": type(error).__name__,
            },
        )
        return ()


@dataclass(frozen=True)
class _Pages(Collector):
    """A collector of message metrics for each type of contact."""

    states: Sequence[TypeState]
    moment: datetime
    overdue: int
    #: Number of stored times that are ahead of the clock.
    ahead: int

    def collect(self) -> Iterator[Metric]:
        """Return gauges of queued messages, and counters of messages by outcome."""
        depth = GaugeMetricFamily(
            "gatebell_page_queue_messages", "Messages that wait to be sent.", labels=[_LABEL]
        )
        age = GaugeMetricFamily(
            "gatebell_page_queue_age_seconds", "How long the oldest has waited.", labels=[_LABEL]
        )
        failing = GaugeMetricFamily(
            "gatebell_page_failing_contacts",
            "Contacts whose last attempt failed and for which something waits.",
            labels=[_LABEL],
        )
        ended = CounterMetricFamily(
            "gatebell_page_messages", "Messages by how they ended.", labels=[_LABEL, "outcome"]
        )
        failed = CounterMetricFamily(
            "gatebell_page_failed_attempts",
            "Attempts to send something to a contact that failed.",
            labels=[_LABEL],
        )
        for each in self.states:
            failed.add_metric([each.type.name], each.failed_attempts)
            waited = (self.moment - each.oldest_at).total_seconds() if each.oldest_at else 0.0
            depth.add_metric([each.type.name], each.waiting)
            age.add_metric([each.type.name], max(waited, 0.0))
            failing.add_metric([each.type.name], each.failing)
            for outcome in ENDED:
                ended.add_metric([each.type.name, outcome.value], each.ended[outcome])
        overdue = GaugeMetricFamily(
            "gatebell_pages_overdue",
            "Pages that should have been sent more than a minute ago.",
            value=self.overdue,
        )
        ahead = GaugeMetricFamily(
            "gatebell_times_ahead_of_clock",
            "Stored times that something waits for and that a clock which ran ahead has stored.",
            value=self.ahead,
        )
        yield from (depth, age, failing, ended, failed, overdue, ahead)
