"""Turns: what one user has on call from one hand-over to the next, whatever lies between.

Under a layer of days, a week of nights is seven shifts, and one turn.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from domain.paging.on_call.final_schedule import Duty, Source, Span, spans
from domain.paging.on_call.schedule_values import Period, Plan, RotationPlan

#: The number of a turn that is no part of a rotation.
_ONLY = 0


@dataclass(kw_only=True)
class UserTurn:
    """The shifts of one user for the same reason, none of which touches the next."""

    duty: Duty
    #: Of the last shift, in its rotation.
    number: int
    parts: list[Period] = field(default_factory=list)

    @property
    def during(self) -> Period:
        """Return the time from the first shift to the end of the last."""
        return Period(self.parts[0].start, self.parts[-1].end)

    def add(self, span: Span, number: int) -> None:
        """Add a shift, or the rest of the last one."""
        self.number = number
        if self.parts and self.parts[-1].end == span.start:
            self.parts[-1] = Period(self.parts[-1].start, span.end)
        else:
            self.parts.append(Period(span.start, span.end))


def turns(plan: Plan, within: Period) -> list[UserTurn]:
    """Return the turns of a time by their start, the first and the last cut to it."""
    rotations = {each.id: each for each in plan.rotations}
    numbers = {each.id: _numbers(each, within) for each in plan.rotations}
    last: dict[tuple[Source, int], UserTurn] = {}
    found: list[UserTurn] = []
    for span, duty in _duties(plan, within):
        is_turn = duty.source is Source.ROTATION
        number = numbers[duty.source_id](span) if is_turn else _ONLY
        key = (duty.source, duty.source_id)
        before = last.get(key)
        # Who hands over to themselves goes on; a rotation of one person has only such hand-overs.
        step = 1 if is_turn and len(set(rotations[duty.source_id].user_ids)) > 1 else 0
        if before is None or before.duty.user_id != duty.user_id or number > before.number + step:
            before = last[key] = UserTurn(duty=duty, number=number)
            found.append(before)
        before.add(span, number)
    return sorted(found, key=lambda turn: (turn.during, turn.duty))


def _duties(plan: Plan, within: Period) -> Iterator[tuple[Span, Duty]]:
    for span in spans(plan, within.start, within.end):
        for duty in span.duties:
            yield span, duty


def _numbers(rotation: RotationPlan, within: Period) -> Callable[[Span], int]:
    """Return what finds the number of the turn in which a span begins."""
    known = list(rotation.handovers.turns(within.start, within.end))
    starts = [each.start for each in known]
    return lambda span: known[bisect_right(starts, span.start) - 1].number
