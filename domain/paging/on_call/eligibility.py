"""Records the periods in which users could be on call, so that past shifts stay correct.

Many parts of the code change memberships and roles, or lock accounts. This module therefore checks
every few minutes which users can be on call, and stores changes. It covers all current and previous
users of schedules.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import select, union
from sqlalchemy.orm import Session

from domain.paging.on_call.eligible_users import LONG_AGO, find_eligibility_ends
from domain.paging.on_call.schedule_owners import find_schedule_owners
from domain.paging.on_call.schedule_plans import Period
from domain.projects.views import Namespace
from models import OnCallEligibility, OnCallOverride, OnCallRotation, OnCallSwap, OnCallTurn

#: Recorded periods in order, by schedule ID and user ID.
_RecordsByUser = Mapping[tuple[int, int], list[OnCallEligibility]]
_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)


def record_eligibility_changes(
    *, session: Session, now: datetime, commit_batch: Callable[[], None]
) -> None:
    """Record changes to the on-call eligibility of users.

    `commit_batch` commits the transaction.
    """
    named = _find_schedule_users(session=session)
    places = find_schedule_owners(named, session=session)
    by_place: dict[Namespace, set[int]] = defaultdict(set)
    for schedule_id, place in places.items():
        by_place[place].add(schedule_id)
    for place, schedules in by_place.items():
        users = {each for schedule_id in schedules for each in named[schedule_id]}
        ends = find_eligibility_ends(place, users, session=session, today=now.date())
        seen = _find_records(schedules, session=session)
        for schedule_id in schedules:
            for user_id in named[schedule_id]:
                rows = seen.get((schedule_id, user_id), [])
                if new := _update_eligibility_record(rows, ends.get(user_id), now):
                    new.schedule_id, new.user_id = schedule_id, user_id
                    session.add(new)
        commit_batch()


def _find_schedule_users(*, session: Session) -> Mapping[int, set[int]]:
    """Return the IDs of the users of schedules, including users of previous rotations."""
    override, swap = OnCallOverride, OnCallSwap
    turns = select(OnCallRotation.schedule_id, OnCallTurn.user_id).join(
        OnCallTurn, OnCallTurn.rotation_id == OnCallRotation.id
    )
    found: dict[int, set[int]] = defaultdict(set)
    for schedule_id, user_id in session.execute(
        union(
            turns,
            select(override.schedule_id, override.user_id),
            select(swap.schedule_id, swap.user_id),
            select(swap.schedule_id, swap.other_user_id),
        )
    ):
        found[schedule_id].add(user_id)
    return found


def _find_records(schedule_ids: Collection[int], *, session: Session) -> _RecordsByUser:
    found: dict[tuple[int, int], list[OnCallEligibility]] = defaultdict(list)
    for row in session.scalars(
        select(OnCallEligibility)
        .where(OnCallEligibility.schedule_id.in_(schedule_ids))
        .order_by(OnCallEligibility.id)
    ):
        found[row.schedule_id, row.user_id].append(row)
    return found


def _is_current_record(row: OnCallEligibility, now: datetime) -> bool:
    return row.until is None or row.until > now


def _update_eligibility_record(
    rows: Sequence[OnCallEligibility], end: datetime | None, now: datetime
) -> OnCallEligibility | None:
    """Update the current eligibility record of a user.

    Return a new record to store, or None if no new record is needed.
    """
    current = next((each for each in rows if _is_current_record(each, now)), None)
    until = now if end == LONG_AGO else end
    if current is not None:
        current.until = until
        return None
    if end == LONG_AGO:
        # An empty first record shows that this user could not always be on call.
        return None if rows else OnCallEligibility(since=now, until=now)
    return OnCallEligibility(since=now if rows else None, until=until)


def find_eligible_periods(
    places: Mapping[int, Namespace],
    named: Mapping[int, Collection[int]],
    *,
    period: Period,
    session: Session,
    now: datetime,
) -> Mapping[int, Mapping[int, tuple[Period, ...]]]:
    """Return the periods in which users can be on call, by schedule ID and user ID."""
    users: dict[Namespace, set[int]] = defaultdict(set)
    for schedule_id, place in places.items():
        users[place].update(named[schedule_id])
    ends = {
        place: find_eligibility_ends(place, some, session=session, today=now.date())
        for place, some in users.items()
    }
    seen = _find_records(places.keys(), session=session)
    found: dict[int, dict[int, tuple[Period, ...]]] = defaultdict(dict)
    for schedule_id, place in places.items():
        for user_id in named[schedule_id]:
            rows = seen.get((schedule_id, user_id), [])
            times = _list_eligible_periods(rows, ends[place].get(user_id), now)
            touching = (each for each in times if each.start < period.end)
            found[schedule_id][user_id] = tuple(
                each for each in touching if each.end > period.start
            )
    return found


def _list_eligible_periods(
    rows: Sequence[OnCallEligibility], end: datetime | None, now: datetime
) -> Sequence[Period]:
    """Return the periods in which a user could or can be on call.

    For users who are no longer members and have no records, the result covers no time, because the
    end of their membership is unknown.
    """
    if not rows:
        return [Period(LONG_AGO, end or _FAR_FUTURE)]
    current = next((each for each in rows if _is_current_record(each, now)), None)
    former = [
        Period(each.since or LONG_AGO, each.until)
        for each in rows
        if each.until is not None and each is not current
    ]
    since = (current.since or LONG_AGO) if current else now
    return [*former, Period(since, now if end == LONG_AGO else end or _FAR_FUTURE)]
