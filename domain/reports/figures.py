"""Counts what reports show. Values in, values out: nothing here reads a database."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from domain.alerts.listing.filters import OPEN_STATUSES, SEVERITIES
from domain.alerts.storing.lifecycle import RESOLVED
from domain.reports.rows import CountedAlert, CountedPage, StatusEntry
from domain.reports.types import (
    AnswerKind,
    PageAnswer,
    PersonFigures,
    ReportTotals,
    ResponseTimes,
)
from domain.time_zones import wall_time, zone

#: By the clock of whoever sleeps.
_SLEEP_BEGINS, _SLEEP_ENDS = 22, 7
_DAY = timedelta(days=1)
_ANSWERS = ("acknowledged", RESOLVED, "ignored")
_WAITS = PageAnswer(kind=AnswerKind.NONE, at=None, by=None, seconds=None)
#: It was over when the page was queued.
_ENDED = PageAnswer(kind=AnswerKind.ENDED, at=None, by=None, seconds=None)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What there is to count."""

    alerts: Sequence[CountedAlert]
    pages: Sequence[CountedPage]
    #: By the id of the alert, in their order.
    entries: Mapping[int, Sequence[StatusEntry]]

    def by_people(self, alert: CountedAlert) -> list[StatusEntry]:
        """Return the statuses that people gave an alert."""
        return [each for each in self.entries.get(alert.id, ()) if not each.is_by_itself]

    def answer_to(self, page: CountedPage) -> PageAnswer:
        """Return the first answer to a page."""
        ended_at = self._ended_by_itself(page.alert)
        answer = next(
            (
                each
                for each in self.by_people(page.alert)
                if each.status in _ANSWERS and each.at >= page.at
            ),
            None,
        )
        if answer and not (ended_at and page.at <= ended_at < answer.at):
            seconds = _seconds(answer.at - page.at)
            kind, by = AnswerKind(answer.status), answer.by or None
            return PageAnswer(kind=kind, at=answer.at, by=by, seconds=seconds)
        if ended_at and ended_at >= page.at:
            seconds = _seconds(ended_at - page.at)
            return PageAnswer(kind=AnswerKind.ENDED, at=ended_at, by=None, seconds=seconds)
        return _WAITS if page.alert.status in OPEN_STATUSES else _ENDED

    def _ended_by_itself(self, alert: CountedAlert) -> datetime | None:
        if alert.recovery_received_at is not None:
            return alert.recovery_received_at
        resolved = [each for each in self.entries.get(alert.id, ()) if each.status == RESOLVED]
        if resolved:
            return resolved[-1].at if resolved[-1].is_by_itself else None
        # Of a report whose arrival was not noted.
        return alert.ended_at if alert.status == RESOLVED else None

    def acknowledgement(self, alert: CountedAlert) -> StatusEntry | None:
        """Return the first acknowledgement of an alert by a person."""
        return next((each for each in self.by_people(alert) if each.status == "acknowledged"), None)

    def ended_alone(self, alert: CountedAlert, within: timedelta) -> bool:
        """Return whether an alert ended so soon before anybody did anything."""
        if alert.status != RESOLVED or alert.ended_at is None or self.by_people(alert):
            return False
        return alert.ended_at - alert.started_at <= within

    def totals(self) -> ReportTotals:
        """Return what happened, in numbers."""
        first_pages: dict[int, CountedPage] = {}
        for page in self.pages:
            first_pages.setdefault(page.alert.id, page)
        answers = Counter(self.answer_to(page).kind for page in first_pages.values())
        ended, unanswered = answers[AnswerKind.ENDED], answers[AnswerKind.NONE]
        return ReportTotals(
            alerts=len(self.alerts),
            acknowledged=sum(self.acknowledgement(each) is not None for each in self.alerts),
            pages=len(self.pages),
            people=len({page.user_id for page in self.pages} - {None}),
            paged_alerts=len(first_pages),
            answered=len(first_pages) - ended - unanswered,
            ended_by_themselves=ended,
            unanswered=unanswered,
        )

    def times(self) -> list[ResponseTimes]:
        """Return how long alerts took: all of them, and by severity."""
        by_severity: dict[str, list[CountedAlert]] = defaultdict(list)
        for each in self.alerts:
            by_severity[each.severity].append(each)
        parts = [(word.value, by_severity[word.value]) for word in SEVERITIES]
        return [self._times(None, self.alerts), *(self._times(*part) for part in parts if part[1])]

    def _times(self, severity: str | None, alerts: Sequence[CountedAlert]) -> ResponseTimes:
        answered = [(each, self.acknowledgement(each)) for each in alerts]
        acknowledged = [_length(each.created_at, found.at) for each, found in answered if found]
        resolved = [
            _length(each.started_at, each.ended_at)
            for each in alerts
            if each.status == RESOLVED and each.ended_at
        ]
        return ResponseTimes(
            severity=severity,
            alerts=len(alerts),
            acknowledged=len(acknowledged),
            acknowledge_median=_median(acknowledged),
            acknowledge_90th=percentile(acknowledged, 90),
            resolved=len(resolved),
            resolve_median=_median(resolved),
            resolve_90th=percentile(resolved, 90),
        )

    def people(self) -> list[PersonFigures]:
        """Return what the period was like for each person, the most paged first."""
        pages = Counter(page.user for page in self.pages if page.user is not None)
        found = (self.acknowledgement(each) for each in self.alerts)
        acknowledged = Counter(each.by for each in found if each and each.by)
        nights: dict[str | None, set[date]] = defaultdict(set)
        for page in self.pages:
            if (night := _night_of(page)) is not None:
                nights[page.user].add(night)
        figures = [
            PersonFigures(
                user=name,
                pages=pages[name],
                acknowledged=acknowledged[name],
                nights=len(nights.get(name, ())),
            )
            for name in pages.keys() | acknowledged.keys()
        ]
        return sorted(figures, key=lambda each: (-each.pages, -each.acknowledged, each.user))

    def hours(self, time_zone: str) -> list[int]:
        """Return the pages to people by the hour of the day."""
        place = zone(time_zone)
        counts = Counter(
            wall_time(page.at, place).hour for page in self.pages if page.channel_id is None
        )
        return [counts[hour] for hour in range(24)]


def _night_of(page: CountedPage) -> date | None:
    """Return the day on which the night began in which a page reached somebody, or None."""
    if page.accepted_at is None or page.time_zone is None:
        return None
    local = wall_time(page.accepted_at, zone(page.time_zone))
    if local.hour >= _SLEEP_BEGINS:
        return local.date()
    return local.date() - _DAY if local.hour < _SLEEP_ENDS else None


def _seconds(length: timedelta) -> int:
    return int(length.total_seconds())


def _length(begin: datetime, end: datetime) -> float:
    """Return seconds; clocks of senders may be ahead."""
    return max((end - begin).total_seconds(), 0.0)


def _median(lengths: Sequence[float]) -> float | None:
    return median(lengths) if lengths else None


def percentile(lengths: Iterable[float], percent: int) -> float | None:
    """Return the least of the values that so many percent do not exceed (nearest rank)."""
    ordered = sorted(lengths)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else None
