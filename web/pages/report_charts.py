"""Charts of on-call reports."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from domain.core.time_zones import convert_to_local, get_zone
from domain.reports.types import Report, TrendUnit
from web.pages.charts import Chart, Label, Series, add_period, build_bars, build_lines


def build_alert_chart(report: Report, list_url: str | None) -> Chart:
    """Return the chart of alerts. `list_url` is the list of alerts, if the user can see it."""
    starts = [max(each.starts_at, report.starts_at) for each in report.trend]
    pairs = pairwise((*starts, report.ends_at))
    return build_bars(
        [_build_label(each.starts_at, report) for each in report.trend],
        [Series("alerts", "Alerts", [each.alerts for each in report.trend])],
        links=[add_period(list_url, "started", *pair) for pair in pairs] if list_url else (),
    )


def build_time_charts(report: Report) -> Sequence[Chart]:
    """Return the charts for the time to acknowledge and the time to resolve."""
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
