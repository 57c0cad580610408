"""Charts and workloads of on-call reports."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from domain.core.time_zones import convert_to_local, get_zone
from domain.reports.types import PersonFigures, Report, TrendUnit
from web.pages.charts import Chart, Label, Series, build_lines


def build_time_charts(report: Report) -> Sequence[Chart]:
    """Return the charts of the times to acknowledge and to resolve."""
    labels = [_build_label(each.starts_at, report) for each in report.trend]
    lines = (("median", "Median", "median"), ("p90", "90% within", "90th"))
    return [
        build_lines(
            labels,
            [
                Series(name, label, [getattr(each, f"{figure}_{field}") for each in report.trend])
                for name, label, field in lines
            ],
        )
        for figure in ("acknowledge", "resolve")
    ]


def _build_label(start: datetime, report: Report) -> Label:
    local = convert_to_local(start, get_zone(report.time_zone))
    day = f"{local.day} {local:%B}"
    if report.trend_unit is TrendUnit.HOUR:
        return Label(f"{day} {local:%H:%M}", f"{local:%H:%M}")
    week = "Week of " if report.trend_unit is TrendUnit.WEEK else ""
    return Label(f"{week}{day}", f"{local.day} {local:%b}")


def list_loads(report: Report, on_call: Mapping[str, int]) -> Sequence[tuple[PersonFigures, int]]:
    """Return the figures and the seconds on call of each user who was paged or on call."""
    others = sorted(on_call.keys() - {each.user for each in report.people})
    added = (PersonFigures(user=name, pages=0, acknowledged=0, nights=0) for name in others)
    return [(each, on_call.get(each.user, 0)) for each in (*report.people, *added)]
