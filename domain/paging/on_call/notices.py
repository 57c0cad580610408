"""Sends emails to users whose on-call shifts another user changed.

Such changes are swaps, overrides, and changes of rotations.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from sqlalchemy import select

from domain.access.actor import Work
from domain.accounts.profiles import UserReference, user_references
from domain.accounts.users import ACTIVE
from domain.core.keyring import Keyring
from domain.core.time_zones import zone
from domain.delivery.mail.outbox import NewMessage, queue_messages
from domain.paging.on_call.final_schedule import Source, spans
from domain.paging.on_call.rotation_turns import turns
from domain.paging.on_call.schedule_queries import read_plans
from domain.paging.on_call.schedule_values import Period
from domain.paging.on_call.types import OnCallOverride, OnCallSchedule, OnCallSwap
from domain.projects.views import Holder
from models import User

Changed = TypeVar("Changed")
#: Maximum number of shifts that a message lists.
_MOST_SHIFTS = 20


@dataclass(frozen=True)
class ShiftChange:
    """A change of shifts: the actor, the project or group, and the schedule."""

    work: Work
    holder: Holder
    schedule: OnCallSchedule

    def period(self, start: datetime, end: datetime) -> str:
        """Return the text for a period in the time zone of the schedule."""
        return f"from {self.written(start)} until {self.written(end)}"

    def written(self, moment: datetime) -> str:
        """Return the text for a time in the time zone of the schedule."""
        local = moment.astimezone(zone(self.schedule.time_zone))
        return f"{local:%a %Y-%m-%d %H:%M}"

    def people(self, user_ids: Iterable[int]) -> Mapping[int, UserReference]:
        """Return users by id."""
        base_url = self.work.settings.base_url
        return user_references(user_ids, base_url=base_url, session=self.work.session)


@dataclass(frozen=True, kw_only=True)
class _Notice:
    #: Prefix of the keys of the messages.
    key: str
    subject: str
    told: tuple[UserReference, ...]
    #: Function that returns the text for a recipient; it takes the recipient and the actor's name.
    text: Callable[[UserReference, str], str]


def tell(
    what: Callable[[Changed, ShiftChange], None], changed: Changed, change: ShiftChange
) -> None:
    """Queue the messages about a change by one of the functions below, if email is configured."""
    if change.work.settings.mail_url:
        what(changed, change)


def tell_of_swap(swap: OnCallSwap, change: ShiftChange) -> None:
    """Queue a message to the users of a new swap, except its creator."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        made = (
            f"{by} swapped shifts with you"
            if other.id == change.work.actor.id
            else f"{by} swapped your shift with a shift of {_name(other)}"
        )
        return (
            f"{made}:\n\n"
            f"- You are on call {others}, instead of {_name(other)}.\n"
            f"- {_name(other)} is on call {own}, instead of you."
        )

    notice = _Notice(
        key=_key(swap, "made"),
        subject="Your on-call shifts were swapped",
        told=(swap.user, swap.other_user),
        text=text,
    )
    _tell(notice, change)


def tell_of_undone_swap(swap: OnCallSwap, change: ShiftChange) -> None:
    """Queue a message to the users of an undone swap, except the user who undid it."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        return (
            f"{by} undid the swap of shifts between you and {_name(other)}. The original shifts "
            f"apply again:\n\n- You are on call {own}.\n- {_name(other)} is on call {others}."
        )

    notice = _Notice(
        key=_key(swap, "undone"),
        subject="A swap of your on-call shifts was undone",
        told=(swap.user, swap.other_user),
        text=text,
    )
    _tell(notice, change)


def tell_of_moved_swap(swap: OnCallSwap, change: ShiftChange) -> None:
    """Queue a message to the users of a swap whose turns another user moved."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        return (
            f"{by} changed the rotations of the schedule. The swap of shifts between you and "
            f"{_name(other)} moved with its turns. The new times are:\n\n"
            f"- You are on call {others}, instead of {_name(other)}.\n"
            f"- {_name(other)} is on call {own}, instead of you."
        )

    notice = _Notice(
        key=_key(swap, f"moved at {change.work.now.isoformat()}"),
        subject="A swap of your on-call shifts was moved",
        told=(swap.user, swap.other_user),
        text=text,
    )
    _tell(notice, change)


def tell_of_ended_swap(swap: OnCallSwap, change: ShiftChange) -> None:
    """Queue a message to the users of a swap whose turns no longer exist after a change."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _sides(person, swap, change)
        return (
            f"{by} changed the rotations of the schedule. The turns that you and {_name(other)} "
            "swapped no longer exist, so the swap has ended. The rotations apply again, and you "
            "can swap other shifts.\n\nThe swap included these shifts:\n\n"
            f"- Your shift was {own}.\n- The shift of {_name(other)} was {others}."
        )

    notice = _Notice(
        key=_key(swap, "ended"),
        subject="A swap of your on-call shifts has ended",
        told=(swap.user, swap.other_user),
        text=text,
    )
    _tell(notice, change)


def tell_of_moved_override(override: OnCallOverride, change: ShiftChange) -> None:
    """Queue a message to the users of an override whose turn another user moved."""
    when = change.period(override.starts_at, override.ends_at)
    notice = _Notice(
        key=_key(override, f"moved at {change.work.now.isoformat()}"),
        subject="An override of on-call shifts was moved",
        told=_users_of(override),
        text=lambda _, by: (
            f"{by} changed the rotations of the schedule. The override that puts "
            f"{_name(override.user)} on call moved with its turn. It is now {when}."
        ),
    )
    _tell(notice, change)


def tell_of_lost_override(override: OnCallOverride, change: ShiftChange) -> None:
    """Queue a message to the users of an override whose turn no longer exists after a change."""
    when = change.period(override.starts_at, override.ends_at)
    notice = _Notice(
        key=_key(override, "lost"),
        subject="An override of on-call shifts has ended",
        told=_users_of(override),
        text=lambda _, by: (
            f"{by} changed the rotations of the schedule. The turn that {_name(override.user)} "
            f"covered {when} no longer exists, so the override has ended. The rotations apply "
            "again."
        ),
    )
    _tell(notice, change)


def _users_of(override: OnCallOverride) -> tuple[UserReference, ...]:
    covered = override.instead_of
    return (override.user,) if covered is None else (override.user, covered)


def _key(changed: OnCallSwap | OnCallOverride, what: str) -> str:
    kind = "swap" if isinstance(changed, OnCallSwap) else "override"
    # An id may be reused after a deletion, so the key includes the time of creation.
    return f"on-call {kind} {changed.id} of {changed.created_at.isoformat()} {what}"


def _sides(
    person: UserReference, swap: OnCallSwap, change: ShiftChange
) -> tuple[str, UserReference, str]:
    """Return a user's original shift, the other user, and the other user's original shift."""
    first = change.period(swap.starts_at, swap.ends_at)
    second = change.period(swap.other_starts_at, swap.other_ends_at)
    if person.id == swap.user.id:
        return first, swap.other_user, second
    return second, swap.user, first


def tell_of_override(override: OnCallOverride, change: ShiftChange) -> None:
    """Queue messages to the user that another user put on call, and to the replaced users."""
    when = change.period(override.starts_at, override.ends_at)
    covered, shifts = override.instead_of, ""
    instead = "in addition to others" if override.in_addition else "instead of everybody else"
    if covered is not None:
        instead, shifts = f"for the shifts of {_name(covered)}", _taken_shifts(override, change)
    put = _Notice(
        key=_key(override, "made"),
        subject="You were put on call",
        text=lambda _, by: f"{by} put you on call {when}, {instead}.{shifts}",
        told=(override.user,),
    )
    taken = _Notice(
        key=_key(override, "taken"),
        subject="Your on-call shift was taken over",
        text=lambda _, by: (
            f"{by} put {_name(override.user)} on call {when}, {instead}. You are no longer on call "
            f"in this period.{shifts}"
        ),
        told=_others_on_call(override, change),
    )
    _tell(put, change)
    _tell(taken, change)


def _taken_shifts(override: OnCallOverride, change: ShiftChange) -> str:
    """Return the first shifts that an override takes, one per line."""
    work, within = change.work, Period(override.starts_at, override.ends_at)
    plans = read_plans([change.schedule.id], within, session=work.session, now=work.now)
    parts = [
        part
        for turn in turns(plans[change.schedule.id], within)
        if (turn.duty.source, turn.duty.source_id) == (Source.OVERRIDE, override.id)
        for part in turn.parts
    ]
    more = len(parts) - _MOST_SHIFTS
    lines = [change.period(each.start, each.end) for each in parts[:_MOST_SHIFTS]]
    lines += [f"and {more} more"] if more > 0 else []
    return "\n\n" + "\n".join(f"- {line}" for line in lines)


def tell_of_ended_override(override: OnCallOverride, change: ShiftChange) -> None:
    """Queue messages to the user of an ended override, and to the users who are on call again."""
    when = change.period(override.starts_at, override.ends_at)
    ended = _Notice(
        key=_key(override, "ended"),
        subject="Your on-call override was removed",
        text=lambda _, by: (
            f"{by} removed the override that put you on call {when}. The rotations and swaps "
            "of the schedule apply again."
        ),
        told=(override.user,),
    )
    back = _Notice(
        key=_key(override, "back"),
        subject="You are on call again",
        text=lambda _, by: (
            f"{by} removed the override that put {_name(override.user)} on call {when}. Your "
            "shifts in this period apply again."
        ),
        told=_others_on_call(override, change),
    )
    _tell(ended, change)
    _tell(back, change)


def tell_of_removal(before: OnCallSchedule, change: ShiftChange) -> None:
    """Queue a message to each user who was removed from a rotation.

    `before` is the former state of the schedule.
    """
    now = change.work.now
    removed: dict[int, list[str]] = {}
    for name, user_ids in _left_out(before, change.schedule):
        for user_id in user_ids:
            removed.setdefault(user_id, []).append(name)

    def text(person: UserReference, by: str) -> str:
        *others, last = removed[person.id]
        which = f"rotations {', '.join(others)} and {last}" if others else f"rotation {last}"
        return (
            f"{by} removed you from the {which}. You have no more shifts there, starting "
            f"{change.written(now)}."
        )

    named = change.people(removed)
    notice = _Notice(
        key=f"on-call schedule {before.id} of {before.created_at.isoformat()} at {now.isoformat()}",
        subject="You were removed from a rotation",
        told=tuple(named[each] for each in sorted(named)),
        text=text,
    )
    _tell(notice, change)


def _left_out(before: OnCallSchedule, after: OnCallSchedule) -> Iterator[tuple[str, set[int]]]:
    """Yield the name of each ended rotation, and the ids of the users who were removed from it."""
    known, kept = ({each.id for each in view.rotations} for view in (before, after))
    ended = [each for each in before.rotations if each.id not in kept]
    begun = [each for each in after.rotations if each.id not in known]
    names = {each.name for each in ended}
    for rotation in ended:
        # A changed rotation keeps its name, unless the name is what changed.
        following = [each for each in begun if each.name == rotation.name] or [
            each for each in begun if each.name not in names
        ]
        still = {user for each in following for user in each.users}
        yield rotation.name, {each.id for each in rotation.users if each not in still}


def _others_on_call(override: OnCallOverride, change: ShiftChange) -> tuple[UserReference, ...]:
    """Return the other users who would be on call without an override.

    For an override of a single user, this is that user. An override in addition does not change the
    shifts of others, so there are none.
    """
    if override.in_addition:
        return ()
    if override.instead_of is not None:
        return (override.instead_of,)
    work, schedule_id = change.work, change.schedule.id
    start = max(override.starts_at, work.now)
    within = Period(start, override.ends_at)
    plans = read_plans([schedule_id], within, session=work.session, now=work.now)
    if schedule_id not in plans or start >= override.ends_at:
        return ()
    without = replace(
        plans[schedule_id],
        overrides=tuple(each for each in plans[schedule_id].overrides if each.id != override.id),
    )
    on_call = {each for span in spans(without, start, override.ends_at) for each in span.user_ids}
    named = change.people(on_call - {override.user.id})
    return tuple(named[each] for each in sorted(named))


def _tell(notice: _Notice, change: ShiftChange) -> None:
    work = change.work
    # If the operator makes the change, no recipient counts as its author.
    made_by_id = None if work.actor.is_trusted else work.actor.id
    told = [each for each in notice.told if each.id != made_by_id]
    rows = work.session.execute(
        select(User.id, User.email).where(
            User.id.in_([each.id for each in told]), User.state == ACTIVE
        )
    )
    addresses = {row.id: row.email for row in rows}
    made_by = change.people([made_by_id] if made_by_id else []).values()
    by = next(map(_name, made_by), "Somebody")
    messages = [
        NewMessage(
            key=f"{notice.key}, to {each.id}",
            recipient=addresses[each.id],
            subject=f"{notice.subject}: {change.schedule.name} of {change.holder.path}",
            text=_framed(notice.text(each, by), each, change),
        )
        for each in told
        if each.id in addresses
    ]
    queue_messages(messages, session=work.session, keyring=work.policy(Keyring), now=work.now)


def _framed(text: str, person: UserReference, change: ShiftChange) -> str:
    settings = change.work.settings
    return (
        f"Hello {_name(person)},\n\n{text}\n\n"
        f"Schedule: {change.schedule.name} of {change.holder.path}\n"
        f"Times are in the time zone {change.schedule.time_zone}.\n"
        f"{change.schedule.web_url}\n\n"
        f"-- \n{settings.instance_name}, {settings.base_url}\n"
        "You receive this message because somebody else changed your on-call shifts.\n"
    )


def _name(person: UserReference) -> str:
    return person.name or person.username
