"""Tells users by e-mail that somebody else changed their shifts.

That is by a swap, by an override, or by taking them out of a rotation.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE
from domain.mail.outbox import NewMessage, queue_messages
from domain.on_call.final_schedule import spans
from domain.on_call.overrides import OverrideView
from domain.on_call.people import PersonOnCall, people
from domain.on_call.reading import read_plans
from domain.on_call.restrictions import Period
from domain.on_call.schedules import ScheduleView
from domain.on_call.swaps import SwapView
from domain.time_zones import zone
from models import User


@dataclass(frozen=True, kw_only=True)
class ShiftChange:
    """Who changed shifts of which schedule, and what the messages name."""

    schedule: ScheduleView
    project_path: str
    #: The user who made the change, and is not told.
    by_id: int | None
    #: Without a trailing slash.
    base_url: str
    instance_name: str

    def period(self, start: datetime, end: datetime) -> str:
        """Return a time as messages write it, by the clock of the schedule."""
        return f"from {self.written(start)} until {self.written(end)}"

    def written(self, moment: datetime) -> str:
        """Return a moment as messages write it."""
        local = moment.astimezone(zone(self.schedule.time_zone))
        return f"{local:%a %Y-%m-%d %H:%M}"


@dataclass(frozen=True, kw_only=True)
class _Notice:
    #: Identifies the message to one user.
    key: str
    subject: str
    told: tuple[PersonOnCall, ...]
    #: Returns the text to one of those who are told; takes the name of who made the change.
    text: Callable[[PersonOnCall, str], str]


def tell_of_swap(swap: SwapView, change: ShiftChange, *, session: Session, now: datetime) -> int:
    """Queue a message to each user of a new swap who did not make it; return how many."""

    def text(person: PersonOnCall, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        made = (
            f"{by} swapped shifts with you"
            if other.id == change.by_id
            else f"{by} swapped your shift with that of {_name(other)}"
        )
        return (
            f"{made}:\n\n"
            f"- You are on call {others}, for {_name(other)}.\n"
            f"- {_name(other)} is on call {own}, for you."
        )

    notice = _Notice(
        key=_swap_key(swap, "made"),
        subject="Your on-call shifts were swapped",
        told=(swap.person, swap.other_person),
        text=text,
    )
    return _tell(notice, change, session=session, now=now)


def tell_of_undone_swap(
    swap: SwapView, change: ShiftChange, *, session: Session, now: datetime
) -> int:
    """Queue a message to each user of a swap who did not undo it; return how many."""

    def text(person: PersonOnCall, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        return (
            f"{by} undid the swap of shifts between you and {_name(other)}. The original shifts "
            f"apply again:\n\n- You are on call {own}.\n- {_name(other)} is on call {others}."
        )

    notice = _Notice(
        key=_swap_key(swap, "undone"),
        subject="A swap of your on-call shifts was undone",
        told=(swap.person, swap.other_person),
        text=text,
    )
    return _tell(notice, change, session=session, now=now)


def _swap_key(swap: SwapView, what: str) -> str:
    # An id may be used again after a deletion.
    return f"on-call swap {swap.id} of {swap.created_at.isoformat()} {what}"


def _sides(
    person: PersonOnCall, swap: SwapView, change: ShiftChange
) -> tuple[str, PersonOnCall, str]:
    """Return the shift that was a user's own, the other user, and the shift of that one."""
    first = change.period(swap.starts_at, swap.ends_at)
    second = change.period(swap.other_starts_at, swap.other_ends_at)
    if person.id == swap.person.id:
        return first, swap.other_person, second
    return second, swap.person, first


def tell_of_override(
    override: OverrideView, change: ShiftChange, *, session: Session, now: datetime
) -> int:
    """Queue a message to whom somebody else put on call, and to whose shifts that takes.

    Returns how many.
    """
    when = change.period(override.starts_at, override.ends_at)
    put = _OverrideNotice(
        word="made",
        subject="You were put on call",
        text=lambda _, by: f"{by} put you on call {when}, instead of everybody else.",
        told=(override.person,),
    )
    taken = _OverrideNotice(
        word="taken",
        subject="Your on-call shift was taken over",
        text=lambda _, by: (
            f"{by} put {_name(override.person)} on call {when}, instead of everybody else. You are "
            "not on call in this time any more."
        ),
        told=_others_on_call(override, change, session=session, now=now),
    )
    return sum(
        _tell_overridden(each, override, change, session=session, now=now) for each in (put, taken)
    )


def tell_of_ended_override(
    override: OverrideView, change: ShiftChange, *, session: Session, now: datetime
) -> int:
    """Queue a message to whose override somebody else ended, and to who is on call again.

    Returns how many.
    """
    when = change.period(override.starts_at, override.ends_at)
    ended = _OverrideNotice(
        word="ended",
        subject="Your on-call override was removed",
        text=lambda _, by: (
            f"{by} removed the override that put you on call {when}. The rotations and swaps "
            "of the schedule apply again."
        ),
        told=(override.person,),
    )
    back = _OverrideNotice(
        word="back",
        subject="You are on call again",
        text=lambda _, by: (
            f"{by} removed the override that put {_name(override.person)} on call {when}. Your "
            "shifts in this time apply again."
        ),
        told=_others_on_call(override, change, session=session, now=now),
    )
    return sum(
        _tell_overridden(each, override, change, session=session, now=now) for each in (ended, back)
    )


class _LeftOut(NamedTuple):
    """Users who are not in a rotation any more."""

    name: str
    user_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _OverrideNotice:
    word: str
    subject: str
    text: Callable[[PersonOnCall, str], str]
    told: tuple[PersonOnCall, ...]


def tell_of_removal(
    before: ScheduleView, change: ShiftChange, *, session: Session, now: datetime
) -> int:
    """Queue a message to each user who is in a rotation no more; return how many.

    `before` is the schedule as it was.
    """
    removed: dict[int, list[str]] = {}
    for rotation in _left_out(before, change.schedule):
        for user_id in rotation.user_ids:
            removed.setdefault(user_id, []).append(rotation.name)

    def text(person: PersonOnCall, by: str) -> str:
        names = removed[person.id]
        which = f"the rotation {names[0]}" if len(names) == 1 else f"the rotations {_all(names)}"
        return (
            f"{by} took you out of {which}. You have no shifts there any more, from "
            f"{change.written(now)} on."
        )

    named = people(removed, session=session)
    notice = _Notice(
        key=f"on-call schedule {before.id} of {before.created_at.isoformat()} at {now.isoformat()}",
        subject="You were taken out of a rotation",
        told=tuple(named[each] for each in sorted(named)),
        text=text,
    )
    return _tell(notice, change, session=session, now=now)


def _left_out(before: ScheduleView, after: ScheduleView) -> Iterator[_LeftOut]:
    """Yield who is left out of each rotation that ended: its name and users."""
    known, kept = ({each.id for each in view.rotations} for view in (before, after))
    ended = [each for each in before.rotations if each.id not in kept]
    begun = [each for each in after.rotations if each.id not in known]
    names = {each.name for each in ended}
    for rotation in ended:
        # A rotation that was changed has its name; if that is what changed, it has a new one.
        following = [each for each in begun if each.name == rotation.name] or [
            each for each in begun if each.name not in names
        ]
        still = {user_id for each in following for user_id in each.user_ids}
        yield _LeftOut(rotation.name, tuple(set(rotation.user_ids) - still))


def _others_on_call(
    override: OverrideView, change: ShiftChange, *, session: Session, now: datetime
) -> tuple[PersonOnCall, ...]:
    """Return who is on call in the time of an override without it, but for its own user."""
    schedule_id, start = change.schedule.id, max(override.starts_at, now)
    within = Period(start, override.ends_at)
    plans = read_plans([schedule_id], within, session=session, today=now.date())
    if schedule_id not in plans or start >= override.ends_at:
        return ()
    without = replace(
        plans[schedule_id],
        overrides=tuple(each for each in plans[schedule_id].overrides if each.id != override.id),
    )
    on_call = {each for span in spans(without, start, override.ends_at) for each in span.user_ids}
    named = people(on_call - {override.person.id}, session=session)
    return tuple(named[each] for each in sorted(named))


def _tell_overridden(
    what: _OverrideNotice,
    override: OverrideView,
    change: ShiftChange,
    *,
    session: Session,
    now: datetime,
) -> int:
    key = f"on-call override {override.id} of {override.created_at.isoformat()} {what.word}"
    notice = _Notice(key=key, subject=what.subject, told=what.told, text=what.text)
    return _tell(notice, change, session=session, now=now)


def _tell(notice: _Notice, change: ShiftChange, *, session: Session, now: datetime) -> int:
    told = [each for each in notice.told if each.id != change.by_id]
    addresses = _addresses((each.id for each in told), session=session)
    by = _made_by(change, session=session)
    messages = [
        NewMessage(
            key=f"{notice.key}, to {each.id}",
            recipient=addresses[each.id],
            subject=f"{notice.subject}: {change.schedule.name} of {change.project_path}",
            text=_framed(notice.text(each, by), each, change),
        )
        for each in told
        if each.id in addresses
    ]
    return queue_messages(messages, session=session, now=now)


def _addresses(user_ids: Iterable[int], *, session: Session) -> dict[int, str]:
    rows = session.execute(
        select(User.id, User.email).where(User.id.in_(list(user_ids)), User.state == ACTIVE)
    )
    return {row.id: row.email for row in rows}


def _made_by(change: ShiftChange, *, session: Session) -> str:
    found = people([change.by_id] if change.by_id else [], session=session)
    return _name(found[change.by_id]) if change.by_id in found else "Somebody"


def _framed(text: str, person: PersonOnCall, change: ShiftChange) -> str:
    url = f"{change.base_url}/{change.project_path}/-/on_call/schedules/{change.schedule.id}"
    return (
        f"Hello {_name(person)},\n\n{text}\n\n"
        f"Schedule: {change.schedule.name} of {change.project_path}\n"
        f"Times are in the time zone {change.schedule.time_zone}.\n"
        f"{url}\n\n"
        f"-- \n{change.instance_name}, {change.base_url}\n"
        "You receive this message because somebody else changed your on-call shifts.\n"
    )


def _all(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}"


def _name(person: PersonOnCall) -> str:
    return person.name or person.username
