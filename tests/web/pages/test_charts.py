"""Geometry of charts: scales, bars, lines with gaps, heat maps, and days of 23 hours."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from domain.alerts.listing.daily_counts import DayCounts
from web.pages.charts import (
    BASE,
    TOP,
    ColumnLabel,
    Series,
    build_bar_chart,
    build_count_scale,
    build_duration_scale,
    build_lines,
    build_severity_chart,
    compute_heat_level,
    list_level_ranges,
)
from web.pages.daily_charts import list_last_days


def labels(count: int) -> list[ColumnLabel]:
    return [ColumnLabel(f"Day {number}", f"{number}") for number in range(count)]


def alerts(*values: float | None) -> Series:
    return Series(name="alerts", label="Alerts", values=values)


@pytest.mark.parametrize(
    ("maximum", "ticks"),
    [
        (0, ["0", "1"]),
        (1, ["0", "1"]),
        (4, ["0", "1", "2", "3", "4"]),
        (7, ["0", "2", "4", "6", "8"]),
        (61, ["0", "20", "40", "60", "80"]),
        (9_000, ["0", "5000", "10k"]),
        (4_000_000, ["0", "1M", "2M", "3M", "4M"]),
        (12_345_678_901, ["0", "5G", "10G", "15G"]),
    ],
)
def test_a_scale_starts_at_zero_and_has_few_round_ticks(maximum: int, ticks: list[str]) -> None:
    scale = build_count_scale(maximum)
    assert [text for _, text in scale.ticks] == ticks
    assert (scale.ticks[0][0], scale.ticks[-1][0]) == (BASE, TOP)


@pytest.mark.parametrize(
    ("maximum", "ticks"),
    [
        (0, ["0", "1s"]),
        (50, ["0", "15s", "30s", "45s", "1m"]),
        (2_000, ["0", "10m", "20m", "30m", "40m"]),
        (30_000, ["0", "3h", "6h", "9h"]),
        (3 * 86_400, ["0", "1d", "2d", "3d"]),
        (3_000 * 86_400, ["0", "200w", "400w", "600w"]),
    ],
)
def test_a_scale_of_durations_has_round_durations(maximum: int, ticks: list[str]) -> None:
    assert [text for _, text in build_duration_scale(maximum).ticks] == ticks


def test_bars_stand_on_the_base_line_and_never_disappear() -> None:
    chart = build_bar_chart(labels(3), [alerts(0, 1, 4_000)])
    assert [len(column.shapes) for column in chart.columns] == [0, 1, 1]
    small, large = (column.shapes[0] for column in chart.columns[1:])
    assert (small.y, small.height) == (BASE - 2, 2)
    assert (large.y, large.height) == (TOP, BASE - TOP)
    assert [column.text for column in chart.columns][::2] == ["Day 0: 0", "Day 2: 4,000 alerts"]


def test_stacked_bars_have_the_values_of_all_series_in_their_text() -> None:
    series = [alerts(1, 0), Series(name="bad", label="Rejected", values=[2, 0])]
    chart = build_bar_chart(labels(2), [*series, Series(name="x", label="Empty", values=[0, 0])])
    assert [each.name for each in chart.series] == ["alerts", "bad"]
    lower, upper = chart.columns[0].shapes
    assert upper.y + upper.height == pytest.approx(lower.y, abs=0.01)
    assert chart.columns[0].text == "Day 0: 3 (1 alerts, 2 rejected)"
    assert (chart.total, chart.most) == (3, 3)


def test_a_chart_of_one_column_or_none_is_drawn() -> None:
    assert len(build_bar_chart(labels(1), [alerts(5)]).columns) == 1
    assert build_bar_chart([], [alerts()]).columns == ()
    assert build_lines(labels(2), [alerts(None, None)]).segments == ()


def test_a_line_has_a_gap_where_a_value_is_missing() -> None:
    chart = build_lines(labels(5), [alerts(60, 120, None, 60, None)])
    assert len(chart.segments) == 1
    assert [len(column.shapes) for column in chart.columns] == [1, 1, 0, 1, 0]
    assert chart.columns[2].text == "Day 2: \u2013"
    assert chart.columns[1].cells == ("2m",)


def test_marks_belong_to_their_days() -> None:
    days = [DayCounts(day=date(2026, 3, day), counts={"high": 0, "low": day}) for day in (1, 2)]
    marks = {date(2026, 3, 2): ["v2", "v3"], date(2026, 2, 1): ["v1"]}
    chart = build_severity_chart(days, "/alerts?status=all", marks, "/production")
    assert [each.marks for each in chart.columns] == [(), ("v2", "v3")]
    assert [(each.name, each.href) for each in chart.series] == [
        ("low", "/alerts?status=all&severity=low")
    ]
    assert [each.href for each in chart.columns] == [
        "/alerts?status=all&created_after=2026-03-01&created_before=2026-03-02",
        "/alerts?status=all&created_after=2026-03-02&created_before=2026-03-03",
    ]
    assert chart.columns[1].marks_href == "/production?day=2026-03-02#deployments"


def test_a_heat_map_has_levels_with_their_ranges() -> None:
    assert list_level_ranges(0) == ()
    assert list_level_ranges(1) == ((4, 1, 1),)
    assert list_level_ranges(8) == ((1, 1, 2), (2, 3, 4), (3, 5, 6), (4, 7, 8))
    assert [compute_heat_level(count, 8) for count in (0, 1, 2, 3, 8)] == [0, 1, 1, 2, 4]


def test_the_day_of_a_clock_change_has_23_hours() -> None:
    days = list_last_days(datetime(2026, 3, 30, 12, tzinfo=UTC), "Europe/Berlin")
    lengths = [after - before for before, after in pairwise(days.values())]
    assert max(days) == date(2026, 3, 30)
    assert lengths == 12 * [timedelta(hours=24)] + [timedelta(hours=23)]
