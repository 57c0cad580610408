"""Who is on call now, and who is next."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.on_call.final_schedule import Span, by_users, spans
from domain.on_call.plans import Plan
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period

_MOMENT = timedelta(microseconds=1)
#: How far the next change is looked for, in steps: most schedules change within a week.
_HORIZONS = (timedelta(days=8), timedelta(days=64), timedelta(days=400))


@dataclass(frozen=True, kw_only=True)
class OnCall:
    """Who is on call in a schedule at a moment, and who is next."""

    schedule_id: int
    #: Until the users on call change; without duties in a gap. Its end is the end of what was
    #: looked at if there is no change within 400 days.
    now: Span
    #: The next time after it in which somebody is on call; None if there is none within 400 days.
    next: Span | None
    #: Whether the users on call change within 400 days.
    changes: bool


def who_is_on_call(
    schedule_ids: Collection[int], *, at: datetime, session: Session
) -> Mapping[int, tuple[int, ...]]:
    """Return the users on call by schedule; none in a gap, and for a schedule that is gone."""
    plans = read_plans(schedule_ids, Period(at, at + _MOMENT), session=session, today=at.date())
    return {
        each: spans(plans[each], at, at + _MOMENT)[0].user_ids if each in plans else ()
        for each in schedule_ids
    }


def on_call_and_next(
    schedule_ids: Collection[int], *, at: datetime, session: Session
) -> Mapping[int, OnCall]:
    """Return who is on call and who is next by schedule; unknown schedules are left out."""
    within = Period(at, at + _HORIZONS[-1])
    plans = read_plans(schedule_ids, within, session=session, today=at.date())
    return {each: _on_call(plan, at) for each, plan in plans.items()}


def _on_call(plan: Plan, at: datetime) -> OnCall:
    found: tuple[Span, ...] = ()
    for horizon in _HORIZONS:
        found = by_users(spans(plan, at, at + horizon))
        # Of the last one the end is not known.
        if any(span.duties for span in found[1:-1]):
            break
    following = next((span for span in found[1:] if span.duties), None)
    return OnCall(
        schedule_id=plan.schedule_id, now=found[0], next=following, changes=len(found) > 1
    )
