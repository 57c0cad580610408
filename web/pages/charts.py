"""Geometry of charts: scales with round ticks, bars, lines and heat maps.

The macros of `templates/macros/charts.html` draw the results as SVG. Vertical positions are pixels.
Horizontal positions are percentages, so a chart can have any width without distorting its text.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from domain.alerts.listing.daily_counts import DayCounts
from domain.alerts.listing.hourly_counts import MAX_HOUR_COUNT, SHOWN_HOURS
from domain.core.clock import format_api_time
from domain.core.durations import format_duration

#: Vertical positions of the top and the base line of a scale. The line above the scale shows the
#: values of the column under the pointer.
TOP, BASE = 28, 148
_LEAST_HEIGHT = 2
_MAX_TICKS = 4
_MINUTE, _HOUR, _WEEK = 60, 3_600, 604_800
#: Steps of a duration scale, in seconds. Longer steps are round numbers of weeks.
_DURATION_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12, 24, 48)),
)
_MISSING = "\u2013"
#: Number of heat map levels above zero.
_LEVELS = 4


class ColumnLabel(NamedTuple):
    """The label of a column: `full` for tables and values, `short` for the axis of the chart."""

    full: str
    short: str


class Series(NamedTuple):
    """A series of values, one for each column. None means that there is no measurement."""

    #: CSS class of the color and pattern.
    name: str
    label: str
    values: Sequence[float | None]
    #: URL of the list that is filtered by the series.
    href: str | None = None


class ChartElement(NamedTuple):
    """A bar, or a marker on a line. A marker has no height."""

    name: str
    y: float
    height: float = 0


class ChartColumn(NamedTuple):
    """A column of a chart: a day, a week or an hour."""

    label: ColumnLabel
    shapes: tuple[ChartElement, ...]
    #: Values of the series as text.
    cells: tuple[str, ...]
    total: str
    #: Label and values as one line.
    text: str
    marks: tuple[str, ...]
    #: URL of a list of the items that the column counts. None if there is nothing to list.
    href: str | None = None
    #: URL of the list of the marks.
    marks_href: str | None = None


class Chart(NamedTuple):
    """A chart of columns or lines over time."""

    series: tuple[Series, ...]
    #: Vertical position and text of each tick.
    ticks: tuple[tuple[float, str], ...]
    columns: tuple[ChartColumn, ...]
    #: Segments of lines: the series, the column, and the vertical positions in this column and the
    #: next.
    segments: tuple[tuple[str, int, float, float], ...]
    #: Sum of all values, and the largest column sum.
    total: float
    most: float
    has_marks: bool


class Scale:
    """A scale from zero to a round number."""

    def __init__(
        self, maximum: float, steps: Iterable[float], write: Callable[[float], str]
    ) -> None:
        """Choose the first step that results in at most five ticks."""
        step = next(each for each in steps if maximum <= each * _MAX_TICKS)
        self._top = step * max(math.ceil(maximum / step), 1)
        values = [step * each for each in range(round(self._top / step) + 1)]
        self.ticks = tuple((self.get_y(each), write(each) if each else "0") for each in values)

    def get_y(self, value: float) -> float:
        """Return the vertical position of a value in pixels."""
        return round(BASE - (BASE - TOP) * value / self._top, 2)


def _list_round_numbers(start: int = 1) -> Iterable[float]:
    return (start * factor * 10**exponent for exponent in range(300) for factor in (1, 2, 5))


def build_count_scale(maximum: float) -> Scale:
    """Return a scale whose ticks are whole numbers."""
    return Scale(maximum, _list_round_numbers(), _format_short_count)


def build_duration_scale(maximum: float) -> Scale:
    """Return a scale for durations in seconds, with round durations as ticks."""
    return Scale(maximum, (*_DURATION_STEPS, *_list_round_numbers(_WEEK)), format_seconds)


def _format_short_count(value: float) -> str:
    for least, size, letter in ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 10**3, "k")):
        if value >= least:
            return f"{value / size:,.10g}{letter}"
    return f"{value:.0f}"


def format_seconds(value: float | None) -> str:
    """Return a duration as text, such as `1h30m`."""
    return _MISSING if value is None else format_duration(timedelta(seconds=int(value)))


def label_days(days: Iterable[date]) -> tuple[ColumnLabel, ...]:
    """Return a full label and a short label for each day."""
    return tuple(ColumnLabel(f"{day.day} {day:%B}", f"{day.day} {day:%b}") for day in days)


def build_bar_chart(
    labels: Sequence[ColumnLabel],
    series: Iterable[Series],
    marks: Mapping[int, Sequence[str]] | None = None,
    links: Sequence[str] = (),
    mark_links: Sequence[str] = (),
) -> Chart:
    """Return a chart of stacked bars. Series without values are left out.

    `marks` contains the labels of markers by column index. `links` contains the URL of the list for
    each column, and `mark_links` contains the URL of the list of each column's markers.
    """
    found, marks = tuple(each for each in series if any(each.values)), marks or {}
    sums = [sum(each.values[place] or 0 for each in found) for place in range(len(labels))]
    scale = build_count_scale(max(sums, default=0))
    columns = []
    for place, label in enumerate(labels):
        shapes, below = [], float(BASE)
        cells = [f"{each.values[place]:,.0f}" for each in found]
        for each in found:
            if value := each.values[place]:
                height = max(BASE - scale.get_y(value), _LEAST_HEIGHT)
                below -= height
                shapes.append(ChartElement(each.name, round(below, 2), round(height, 2)))
        total = f"{sums[place]:,.0f}"
        words = _join_values(found, cells, place)
        words = f"{total} ({words})" if words and len(found) > 1 else words or total
        text = f"{label.full}: {words}"
        places = tuple(marks.get(place, ()))
        href = links[place] if links and sums[place] else None
        marks_href = mark_links[place] if mark_links and places else None
        shown = (tuple(shapes), tuple(cells))
        columns.append(ChartColumn(label, *shown, total, text, places, href, marks_href))
    return Chart(
        found, scale.ticks, tuple(columns), (), sum(sums), max(sums, default=0), any(marks)
    )


def build_lines(labels: Sequence[ColumnLabel], series: Sequence[Series]) -> Chart:
    """Return a line chart of durations in seconds. A line has a gap where a value is missing."""
    values = [value for each in series for value in each.values if value is not None]
    scale, columns = build_duration_scale(max(values, default=0)), []
    for place, label in enumerate(labels):
        shapes = tuple(
            ChartElement(each.name, scale.get_y(value))
            for each in series
            if (value := each.values[place]) is not None
        )
        cells = tuple(format_seconds(each.values[place]) for each in series)
        text = f"{label.full}: {_join_values(series, cells, place) or _MISSING}"
        columns.append(ChartColumn(label, shapes, cells, "", text, ()))
    segments = tuple(
        (each.name, place, scale.get_y(one), scale.get_y(next_one))
        for each in series
        for place, (one, next_one) in enumerate(pairwise(each.values))
        if one is not None and next_one is not None
    )
    most = max(values, default=0)
    return Chart(
        tuple(series), scale.ticks, tuple(columns), segments, len(values), most, has_marks=False
    )


def _join_values(series: Iterable[Series], cells: Iterable[str], place: int) -> str:
    return ", ".join(
        f"{cell} {each.label.lower()}"
        for each, cell in zip(series, cells, strict=True)
        if each.values[place] is not None and cell != "0"
    )


def build_severity_chart(
    days: Sequence[DayCounts],
    list_url: str,
    marks: Mapping[date, Sequence[str]] | None = None,
    marks_url: str = "",
) -> Chart:
    """Return a chart of alerts by day and severity, with the highest severity at the bottom.

    `list_url` is the URL of the list of alerts, with a query, to which filters are added.
    `marks_url` is the URL of the list of markers, to which a day is added.
    """
    series = (
        Series(
            word,
            word.capitalize(),
            [each.counts[word] for each in days],
            f"{list_url}&severity={word}",
        )
        for word in days[0].counts
    )
    places = {each.day: place for place, each in enumerate(days)}
    found = {places[day]: texts for day, texts in (marks or {}).items() if day in places}
    bounds = [*places, max(places) + timedelta(days=1)]
    links = [add_period_to_url(list_url, "created", *pair) for pair in pairwise(bounds)]
    mark_links = [f"{marks_url}?day={day}#deployments" for day in places] if marks_url else ()
    return build_bar_chart(label_days(places), series, found, links, mark_links)


def add_period_to_url(url: str, name: str, start: date, end: date) -> str:
    """Add the start and end of a period to a URL's query.

    The start and end are days or times.
    """
    bounds = (
        format_api_time(each) if isinstance(each, datetime) else each.isoformat()
        for each in (start, end)
    )
    joint = "&" if "?" in url else "?"
    return "{0}{1}{2}_after={3}&{2}_before={4}".format(url, joint, name, *bounds)


def list_hour_links(url: str, name: str, now: datetime) -> list[str]:
    """Return list URLs for the last 24 hours: a URL for each hour, and a URL for all hours."""
    bounds = [now - timedelta(hours=hours) for hours in range(SHOWN_HOURS, -1, -1)]
    pairs = (*pairwise(bounds), (bounds[0], now))
    return [add_period_to_url(url, name, *pair) for pair in pairs]


def compute_heat_level(count: int, most: int) -> int:
    """Return the level of a count in a heat map, from 0 to 4."""
    return -(-count * _LEVELS // most) if count else 0


def list_level_ranges(most: int) -> tuple[tuple[int, int, int], ...]:
    """Return each level of a heat map with its smallest and largest count, without empty levels."""
    bounds = [
        (n, most * (n - 1) // _LEVELS + 1, most * n // _LEVELS) for n in range(1, _LEVELS + 1)
    ]
    return tuple(each for each in bounds if each[1] <= each[2])


#: Functions and values for templates.
TEMPLATE_GLOBALS: Mapping[str, Any] = {
    "build_severity_chart": build_severity_chart,
    "full_hour": MAX_HOUR_COUNT,
    "heat_level": compute_heat_level,
    "heat_ranges": list_level_ranges,
    "hour_links": list_hour_links,
}
