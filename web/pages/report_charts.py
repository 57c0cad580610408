"""Charts of on-call reports."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from domain.core.time_zones import convert_to_local, get_zone
from domain.reports.types import Report, TrendUnit
from web.pages.charts import (
    Chart,
    ColumnLabel,
    Series,
    add_period_to_url,
    build_bar_chart,
    build_lines,
)


def build_alert_chart(report: Report, list_url: str | None) -> Chart:
    """Return a chart of the number of alerts in each interval of the report.

    `list_url` is the URL of the list of alerts, if the user can see the list.
    """
    starts = [max(each.starts_at, report.starts_at) for each in report.trend]
    pairs = pairwise((*starts, report.ends_at))
    return build_bar_chart(
        [_build_label(each.starts_at, report) for each in report.trend],
        [Series("alerts", "Alerts", [each.alerts for each in report.trend])],
        links=[add_period_to_url(list_url, "started", *pair) for pair in pairs] if list_url else (),
    )


def build_response_time_charts(report: Report) -> Sequence[Chart]:
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


def _build_label(start: datetime, report: Report) -> ColumnLabel:
    local = convert_to_local(start, get_zone(report.time_zone))
    day = f"{local.day} {local:%B}"
    if report.trend_unit is TrendUnit.HOUR:
        return ColumnLabel(f"{day} {local:%H:%M}", f"{local:%H:%M}")
    week = "Week of " if report.trend_unit is TrendUnit.WEEK else ""
    return ColumnLabel(f"{week}{day}", f"{local.day} {local:%b}")
