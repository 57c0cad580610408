"""Computes the figures of reports, without access to the database.

Alerts and pages are counted one by one and then discarded. Only two durations of each alert are
stored.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from statistics import median

from domain.alerts.listing.filters import OPEN_STATUSES, SEVERITIES
from domain.alerts.storing.lifecycle import RESOLVED
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.on_call.schedule_plans import Period
from domain.reports.report_queries import CountedAlert, CountedPage, StatusEntry
from domain.reports.types import (
    AnswerKind,
    PageAnswer,
    PersonFigures,
    ReportTotals,
    ResponseTimes,
    TrendPoint,
    TrendUnit,
)

#: Hours at which the night starts and ends, in the user's time zone.
_NIGHT_START_HOUR, _NIGHT_END_HOUR = 22, 7
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_ACKNOWLEDGED = "acknowledged"
_ANSWER_STATUSES = (_ACKNOWLEDGED, RESOLVED, "ignored")


def list_statuses_set_by_users(alert: CountedAlert) -> list[StatusEntry]:
    """Return the statuses that users set for an alert."""
    return [each for each in alert.entries if not each.is_automatic]


def find_first_answer(alert: CountedAlert, paged_at: datetime) -> PageAnswer:
    """Return the first answer to a page for an alert."""
    ended_at = _find_automatic_end(alert)
    answers = (
        each for each in list_statuses_set_by_users(alert) if each.status in _ANSWER_STATUSES
    )
    answer = next((each for each in answers if each.at >= paged_at), None)
    if answer and not (ended_at and paged_at <= ended_at < answer.at):
        seconds = int((answer.at - paged_at).total_seconds())
        kind, by = AnswerKind(answer.status), answer.by or None
        return PageAnswer(kind=kind, at=answer.at, by=by, seconds=seconds)
    if ended_at and ended_at >= paged_at:
        seconds = int((ended_at - paged_at).total_seconds())
        return PageAnswer(kind=AnswerKind.ENDED, at=ended_at, by=None, seconds=seconds)
    # A closed alert had ended before the page was queued.
    kind = AnswerKind.NONE if alert.status in OPEN_STATUSES else AnswerKind.ENDED
    return PageAnswer(kind=kind, at=None, by=None, seconds=None)


def _find_automatic_end(alert: CountedAlert) -> datetime | None:
    if alert.recovery_received_at is not None:
        return alert.recovery_received_at
    resolved = [each for each in alert.entries if each.status == RESOLVED]
    if resolved:
        return resolved[-1].at if resolved[-1].is_automatic else None
    # The alert was resolved by a report whose time of receipt was not stored.
    return alert.ended_at if alert.status == RESOLVED else None


def is_self_resolved(alert: CountedAlert, duration: timedelta) -> bool:
    """Return whether an alert ended within a given time, before any user changed its status."""
    if alert.status != RESOLVED or alert.ended_at is None or list_statuses_set_by_users(alert):
        return False
    return alert.ended_at - alert.started_at <= duration


@dataclass
class _ResponseDurations:
    """Response times of alerts with the same severity, in seconds."""

    alerts: int = 0
    acknowledged: "array[float]" = field(default_factory=lambda: array("d"))
    resolved: "array[float]" = field(default_factory=lambda: array("d"))

    def count_alert(self, alert: CountedAlert, acknowledgement: StatusEntry | None) -> None:
        """Add the response times of an alert."""
        self.alerts += 1
        if acknowledgement is not None:
            self.acknowledged.append(_compute_duration(alert.created_at, acknowledgement.at))
        if alert.status == RESOLVED and alert.ended_at:
            self.resolved.append(_compute_duration(alert.started_at, alert.ended_at))

    def compute_times(self, severity: str | None) -> ResponseTimes:
        """Return the medians and 90th percentiles of the response times."""
        return ResponseTimes(
            severity=severity,
            alerts=self.alerts,
            acknowledged=len(self.acknowledged),
            acknowledge_median=median(self.acknowledged) if self.acknowledged else None,
            acknowledge_90th=compute_percentile(self.acknowledged, 90),
            resolved=len(self.resolved),
            resolve_median=median(self.resolved) if self.resolved else None,
            resolve_90th=compute_percentile(self.resolved, 90),
        )


class TimeBuckets:
    """The hours, days or weeks in a period. A day lasts 23 to 25 hours when clocks change."""

    def __init__(self, period: Period, time_zone: str) -> None:
        """Divide a period into hours, days or weeks.

        The first week starts on the first day of the period.
        """
        length, place = period.end - period.start, get_zone(time_zone)
        self.starts: list[datetime] = []
        if length <= 2 * _DAY:
            self.unit = TrendUnit.HOUR
            start = period.start.replace(minute=0, second=0, microsecond=0)
            while start < period.end:
                self.starts.append(start)
                start += _HOUR
            return
        self.unit = TrendUnit.DAY if length <= 35 * _DAY else TrendUnit.WEEK
        day = datetime.combine(convert_to_local(period.start, place).date(), time())
        while (start := convert_to_utc(day, place)) < period.end:
            self.starts.append(start)
            day += _DAY if self.unit is TrendUnit.DAY else 7 * _DAY

    def find_index(self, moment: datetime) -> int:
        """Return the index of the bucket that contains a time."""
        return max(bisect_right(self.starts, moment) - 1, 0)


class ReportFigures:
    """Counters for the figures of a report."""

    def __init__(self, time_zone: str, period: Period) -> None:
        """Initialize all figures to zero.

        `time_zone` determines the boundaries of days and hours.
        """
        self._zone = get_zone(time_zone)
        self.buckets = TimeBuckets(period, time_zone)
        self._trend = [_ResponseDurations() for _ in self.buckets.starts]
        self._durations_by_severity: dict[str, _ResponseDurations] = defaultdict(_ResponseDurations)
        self._acknowledged = Counter[str]()
        self._pages = Counter[str]()
        self._nights: dict[str, set[date]] = defaultdict(set)
        self._weekday_hours = Counter[tuple[int, int]]()
        self._answers = Counter[AnswerKind]()
        self._paged_incidents = 0
        self._user_ids: set[int] = set()
        self._all_pages = 0

    def count_alert(self, alert: CountedAlert) -> None:
        """Count an alert that started in the period, and add its response times."""
        first = next(
            (e for e in list_statuses_set_by_users(alert) if e.status == _ACKNOWLEDGED), None
        )
        if first is not None:
            self._acknowledged[first.by] += 1
        bucket = self._trend[self.buckets.find_index(alert.started_at)]
        for lengths in (self._durations_by_severity[alert.severity], bucket):
            lengths.count_alert(alert, first)

    def count_answer(self, alert: CountedAlert, paged_at: datetime) -> None:
        """Count the kind of answer to the first page about an alert or incident in the period."""
        self._paged_incidents += alert.is_incident
        self._answers[find_first_answer(alert, paged_at).kind] += 1

    def count_page(self, page: CountedPage) -> None:
        """Count a page by user, night, weekday and hour of the day."""
        self._all_pages += 1
        if page.channel_id is None:
            local = convert_to_local(page.at, self._zone)
            self._weekday_hours[local.weekday(), local.hour] += 1
        if page.user_id is not None:
            self._user_ids.add(page.user_id)
        if page.user is not None:
            self._pages[page.user] += 1
            if (night := _find_night(page)) is not None:
                self._nights[page.user].add(night)

    def build_totals(self) -> ReportTotals:
        """Return the total numbers of alerts, incidents, pages and paged users."""
        ended, unanswered = self._answers[AnswerKind.ENDED], self._answers[AnswerKind.NONE]
        paged = self._answers.total()
        return ReportTotals(
            alerts=sum(each.alerts for each in self._durations_by_severity.values()),
            acknowledged=self._acknowledged.total(),
            pages=self._all_pages,
            people=len(self._user_ids),
            paged_alerts=paged - self._paged_incidents,
            paged_incidents=self._paged_incidents,
            answered=paged - ended - unanswered,
            ended_by_themselves=ended,
            unanswered=unanswered,
        )

    def build_response_times(self) -> list[ResponseTimes]:
        """Return the response times for all alerts, and for each severity."""
        words = [word.value for word in SEVERITIES if word.value in self._durations_by_severity]
        together = _ResponseDurations()
        for word in words:
            lengths = self._durations_by_severity[word]
            together.alerts += lengths.alerts
            together.acknowledged += lengths.acknowledged
            together.resolved += lengths.resolved
        return [
            together.compute_times(None),
            *(self._durations_by_severity[word].compute_times(word) for word in words),
        ]

    def build_trend(self) -> list[TrendPoint]:
        """Return the response times for each hour, day or week."""
        return [
            TrendPoint.model_validate({**dict(lengths.compute_times(None)), "starts_at": start})
            for start, lengths in zip(self.buckets.starts, self._trend, strict=True)
        ]

    def build_user_figures(self) -> list[PersonFigures]:
        """Return the figures of each user, most paged users first."""
        figures = [
            PersonFigures(
                user=name,
                pages=self._pages[name],
                acknowledged=self._acknowledged[name],
                nights=len(self._nights.get(name, ())),
            )
            # An empty name stands for the command line.
            for name in (self._pages.keys() | self._acknowledged.keys()) - {""}
        ]
        return sorted(figures, key=lambda each: (-each.pages, -each.acknowledged, each.user))

    def count_pages_by_hour(self) -> list[int]:
        """Return the number of pages to users by hour of the day."""
        return [sum(column) for column in zip(*self.count_pages_by_weekday(), strict=True)]

    def count_pages_by_weekday(self) -> list[list[int]]:
        """Return the number of pages to users by weekday and hour of the day."""
        return [[self._weekday_hours[day, hour] for hour in range(24)] for day in range(7)]


def _find_night(page: CountedPage) -> date | None:
    """Return the date on which a page's night started, or None if the page was sent by day."""
    if page.accepted_at is None or page.time_zone is None:
        return None
    local = convert_to_local(page.accepted_at, get_zone(page.time_zone))
    if local.hour >= _NIGHT_START_HOUR:
        return local.date()
    return local.date() - _DAY if local.hour < _NIGHT_END_HOUR else None


def _compute_duration(begin: datetime, end: datetime) -> float:
    """Return a duration in seconds, or 0 if it would be negative because a clock is ahead."""
    return max((end - begin).total_seconds(), 0.0)


def compute_percentile(lengths: Iterable[float], percent: int) -> float | None:
    """Return a percentile by the nearest-rank method, or None if there are no values."""
    ordered = sorted(lengths)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else None
