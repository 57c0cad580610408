"""Geometry of charts: scales with round ticks, columns, lines, heat maps and strips of 24 hours.

The macros of `templates/macros/charts.html` draw the results as SVG. Horizontal positions are
percentages, so that charts have any width without distorting their texts. Vertical positions are
pixels.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from domain.alerts.integrations.delivery_hours import DeliveryHour
from domain.alerts.listing.charts import DayCounts
from domain.alerts.listing.project_hours import MAX_HOUR_COUNT
from domain.core.durations import format_duration

#: Vertical positions in a plot: the top of the scale and the base line. The line above the scale
#: shows the values of the column under the pointer.
TOP, BASE = 28, 148
#: Height of the smallest visible bar.
_LEAST_HEIGHT = 2
_MAX_TICKS = 4
#: Share of a column that its bar takes.
_BAR_SHARE = 0.72
_MAX_LABELS = 5
#: Share of the width at each end in which the label of a column is aligned with that end.
_EDGE = 9
_ROUND_FACTORS = (1, 2, 5)
_MINUTE, _HOUR, _WEEK = 60, 3_600, 604_800
#: Steps of a scale of durations, in seconds. Longer steps are round numbers of weeks.
_DURATION_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12, 24, 48)),
)
_MISSING = "\u2013"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_STRIP_HEIGHT = 18
#: Number of levels of a heat map above zero.
_LEVELS = 4


class Label(NamedTuple):
    """The label of a column: in tables and values, and below the chart."""

    full: str
    short: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values of all columns with the same meaning. A value is None if there is no measurement."""

    #: CSS class of the color and pattern.
    name: str
    label: str
    values: Sequence[float | None]
    #: URL of the list that is filtered by the series.
    href: str | None = None


class Tick(NamedTuple):
    """A line of the scale."""

    y: str
    text: str


class Shape(NamedTuple):
    """A bar, or the marker of a line, of one series."""

    name: str
    y: str
    height: str


class Segment(NamedTuple):
    """A part of a line between the values of two columns next to each other."""

    name: str
    x1: str
    y1: str
    x2: str
    y2: str


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a chart: a day, a week or an hour."""

    label: Label
    #: Left edge, width and middle of the whole column.
    x: str
    width: str
    middle: str
    #: Left edge and width of the bar.
    bar_x: str
    bar_width: str
    shapes: tuple[Shape, ...]
    #: Values of the series as texts.
    cells: tuple[str, ...]
    total: str
    #: Label and values as one line.
    text: str
    #: Anchor of the label below the column, or an empty string for no label.
    anchor: str
    marks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of columns or lines over time."""

    series: tuple[Series, ...]
    ticks: tuple[Tick, ...]
    columns: tuple[Column, ...]
    segments: tuple[Segment, ...] = ()
    #: Sum of all values, and the largest sum of a column.
    total: float
    most: float

    @property
    def has_marks(self) -> bool:
        """True if a column has a mark."""
        return any(each.marks for each in self.columns)


class Scale:
    """A scale from zero to a round number."""

    def __init__(self, maximum: float, steps: Iterable[float]) -> None:
        """Choose the first step with which the scale has few ticks; `steps` is endless."""
        self.step = next(each for each in steps if maximum <= each * _MAX_TICKS)
        self.top = self.step * max(math.ceil(maximum / self.step), 1)

    def get_y(self, value: float) -> float:
        """Return the vertical position of a value."""
        return BASE - (BASE - TOP) * value / self.top

    def list_values(self) -> list[float]:
        """Return the values of the ticks."""
        return [self.step * each for each in range(round(self.top / self.step) + 1)]


def _list_round_numbers(start: int = 1) -> Iterable[float]:
    return (start * factor * 10**exponent for exponent in range(300) for factor in _ROUND_FACTORS)


def build_count_scale(maximum: float) -> Scale:
    """Return a scale whose ticks are whole numbers."""
    return Scale(maximum, _list_round_numbers())


def build_duration_scale(maximum: float) -> Scale:
    """Return a scale for seconds, whose ticks are round durations."""
    return Scale(maximum, (*_DURATION_STEPS, *_list_round_numbers(_WEEK)))


def format_count(value: float | None) -> str:
    """Return a number as text."""
    return _MISSING if value is None else f"{value:,.0f}"


def format_short_count(value: float) -> str:
    """Return a round number as a short text, such as `20k`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= size:
            return f"{value / min(size, 10**3 if letter == 'k' else size):,.10g}{letter}"
    return f"{value:.0f}"


def format_seconds(value: float | None) -> str:
    """Return a duration as text, such as `1h30m`."""
    return _MISSING if value is None else format_duration(timedelta(seconds=int(value)))


def label_days(days: Iterable[date]) -> tuple[Label, ...]:
    """Return the labels of days."""
    return tuple(Label(f"{day.day} {day:%B}", f"{day.day} {day:%b}") for day in days)


def build_bars(
    labels: Sequence[Label],
    series: Sequence[Series],
    marks: Mapping[int, Sequence[str]] | None = None,
) -> Chart:
    """Return a chart of stacked bars. Series without values are left out.

    `marks` maps columns to the texts of their marks.
    """
    found = tuple(each for each in series if any(each.values))
    sums = [sum(each.values[column] or 0 for each in found) for column in range(len(labels))]
    scale = build_count_scale(max(sums, default=0))
    columns = []
    for column, label in enumerate(labels):
        shapes, below = [], float(BASE)
        for each in found:
            if value := each.values[column]:
                height = max(BASE - scale.get_y(value), _LEAST_HEIGHT)
                below -= height
                shapes.append(Shape(each.name, _format(below), _format(height)))
        columns.append(
            _build_column(
                *(column, label, len(labels), found, format_count),
                shapes=tuple(shapes),
                total=format_count(sums[column]),
                marks=tuple((marks or {}).get(column, ())),
            )
        )
    return Chart(
        series=found,
        ticks=tuple(
            Tick(_format(scale.get_y(value)), format_short_count(value))
            for value in scale.list_values()
        ),
        columns=tuple(columns),
        total=sum(sums),
        most=max(sums, default=0),
    )


def build_lines(labels: Sequence[Label], series: Sequence[Series]) -> Chart:
    """Return a chart of durations in seconds. A line has a gap where a value is missing."""
    values = [value for each in series for value in each.values if value is not None]
    scale = build_duration_scale(max(values, default=0))
    columns = tuple(
        _build_column(
            *(column, label, len(labels), series, format_seconds),
            shapes=tuple(
                Shape(each.name, _format(scale.get_y(value)), "0")
                for each in series
                if (value := each.values[column]) is not None
            ),
        )
        for column, label in enumerate(labels)
    )
    segments = []
    for each in series:
        for column, (before, after) in enumerate(zip(each.values, each.values[1:], strict=False)):
            if before is not None and after is not None:
                segments.append(
                    Segment(
                        *(each.name, columns[column].middle, _format(scale.get_y(before))),
                        *(columns[column + 1].middle, _format(scale.get_y(after))),
                    )
                )
    return Chart(
        series=tuple(series),
        ticks=tuple(
            Tick(_format(scale.get_y(value)), format_seconds(value) if value else "0")
            for value in scale.list_values()
        ),
        columns=columns,
        segments=tuple(segments),
        total=len(values),
        most=max(values, default=0),
    )


def _build_column(
    column: int, label: Label, count: int, series: Sequence[Series], write: Any, **others: Any
) -> Column:
    width = 100 / count
    middle = width * (column + 0.5)
    is_labeled = column % math.ceil(count / _MAX_LABELS) == 0
    anchor = "start" if middle < _EDGE else "end" if middle > 100 - _EDGE else "middle"
    cells = tuple(write(each.values[column]) for each in series)
    words = ", ".join(
        f"{cell} {each.label.lower()}"
        for each, cell in zip(series, cells, strict=True)
        if each.values[column]
    )
    total = others.get("total", "")
    if total and len(series) > 1:
        words = f"{total} ({words})" if words else total
    return Column(
        label=label,
        x=f"{_format(width * column)}%",
        width=f"{_format(width)}%",
        middle=f"{_format(middle)}%",
        bar_x=f"{_format(width * (column + (1 - _BAR_SHARE) / 2))}%",
        bar_width=f"{_format(width * _BAR_SHARE)}%",
        cells=cells,
        text=f"{label.full}: {words or total or _MISSING}",
        anchor=anchor if is_labeled else "",
        **{"total": "", "marks": (), **others},
    )


def _format(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


def build_severity_bars(
    days: Sequence[DayCounts],
    links: Mapping[str, str] | None = None,
    marks: Mapping[date, Sequence[str]] | None = None,
) -> Chart:
    """Return the chart of alerts by day and severity, the worst at the bottom.

    `links` maps severities to the filtered list of alerts.
    """
    series = [
        Series(
            name=word,
            label=word.capitalize(),
            values=[each.counts[word] for each in days],
            href=(links or {}).get(word),
        )
        for word in days[0].counts
    ]
    places = {each.day: column for column, each in enumerate(days)}
    found = {places[day]: texts for day, texts in (marks or {}).items() if day in places}
    return build_bars(label_days(places), series, found)


class Cell(NamedTuple):
    """An hour of a weekday in a heat map."""

    x: str
    middle: str
    value: int
    level: int
    text: str


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Counts by weekday and hour."""

    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    #: Smallest and largest count of each level.
    ranges: tuple[tuple[int, int, int], ...]
    total: int


def build_heat_map(counts: Sequence[Sequence[int]]) -> HeatMap:
    """Return the heat map of counts by weekday, starting with Monday, and hour."""
    most = max(map(max, counts))
    rows = []
    for weekday, row in zip(WEEKDAYS, counts, strict=True):
        width = 100 / len(row)
        cells = (
            Cell(
                x=f"{_format(width * hour)}%",
                middle=f"{_format(width * (hour + 0.5))}%",
                value=count,
                level=_compute_level(count, most),
                text=f"{weekday} {hour:02}:00 to {hour + 1:02}:00: {count:,}",
            )
            for hour, count in enumerate(row)
        )
        rows.append((weekday, tuple(cells)))
    ranges = []
    for level in range(1, _LEVELS + 1):
        first, last = most * (level - 1) // _LEVELS + 1, most * level // _LEVELS
        if first <= last:
            ranges.append((level, first, last))
    return HeatMap(rows=tuple(rows), ranges=tuple(ranges), total=sum(map(sum, counts)))


def _compute_level(count: int, most: int) -> int:
    return -(-count * _LEVELS // most) if count else 0


class StripHour(NamedTuple):
    """An hour of a strip: its text and its bars."""

    x: int
    text: str
    bars: tuple[Shape, ...]


@dataclass(frozen=True, kw_only=True)
class Strip:
    """The last 24 hours of an object as a small picture."""

    text: str
    #: Number of alerts as a short text, or an empty string.
    number: str = ""
    hours: tuple[StripHour, ...]


_EMPTY_HOUR = (Shape("nothing", "15.5", "1.5"),)
#: Texts and bars of an hour of an integration, in the order of the legend. A high bar is a received
#: delivery, and a low bar is a rejected delivery, so that colors are not needed.
OUTCOMES = {
    DeliveryHour(received=True, rejected=False): ("received", (Shape("received", "0", "17"),)),
    DeliveryHour(received=True, rejected=True): (
        "received and rejected",
        (Shape("received", "0", "10"), Shape("rejected", "11", "6")),
    ),
    DeliveryHour(received=False, rejected=True): ("rejected", (Shape("rejected", "11", "6"),)),
    DeliveryHour(received=False, rejected=False): ("no deliveries", _EMPTY_HOUR),
}


def build_delivery_strip(hours: Sequence[DeliveryHour]) -> Strip:
    """Return the strip of an integration."""
    received = sum(each.received for each in hours)
    rejected = sum(each.rejected for each in hours)
    return Strip(
        text=f"Received in {_count_hours(received)}, rejected in {_count_hours(rejected)}"
        if received or rejected
        else "No deliveries",
        hours=_build_strip_hours(OUTCOMES[each] for each in hours),
    )


def build_alert_strip(counts: Sequence[int]) -> Strip:
    """Return the strip of a project: the number of alerts in each hour as the height."""
    words = [f"{_format_bounded(each)} {'alert' if each == 1 else 'alerts'}" for each in counts]
    more = "+" if any(each >= MAX_HOUR_COUNT for each in counts) else ""
    total = sum(counts)
    text = f"{total:,}{' or more' if more else ''} {'alert' if total == 1 else 'alerts'}"
    heights = (4 + 13 * each / MAX_HOUR_COUNT for each in counts)
    return Strip(
        text=text if total else "No alerts",
        number=f"{total:,}{more}" if total else "none",
        hours=_build_strip_hours(
            (
                word,
                (Shape("alerts", _format(_STRIP_HEIGHT - 1 - height), _format(height)),)
                if count
                else _EMPTY_HOUR,
            )
            for word, count, height in zip(words, counts, heights, strict=True)
        ),
    )


def _format_bounded(count: int) -> str:
    return f"{count} or more" if count >= MAX_HOUR_COUNT else f"{count}"


def _count_hours(number: int) -> str:
    return f"{number} hour" if number == 1 else f"{number} hours"


def _build_strip_hours(
    hours: Iterable[tuple[str, tuple[Shape, ...]]],
) -> tuple[StripHour, ...]:
    found = list(hours)
    built = []
    for place, (words, bars) in enumerate(found):
        since = len(found) - place
        when = "Last hour" if since == 1 else f"{since} to {since - 1} hours ago"
        built.append(StripHour(6 * place, f"{when}: {words}", bars))
    return tuple(built)


#: Functions and values that templates use.
TEMPLATE_GLOBALS: Mapping[str, Any] = {
    "build_severity_bars": build_severity_bars,
    "build_heat_map": build_heat_map,
    "build_delivery_strip": build_delivery_strip,
    "build_alert_strip": build_alert_strip,
    "delivery_outcomes": tuple(OUTCOMES.values()),
}
