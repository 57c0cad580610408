"""Lanes of bars that show a schedule over time, computed without a database.

Positions and lengths are fractions of the drawn period. Time is drawn to scale, so that a day on
which the clocks change is an hour shorter or longer than other days.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from domain.core.time_zones import convert_to_local, convert_to_utc, get_zone
from domain.paging.on_call.final_schedule import (
    DutySource,
    OnCallDuty,
    compute_spans,
    find_turn_parts,
)
from domain.paging.on_call.schedule_plans import Period, RotationPlan, SchedulePlan

_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_SATURDAY = 5
#: Longest period in days with a label for each day, and maximum number of labels for longer
#: periods.
_MAX_LABELED_DAYS, _MAX_LABELS = 32, 14
#: Maximum length of the preview of a rotation.
_MAX_PREVIEW = timedelta(days=400)
#: Maximum number of bars in a lane of a schedule. If there were more bars, they would be too narrow
#: to read.
_MAX_BARS = 200


class LaneKind(StrEnum):
    """The content of a lane: the final schedule, the overrides and swaps, or a rotation."""

    #: Final schedule: the users on call after all rotations, swaps and overrides, and the gaps.
    FINAL = "final"
    #: Overrides and swaps.
    CHANGES = "changes"
    #: Turns of one rotation, before swaps and overrides.
    ROTATION = "rotation"


class _LanePart(NamedTuple):
    start: datetime
    end: datetime
    #: Duty of the user. None for a gap.
    duty: OnCallDuty | None
    is_absent: bool = False


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A period in which a user is on call without interruption, or a gap."""

    start: datetime
    end: datetime
    #: Duty of the user. None for a gap.
    duty: OnCallDuty | None
    #: Index of the row within the lane. Bars in a row do not overlap.
    row: int
    offset: float
    length: float
    #: True if the user is absent.
    is_absent: bool = False

    @property
    def is_changed(self) -> bool:
        """True if an override or a swap puts the user on call."""
        return self.duty is not None and self.duty.source is not DutySource.ROTATION


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A lane of a timeline: the final schedule, the overrides and swaps, or a rotation."""

    kind: LaneKind
    #: Name and layer of the rotation.
    name: str = ""
    layer: int = 0
    bars: tuple[Bar, ...]
    #: Number of rows of bars.
    rows: int
    #: Periods without a gap, which replace the shifts if there are too many shifts. `bars` then
    #: contains only the gaps.
    merged: tuple[Bar, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DayTick:
    """The start of a local day in a timeline."""

    day: date
    offset: float
    #: Length of the period until the next tick.
    length: float
    is_weekend: bool
    #: True if the next tick is not on the next day.
    skips_days: bool


def build_lanes(
    plan: SchedulePlan,
    period: Period,
    *,
    gaps_from: datetime,
    absences: Mapping[int, Sequence[Period]] = MappingProxyType({}),
) -> tuple[Lane, ...]:
    """Return the lanes of a schedule: the final schedule, the changes, and each rotation.

    Rotations of the highest layer come first. The lane of the final schedule is divided at the
    `absences` of its users. Gaps are shown from `gaps_from`. The lane of changes is left out if
    there are no changes. In a lane with too many shifts, the shifts are merged.
    """
    final = [
        _LanePart(span.start if span.duties else max(span.start, gaps_from), span.end, duty)
        for span in compute_spans(plan, period.start, period.end)
        if span.duties or span.end > gaps_from
        for duty in span.duties or (None,)
    ]
    changes = [each for each in final if each.duty and each.duty.source is not DutySource.ROTATION]
    rotations: dict[tuple[int, str], list[RotationPlan]] = {}
    for each in plan.rotations:
        rotations.setdefault((-each.layer, each.name), []).append(each)
    lanes = (
        build_lane(_split_at_absences(final, absences), period, LaneKind.FINAL),
        *([build_lane(changes, period, LaneKind.CHANGES)] if changes else []),
        *(
            build_lane(
                (part for each in versions for part in find_turn_parts(each, period)),
                period,
                LaneKind.ROTATION,
                name=name,
                layer=-order,
            )
            for (order, name), versions in sorted(rotations.items(), key=lambda item: item[0])
        ),
    )
    return tuple(map(_merge_shifts, lanes))


def _split_at_absences(
    parts: Iterable[_LanePart], absences: Mapping[int, Sequence[Period]]
) -> Iterator[_LanePart]:
    """Split each part at the start and end of its user's absences."""
    for part in parts:
        start = part.start
        for absence in absences.get(part.duty.user_id, ()) if part.duty else ():
            left, right = max(absence.start, start), min(absence.end, part.end)
            if left < right:
                if start < left:
                    yield part._replace(start=start, end=left)
                yield part._replace(start=left, end=right, is_absent=True)
                start = right
        if start < part.end:
            yield part._replace(start=start)


def build_lane(
    parts: Iterable[tuple[datetime, datetime, OnCallDuty | None] | _LanePart],
    period: Period,
    kind: LaneKind,
    *,
    name: str = "",
    layer: int = 0,
) -> Lane:
    """Return a lane with adjacent parts of a user joined and overlapping parts in separate rows."""
    is_rotation = kind is LaneKind.ROTATION
    ends: list[datetime] = []
    bars = []
    for part in sorted(_join_parts(parts, is_rotation=is_rotation), key=lambda each: each[:2]):
        row = next((row for row, end in enumerate(ends) if end <= part.start), len(ends))
        ends[row : row + 1] = [part.end]
        offset = _find_offset(part.start, period)
        length = _find_offset(part.end, period) - offset
        bars.append(Bar(**part._asdict(), row=row, offset=offset, length=length))
    return Lane(kind=kind, name=name, layer=layer, bars=tuple(bars), rows=max(len(ends), 1))


def _merge_shifts(lane: Lane) -> Lane:
    """Merge the shifts between two gaps into one bar if a lane has too many bars."""
    if len(lane.bars) <= _MAX_BARS:
        return lane
    merged: list[Bar] = []
    for bar in (each for each in lane.bars if each.duty):
        if not merged or bar.start > merged[-1].end:
            merged.append(replace(bar, duty=None, row=0))
        elif bar.end > merged[-1].end:
            length = bar.offset + bar.length - merged[-1].offset
            merged[-1] = replace(merged[-1], end=bar.end, length=length)
    gaps = tuple(replace(each, row=0) for each in lane.bars if not each.duty)
    return replace(lane, bars=gaps, rows=1, merged=tuple(merged))


def _join_parts(
    parts: Iterable[tuple[datetime, datetime, OnCallDuty | None] | _LanePart], *, is_rotation: bool
) -> Iterator[_LanePart]:
    """Join adjacent parts with the same duty.

    The parts of a rotation are joined if they have the same user, because each version of a
    rotation has its own ID.
    """
    last: dict[object, _LanePart] = {}
    for each in (_LanePart(*part) for part in parts):
        duty = each.duty
        key = (duty.user_id if is_rotation and duty else duty, each.is_absent)
        before = last.get(key)
        if before is not None and before.end == each.start:
            last[key] = before._replace(end=each.end)
            continue
        if before is not None:
            yield before
        last[key] = each
    yield from last.values()


def find_rotation_cycle(plan: RotationPlan, now: datetime) -> Period:
    """Return a period in which each user of a rotation has a turn.

    The period starts now, or at the start of a future rotation. It lasts at least a week if the
    rotation has restrictions, and at most _MAX_PREVIEW.
    """
    cadence, count = plan.cadence, len(plan.user_ids)
    start = max(now, plan.handoffs.begins_at)
    longest = timedelta(**{cadence.unit.value: cadence.every}) * (count + 1) + _DAY
    ends = [each.end for each in plan.handoffs.generate_turns(start, start + longest)]
    # A week shows on which days the restrictions apply.
    shortest = start + (_WEEK if plan.restrictions else timedelta(0))
    return Period(start, min(max(ends[:count][-1], shortest), start + _MAX_PREVIEW))


def build_day_ticks(period: Period, time_zone: str) -> tuple[DayTick, ...]:
    """Return the start of each day in a period, or of every few days if the period is long."""
    place = get_zone(time_zone)
    first = convert_to_local(period.start, place).date()
    days = (period.end - period.start) // _DAY
    step = _DAY * (1 if days <= _MAX_LABELED_DAYS else days // _MAX_LABELS + 1)
    found, day = [], first
    while (start := _get_midnight(day, time_zone)) < period.end:
        if start >= period.start:
            end = min(_get_midnight(day + step, time_zone), period.end)
            offset = _find_offset(start, period)
            length = _find_offset(end, period) - offset
            is_weekend = step == _DAY and day.weekday() >= _SATURDAY
            found.append(
                DayTick(
                    day=day,
                    offset=offset,
                    length=length,
                    is_weekend=is_weekend,
                    skips_days=step > _DAY,
                )
            )
        day += step if start >= period.start else _DAY
    return tuple(found)


def build_day_period(first: date, last: date, time_zone: str) -> Period:
    """Return the period from the start of a local day to the end of another local day."""
    return Period(_get_midnight(first, time_zone), _get_midnight(last + _DAY, time_zone))


def find_now_offset(now: datetime, period: Period) -> float | None:
    """Return the position of a time in a period, or None if it is outside the period."""
    return _find_offset(now, period) if period.start <= now < period.end else None


def choose_colors(user_ids: Sequence[int], number: int) -> dict[int, int]:
    """Return a color number for each user. Colors repeat if there are more users than colors."""
    return {each: index % number for index, each in enumerate(dict.fromkeys(user_ids))}


def _find_offset(moment: datetime, period: Period) -> float:
    return (moment - period.start) / (period.end - period.start)


def _get_midnight(day: date, time_zone: str) -> datetime:
    return convert_to_utc(datetime.combine(day, time()), get_zone(time_zone))
