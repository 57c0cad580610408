"""Turns, which consist of all shifts of a user between two handoffs.

For example, if a weekly rotation covers nights and a higher layer covers days, each turn consists
of seven shifts.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from domain.paging.on_call.final_schedule import DutySource, OnCallDuty, OnCallSpan, compute_spans
from domain.paging.on_call.schedule_plans import Period, RotationPlan, SchedulePlan

#: Number of a turn that does not belong to a rotation.
_NO_TURN_NUMBER = 0


@dataclass(kw_only=True)
class UserTurn:
    """The separate shifts of a user that belong to one turn."""

    duty: OnCallDuty
    #: Number, within the rotation, of the turn that contains the last shift.
    number: int
    parts: list[Period] = field(default_factory=list)

    @property
    def period(self) -> Period:
        """Period from the start of the first shift to the end of the last shift."""
        return Period(self.parts[0].start, self.parts[-1].end)

    def add_shift(self, span: OnCallSpan, number: int) -> None:
        """Add a shift, or extend the last shift."""
        self.number = number
        if self.parts and self.parts[-1].end == span.start:
            self.parts[-1] = Period(self.parts[-1].start, span.end)
        else:
            self.parts.append(Period(span.start, span.end))


def find_user_turns(plan: SchedulePlan, period: Period) -> list[UserTurn]:
    """Return the turns in a period, ordered by start and truncated to the period."""
    rotations = {each.id: each for each in plan.rotations}
    numbers = {each.id: _build_turn_number_finder(each, period) for each in plan.rotations}
    last: dict[tuple[DutySource, int], UserTurn] = {}
    found: list[UserTurn] = []
    for span, duty in _list_duties(plan, period):
        is_turn = duty.source is DutySource.ROTATION
        number = numbers[duty.source_id](span) if is_turn else _NO_TURN_NUMBER
        key = (duty.source, duty.source_id)
        before = last.get(key)
        # Consecutive turns of the same user count as one turn. A rotation with only one user is the
        # exception, since otherwise all its turns would count as one turn.
        step = 1 if is_turn and len(set(rotations[duty.source_id].user_ids)) > 1 else 0
        if before is None or before.duty.user_id != duty.user_id or number > before.number + step:
            before = last[key] = UserTurn(duty=duty, number=number)
            found.append(before)
        before.add_shift(span, number)
    return sorted(found, key=lambda turn: (turn.period, turn.duty))


def _list_duties(plan: SchedulePlan, period: Period) -> Iterator[tuple[OnCallSpan, OnCallDuty]]:
    for span in compute_spans(plan, period.start, period.end):
        for duty in span.duties:
            yield span, duty


def _build_turn_number_finder(
    rotation: RotationPlan, period: Period
) -> Callable[[OnCallSpan], int]:
    """Return a function that finds the number of the turn in which a span starts."""
    known = list(rotation.handoffs.generate_turns(period.start, period.end))
    starts = [each.start for each in known]
    return lambda span: known[bisect_right(starts, span.start) - 1].number
