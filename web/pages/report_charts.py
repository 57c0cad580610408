"""Key figures, charts and loads of on-call reports."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from domain.core.time_zones import convert_to_local, get_zone
from domain.reports.comparison import (
    PreviousFigures,
    describe_count_change,
    describe_duration_change,
)
from domain.reports.report_formats import format_duration_cell
from domain.reports.types import PersonFigures, Report, TrendUnit
from web.pages.charts import Chart, Label, Series, build_lines


class KeyFigure(NamedTuple):
    """A figure at the top of a report, and its change in words."""

    name: str
    value: str
    change: str


class Load(NamedTuple):
    """The load of a person in a period."""

    person: PersonFigures
    #: Time on call in seconds.
    on_call: int


def list_key_figures(report: Report, previous: PreviousFigures | None) -> tuple[KeyFigure, ...]:
    """Return the four figures of a report that are compared with the period before."""
    nights = sum(each.nights for each in report.people)
    median = report.times[0].acknowledge_median
    found = []
    for name, value, before in (
        ("Alerts", report.totals.alerts, previous and previous.alerts),
        ("Pages", report.totals.pages, previous and previous.pages),
        ("Nights with a page", nights, previous and previous.nights),
    ):
        change = (
            describe_count_change(value, before or 0, previous.name)
            if previous
            else "no earlier data"
        )
        found.append(KeyFigure(name, f"{value:,}", change))
    change = (
        describe_duration_change(median, previous.acknowledge_median, previous.name)
        if previous
        else "no earlier data"
    )
    found.insert(2, KeyFigure("Median time to acknowledge", format_duration_cell(median), change))
    return tuple(found)


def build_time_charts(report: Report) -> tuple[Chart, Chart]:
    """Return the charts of the times to acknowledge and to resolve."""
    labels = [_build_label(each.starts_at, report) for each in report.trend]

    def build(figure: str) -> Chart:
        return build_lines(
            labels,
            [
                Series(
                    name=name,
                    label=label,
                    values=[getattr(each, f"{figure}_{field}") for each in report.trend],
                )
                for name, label, field in (
                    ("median", "Median", "median"),
                    ("p90", "90% within", "90th"),
                )
            ],
        )

    return build("acknowledge"), build("resolve")


def _build_label(start: datetime, report: Report) -> Label:
    local = convert_to_local(start, get_zone(report.time_zone))
    day = f"{local.day} {local:%B}"
    if report.trend_unit is TrendUnit.HOUR:
        return Label(f"{day} {local:%H:%M}", f"{local:%H:%M}")
    week = "Week of " if report.trend_unit is TrendUnit.WEEK else ""
    return Label(f"{week}{day}", f"{local.day} {local:%b}")


def list_loads(report: Report, on_call: Mapping[str, int]) -> tuple[Load, ...]:
    """Return the load of each person who was paged, acknowledged an alert or was on call."""
    known = {each.user for each in report.people}
    others = (
        PersonFigures(user=name, pages=0, acknowledged=0, nights=0)
        for name in sorted(on_call.keys() - known)
    )
    return tuple(Load(each, on_call.get(each.user, 0)) for each in (*report.people, *others))
