"""Compares a report with the preceding period, and measures the time that users were on call."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from domain.access.actor import UnitOfWork
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.escalations.types import PAGE_RETENTION
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedules import list_all_schedules
from domain.paging.on_call.shifts import compute_balance, find_shifts_by_schedule
from domain.projects.views import ProjectOrGroup
from domain.reports import report_queries
from domain.reports.figures import ReportFigures
from domain.reports.report_builder import find_report_scope
from domain.reports.report_queries import ReportFilter
from domain.reports.types import PersonFigures, Report

_DAY = timedelta(days=1)


class PreviousFigures(NamedTuple):
    """The figures of the period that precedes a report."""

    #: Name of the period, such as `the 7 days before`.
    name: str
    alerts: int
    pages: int
    #: Median time to acknowledge, in seconds. None if no alert was acknowledged.
    acknowledge_median: float | None
    #: Number of nights in which a user was paged, summed over all users.
    nights: int


class Comparison(NamedTuple):
    """The figures of a report and of the preceding period, and the on-call load of each user."""

    previous: PreviousFigures | None
    #: Name, value and previous value of each figure at the start of the report. The last value is
    #: true for a duration in seconds.
    key_figures: Sequence[tuple[str, float | None, float | None, bool]]
    #: Figures of each person who was paged or on call, and the seconds on call.
    loads: Sequence[tuple[PersonFigures, int]]


def compare_figures(
    report: Report, previous: PreviousFigures | None, on_call: Mapping[str, int]
) -> Comparison:
    """Return the comparison of a report with the preceding period.

    `on_call` maps usernames to seconds on call.
    """
    others = sorted(on_call.keys() - {each.user for each in report.people})
    added = (PersonFigures(user=name, pages=0, acknowledged=0, nights=0) for name in others)
    loads = [(each, on_call.get(each.user, 0)) for each in (*report.people, *added)]
    before: Any = previous or (None,) * len(PreviousFigures._fields)
    nights = sum(each.nights for each in report.people)
    median_time = report.times[0].acknowledge_median
    key_figures = (
        ("Alerts", report.totals.alerts, before[1], False),
        ("Pages", report.totals.pages, before[2], False),
        ("Nights with a page", nights, before[4], False),
        ("Median time to acknowledge", median_time, before[3], True),
    )
    return Comparison(previous, key_figures, loads)


def find_previous_figures(
    work: UnitOfWork, holder: ProjectOrGroup, period: Period, time_zone: str
) -> PreviousFigures | None:
    """Return the figures of the preceding period, or None if its data is missing or incomplete.

    The preceding period starts whole days earlier, so that a night is compared with the night
    before. A period that has not ended is compared with the same part of the preceding period.
    """
    if period.start >= work.now:
        return None
    name, previous = _find_preceding_period(period, time_zone, work.now)
    scope, session = find_report_scope(work, holder), work.session
    wanted = ReportFilter(project_ids=tuple(scope.projects), within=previous)
    if previous.start < work.now - PAGE_RETENTION or not report_queries.has_alerts_before(
        wanted.project_ids, period.start, session=session
    ):
        return None
    figures = ReportFigures(time_zone, previous)
    for page in report_queries.read_pages(wanted, session=session):
        figures.count_page(page)
    lengths = [*report_queries.read_acknowledgement_times(wanted, session=session)]
    return PreviousFigures(
        name,
        report_queries.count_alerts(wanted, session=session),
        figures.build_totals().pages,
        median(lengths) if lengths else None,
        sum(each.nights for each in figures.build_user_figures()),
    )


def _find_preceding_period(period: Period, time_zone: str, now: datetime) -> tuple[str, Period]:
    """Return the name and the times of the preceding period.

    If the period ends after `now`, the preceding period is shortened by the same amount.
    """
    place, until = get_zone(time_zone), min(period.end, now)
    start, end, cut = (convert_to_local(each, place) for each in (period.start, period.end, until))
    days = max(math.ceil((end - start) / _DAY), 1)
    name = f"{days} days" if days > 1 else "night" if end - start < _DAY else "day"
    part = "the same part of the " if until < period.end else "the "
    earlier = (convert_to_utc(each - days * _DAY, place) for each in (start, cut))
    return f"{part}{name} before", Period(*earlier)


def measure_on_call_time(
    work: UnitOfWork, holder: ProjectOrGroup, period: Period
) -> Mapping[str, int]:
    """Return the seconds that each user has been on call in a period, by username.

    The times in all schedules of the project or group and its ancestor groups are added up.
    """
    schedules = list_all_schedules(work, holder, with_groups_above=True)
    until = Period(period.start, min(period.end, work.now))
    if not schedules or until.end <= until.start:
        return {}
    shifts = find_shifts_by_schedule(work, [each.id for each in schedules], until)
    balance = compute_balance(chain.from_iterable(shifts.values()), until)
    return {each.user.username: each.seconds for each in balance.users}
