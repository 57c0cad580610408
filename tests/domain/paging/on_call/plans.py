"""Schedule plans for tests: Alice has the id 1, Bob 2, Carol 3."""

from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from domain.paging.on_call.final_schedule import OnCallSpan, compute_spans
from domain.paging.on_call.schedule_plans import (
    Cadence,
    Override,
    Period,
    RotationPlan,
    SchedulePlan,
    Swap,
    TurnUnit,
    UserPeriod,
)

ALICE, BOB, CAROL = 1, 2, 3
BERLIN = ZoneInfo("Europe/Berlin")
#: Time before all times in tests.
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
WEEKLY, DAILY = Cadence(unit=TurnUnit.WEEKS), Cadence(unit=TurnUnit.DAYS)
MONDAY = date(2026, 11, 2)


def berlin(text: str, *, fold: int = 0) -> datetime:
    """Return a local time in Berlin; `fold` is 1 for the second of two equal times."""
    local = datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)
    return local.astimezone(UTC)


def rotation(*user_ids: int, **changes: Any) -> RotationPlan:
    """Return a weekly rotation in Berlin with handoffs on Mondays at nine."""
    usual: dict[str, Any] = {
        "id": 1,
        "name": "Rotation 1",
        "layer": 1,
        "cadence": WEEKLY,
        "starts_on": MONDAY,
        "time_zone": "Europe/Berlin",
        "valid_from": LONG_AGO,
    }
    return RotationPlan(user_ids=user_ids, **{**usual, **changes})


def plan(*rotations: RotationPlan, **parts: Any) -> SchedulePlan:
    """Return a plan with these rotations."""
    return SchedulePlan(schedule_id=1, rotations=rotations, **parts)


def override(user_id: int, start: str, end: str, *, number: int = 1) -> Override:
    """Return an override between local times in Berlin."""
    return Override(id=number, user_id=user_id, during=Period(berlin(start), berlin(end)))


def swap(first: tuple[int, str, str], second: tuple[int, str, str], *, number: int = 1) -> Swap:
    """Return a swap of two periods in local times of Berlin."""
    stints = [
        UserPeriod(user_id=user_id, during=Period(berlin(start), berlin(end)))
        for user_id, start, end in (first, second)
    ]
    return Swap(id=number, first=stints[0], second=stints[1])


def as_local(
    found: tuple[OnCallSpan, ...], place: ZoneInfo = BERLIN
) -> list[tuple[str, str, list[int]]]:
    """Return spans as local times: start, end, users."""
    return [
        (
            f"{span.start.astimezone(place):%a %d %H:%M}",
            f"{span.end.astimezone(place):%a %d %H:%M}",
            sorted(span.user_ids),
        )
        for span in found
    ]


def local_spans(asked: SchedulePlan, start: str, end: str) -> list[tuple[str, str, list[int]]]:
    """Return the users on call between two local times in Berlin."""
    return as_local(compute_spans(asked, berlin(start), berlin(end)))


def at(hour: int, minute: int = 0) -> time:
    """Return a time of day."""
    return time(hour, minute)
