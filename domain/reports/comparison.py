"""Compares a report with the period before it, and measures the time that users were on call."""

import math
from array import array
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from domain.access.actor import UnitOfWork
from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.escalations.types import PAGE_RETENTION
from domain.paging.on_call.schedule_values import Period, join_periods
from domain.paging.on_call.schedules import list_all_schedules
from domain.paging.on_call.shifts import find_shifts_by_schedule
from domain.projects.views import ProjectOrGroup
from domain.reports import rows
from domain.reports.figures import ReportFigures
from domain.reports.report_formats import format_duration_cell
from domain.reports.rows import ReportFilter
from domain.reports.scope import find_report_scope

_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class PreviousFigures:
    """The figures of the period before a report."""

    #: Name of the period, such as `the 7 days before`.
    name: str
    alerts: int
    pages: int
    #: Median time to acknowledge, in seconds. None if no alert was acknowledged.
    acknowledge_median: float | None
    #: Number of nights in which a user was paged, summed over all users.
    nights: int


def find_previous_figures(
    work: UnitOfWork, holder: ProjectOrGroup, period: Period, time_zone: str
) -> PreviousFigures | None:
    """Return the figures of the period before a report, or None without earlier data.

    The period before starts whole days earlier, so that a night is compared with the night before.
    """
    name, previous = _shift_back(period, time_zone)
    scope, session = find_report_scope(work, holder), work.session
    wanted = ReportFilter(project_ids=tuple(scope.projects), within=previous)
    if previous.start < work.now - PAGE_RETENTION or not rows.has_alerts_before(
        wanted.project_ids, period.start, session=session
    ):
        return None
    figures = ReportFigures(time_zone, previous)
    for page in rows.read_pages(wanted, session=session):
        figures.count_page(page)
    lengths = array("d", rows.read_acknowledgement_times(wanted, session=session))
    return PreviousFigures(
        name=name,
        alerts=rows.count_alerts(wanted, session=session),
        pages=figures.build_totals().pages,
        acknowledge_median=median(lengths) if lengths else None,
        nights=sum(each.nights for each in figures.build_user_figures()),
    )


def _shift_back(period: Period, time_zone: str) -> tuple[str, Period]:
    """Return the period whole days before a period, and its name."""
    place = get_zone(time_zone)
    start, end = (convert_to_local(each, place) for each in (period.start, period.end))
    days = max(math.ceil((end - start) / _DAY), 1)
    earlier = [convert_to_utc(each - days * _DAY, place) for each in (start, end)]
    if days > 1:
        return f"the {days} days before", Period(*earlier)
    return f"the {'night' if end - start < _DAY else 'day'} before", Period(*earlier)


def describe_count_change(value: int, before: int, period: str) -> str:
    """Return a change of a count in words, such as `12% fewer than in the 7 days before (25)`."""
    if value == before:
        return f"as many as in {period}"
    if not before:
        return f"none in {period}"
    word = "more" if value > before else "fewer"
    return f"{_format_percent(value, before)} {word} than in {period} ({before:,})"


def describe_duration_change(value: float | None, before: float | None, period: str) -> str:
    """Return a change of a duration in words, such as `12% shorter than the day before (5m)`."""
    if before is None:
        return f"no acknowledgements in {period}"
    if value is None or not int(before):
        return f"{format_duration_cell(before)} in {period}"
    if int(value) == int(before):
        return f"as long as in {period}"
    word = "longer" if value > before else "shorter"
    percent = _format_percent(value, before)
    return f"{percent} {word} than in {period} ({format_duration_cell(before)})"


def _format_percent(value: float, before: float) -> str:
    percent = round(100 * abs(value - before) / before)
    return f"{percent:,}%" if percent else "less than 1%"


def measure_on_call_time(
    work: UnitOfWork, holder: ProjectOrGroup, period: Period
) -> Mapping[str, int]:
    """Return the seconds on call in a period until now, by user name.

    The schedules of the project or group and of the groups above it count. Time in several
    schedules counts once.
    """
    schedules = list_all_schedules(work, holder, with_groups_above=True)
    until = min(period.end, work.now)
    if not schedules or until <= period.start:
        return {}
    shifts = find_shifts_by_schedule(
        work, [each.id for each in schedules], Period(period.start, until)
    )
    found: dict[str, list[Period]] = defaultdict(list)
    for each in (shift for some in shifts.values() for shift in some):
        for user in each.users:
            found[user.username].append(Period(each.starts_at, each.ends_at))
    return {name: _measure_periods(periods) for name, periods in found.items()}


def _measure_periods(periods: list[Period]) -> int:
    def get_start(period: Period) -> datetime:
        return period.start

    joined = join_periods(iter(sorted(periods, key=get_start)))
    return sum(int((each.end - each.start).total_seconds()) for each in joined)
