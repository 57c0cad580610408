"""Queues emails to users whose on-call shifts were changed by another user.

Shifts change because of swaps, overrides and changes to rotations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.accounts.profiles import UserReference, find_user_references
from domain.accounts.users import ACTIVE
from domain.core.keyring import Keyring
from domain.core.time_zones import get_zone
from domain.delivery.mail.outbox import NewEmail, queue_emails
from domain.paging.on_call.absences.types import OnCallConflict
from domain.paging.on_call.final_schedule import DutySource, compute_spans
from domain.paging.on_call.rotation_turns import find_user_turns
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.paging.on_call.swap_request_states import SwapRequestState
from domain.paging.on_call.swap_request_types import OnCallSwapRequest
from domain.paging.on_call.types import (
    OnCallOverride,
    OnCallSchedule,
    OnCallSwap,
    SwappedShifts,
)
from domain.projects.views import ProjectOrGroup
from models import User

ChangedThing = TypeVar("ChangedThing")
#: Maximum number of shifts that a message lists.
_MAX_LISTED_SHIFTS = 20
_ANSWER_WORDS = {
    SwapRequestState.ACCEPTED: "accepted",
    SwapRequestState.DECLINED: "declined",
    SwapRequestState.WITHDRAWN: "withdrew",
}


@dataclass(frozen=True)
class ShiftChangeContext:
    """The context of a change to shifts: the actor, the project or group, and the schedule."""

    work: UnitOfWork
    holder: ProjectOrGroup
    schedule: OnCallSchedule

    def format_period(self, start: datetime, end: datetime) -> str:
        """Format a period in the time zone of the schedule."""
        return f"from {self.format_time(start)} until {self.format_time(end)}"

    def format_time(self, moment: datetime) -> str:
        """Format a time in the time zone of the schedule."""
        local = moment.astimezone(get_zone(self.schedule.time_zone))
        return f"{local:%a %Y-%m-%d %H:%M}"

    def find_users(self, user_ids: Iterable[int]) -> Mapping[int, UserReference]:
        """Return references to users, by user ID."""
        base_url = self.work.settings.base_url
        return find_user_references(user_ids, base_url=base_url, session=self.work.session)


@dataclass(frozen=True, kw_only=True)
class _ShiftNotice:
    #: Prefix of the messages' keys.
    key: str
    subject: str
    told: tuple[UserReference, ...]
    #: Function that returns the text for a recipient; it takes the recipient and the actor's name.
    text: Callable[[UserReference, str], str]
    reason: str = "somebody else changed your on-call shifts"


def queue_notices_if_mail_is_configured(
    what: Callable[[ChangedThing, ShiftChangeContext], None],
    changed: ChangedThing,
    change: ShiftChangeContext,
) -> None:
    """Call a function that queues notices about a change, if email is configured."""
    if change.work.settings.mail_url:
        what(changed, change)


def queue_swap_notices(swap: OnCallSwap, change: ShiftChangeContext) -> None:
    """Queue a message to the users of a new swap, except its creator."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _find_swap_sides(person, swap, change)
        made = (
            f"{by} swapped shifts with you"
            if other.id == change.work.actor.id
            else f"{by} swapped your shift with a shift of {_get_full_name(other)}"
        )
        return (
            f"{made}:\n\n"
            f"- You are on call {others}, instead of {_get_full_name(other)}.\n"
            f"- {_get_full_name(other)} is on call {own}, instead of you."
        )

    notice = _ShiftNotice(
        key=_build_notice_key(swap, "made"),
        subject="Your on-call shifts were swapped",
        told=(swap.user, swap.other_user),
        text=text,
    )
    _queue_notice(notice, change)


def queue_swap_request_notices(request: OnCallSwapRequest, change: ShiftChangeContext) -> None:
    """Queue a message about a new or answered swap request to its users, except the actor."""

    def text(person: UserReference, by: str) -> str:
        own, other, others = _find_swap_sides(person, request, change)
        if request.state == SwapRequestState.REQUESTED:
            return (
                f"{by} asks you to swap shifts:\n\n"
                f"- You would be on call {others}, instead of {_get_full_name(other)}.\n"
                f"- {_get_full_name(other)} would be on call {own}, instead of you.\n\n"
                f"Nothing changes until you accept. The request expires at "
                f"{change.format_time(request.expires_at)}."
            )
        result = (
            f"You are on call {others}, and {_get_full_name(other)} is on call {own}."
            if request.state == SwapRequestState.ACCEPTED
            else f"The schedule has not changed: you are on call {own}."
        )
        return f"{by} {_ANSWER_WORDS[SwapRequestState(request.state)]} the swap of shifts. {result}"

    notice = _ShiftNotice(
        key=f"on-call swap request {request.id} of {request.created_at.isoformat()} "
        f"{request.state}",
        subject=f"A swap of on-call shifts was {request.state}",
        told=(request.user, request.other_user),
        text=text,
        reason="you are part of a swap request",
    )
    _queue_notice(notice, change)


def queue_undone_swap_notices(swap: OnCallSwap, change: ShiftChangeContext) -> None:
    """Queue a message to the users of an undone swap, except the user who undid it."""
    text = (
        "{by} undid the swap of shifts between you and {other}. The original shifts apply again:"
        "\n\n- You are on call {own}.\n- {other} is on call {others}."
    )
    _queue_swap_notice(swap, change, "undone", "was undone", text)


def queue_moved_swap_notices(swap: OnCallSwap, change: ShiftChangeContext) -> None:
    """Queue a message to the users of a swap whose turns another user moved."""
    text = (
        "{by} changed the rotations of the schedule. The swap of shifts between you and {other} "
        "moved with its turns. The new times are:\n\n- You are on call {others}, instead of "
        "{other}.\n- {other} is on call {own}, instead of you."
    )
    what = f"moved at {change.work.now.isoformat()}"
    _queue_swap_notice(swap, change, what, "was moved", text)


def queue_ended_swap_notices(swap: OnCallSwap, change: ShiftChangeContext) -> None:
    """Queue a message to the users of a swap whose turns no longer exist after a change."""
    text = (
        "{by} changed the rotations of the schedule. The turns that you and {other} swapped no "
        "longer exist, so the swap has ended. The rotations apply again, and you can swap other "
        "shifts.\n\nThe swap included these shifts:\n\n- Your shift was {own}.\n- The shift of "
        "{other} was {others}."
    )
    _queue_swap_notice(swap, change, "ended", "has ended", text)


def _queue_swap_notice(
    swap: OnCallSwap, change: ShiftChangeContext, what: str, title: str, text: str
) -> None:
    """Queue a message to the users of a swap, except the actor.

    `text` is a format string.
    """

    def format_text(person: UserReference, by: str) -> str:
        own, other, others = _find_swap_sides(person, swap, change)
        return text.format(by=by, other=_get_full_name(other), own=own, others=others)

    notice = _ShiftNotice(
        key=_build_notice_key(swap, what),
        subject=f"A swap of your on-call shifts {title}",
        told=(swap.user, swap.other_user),
        text=format_text,
    )
    _queue_notice(notice, change)


def queue_moved_override_notices(override: OnCallOverride, change: ShiftChangeContext) -> None:
    """Queue a message to the users of an override whose turn another user moved."""
    when = change.format_period(override.starts_at, override.ends_at)
    notice = _ShiftNotice(
        key=_build_notice_key(override, f"moved at {change.work.now.isoformat()}"),
        subject="An override of on-call shifts was moved",
        told=_list_override_users(override),
        text=lambda _, by: (
            f"{by} changed the rotations of the schedule. The override that puts "
            f"{_get_full_name(override.user)} on call moved with its turn. It is now {when}."
        ),
    )
    _queue_notice(notice, change)


def queue_orphaned_override_notices(override: OnCallOverride, change: ShiftChangeContext) -> None:
    """Queue a message to the users of an override if a change removed the overridden turn."""
    when = change.format_period(override.starts_at, override.ends_at)
    notice = _ShiftNotice(
        key=_build_notice_key(override, "lost"),
        subject="An override of on-call shifts has ended",
        told=_list_override_users(override),
        text=lambda _, by: (
            f"{by} changed the rotations of the schedule. The turn that "
            f"{_get_full_name(override.user)} "
            f"covered {when} no longer exists, so the override has ended. The rotations apply "
            "again."
        ),
    )
    _queue_notice(notice, change)


def queue_conflict_notices(
    conflicts: Sequence[OnCallConflict],
    maintainers: Collection[UserReference],
    change: ShiftChangeContext,
    *,
    is_reminder: bool,
) -> None:
    """Queue a message to absent users who are on call, and to the Maintainers of the schedule."""

    def text(person: UserReference, _by: str) -> str:
        told = [each for each in conflicts if person in maintainers or each.user.id == person.id]
        lines = [
            f"{_get_full_name(each.user)}: {change.format_period(each.starts_at, each.ends_at)}"
            for each in told[:_MAX_LISTED_SHIFTS]
        ]
        lines += [f"and {len(told) - len(lines)} more"] if len(told) > len(lines) else []
        is_own = all(each.user.id == person.id for each in told)
        who = "You are" if is_own else "These users are"
        return (
            f"{who} on call and marked as absent:\n\n"
            + "\n".join(f"- {line}" for line in lines)
            + "\n\nAbsent users are still paged. Add an override or swap the shifts, or delete the "
            "absence if it is wrong."
        )

    notice = _ShiftNotice(
        key=f"on-call conflicts in schedule {change.schedule.id} at {change.work.now.isoformat()}"
        f"{', reminder' if is_reminder else ''}",
        subject="Reminder: absent while on call" if is_reminder else "Absent while on call",
        told=tuple(dict.fromkeys([*(each.user for each in conflicts), *maintainers])),
        text=text,
        reason="you are on call, or you maintain the schedule",
    )
    _queue_notice(notice, change)


def _list_override_users(override: OnCallOverride) -> tuple[UserReference, ...]:
    covered = override.instead_of
    return (override.user,) if covered is None else (override.user, covered)


def _build_notice_key(changed: OnCallSwap | OnCallOverride, what: str) -> str:
    kind = "swap" if isinstance(changed, OnCallSwap) else "override"
    # An ID may be reused after a deletion, so the key includes the time of creation.
    return f"on-call {kind} {changed.id} of {changed.created_at.isoformat()} {what}"


def _find_swap_sides(
    person: UserReference, swap: SwappedShifts, change: ShiftChangeContext
) -> tuple[str, UserReference, str]:
    """Return a user's original shift, the other user, and the other user's original shift."""
    first = change.format_period(swap.starts_at, swap.ends_at)
    second = change.format_period(swap.other_starts_at, swap.other_ends_at)
    if person.id == swap.user.id:
        return first, swap.other_user, second
    return second, swap.user, first


def queue_override_notices(override: OnCallOverride, change: ShiftChangeContext) -> None:
    """Queue messages to the user who was put on call, and to the replaced users."""
    when = change.format_period(override.starts_at, override.ends_at)
    covered, shifts = override.instead_of, ""
    instead = "in addition to other users" if override.in_addition else "instead of everybody else"
    if covered is not None:
        instead, shifts = (
            f"for the shifts of {_get_full_name(covered)}",
            _format_replaced_shifts(override, change),
        )
    put = _ShiftNotice(
        key=_build_notice_key(override, "made"),
        subject="You were put on call",
        text=lambda _, by: f"{by} put you on call {when}, {instead}.{shifts}",
        told=(override.user,),
    )
    taken = _ShiftNotice(
        key=_build_notice_key(override, "taken"),
        subject="Your on-call shift was taken over",
        text=lambda _, by: (
            f"{by} put {_get_full_name(override.user)} on call {when}, {instead}. You are no "
            "longer on call "
            f"in this period.{shifts}"
        ),
        told=_find_others_on_call(override, change),
    )
    _queue_notice(put, change)
    _queue_notice(taken, change)


def _format_replaced_shifts(override: OnCallOverride, change: ShiftChangeContext) -> str:
    """List the first shifts that an override takes over, one per line."""
    work, within = change.work, Period(override.starts_at, override.ends_at)
    plans = load_schedule_plans([change.schedule.id], within, session=work.session, now=work.now)
    parts = [
        part
        for turn in find_user_turns(plans[change.schedule.id], within)
        if (turn.duty.source, turn.duty.source_id) == (DutySource.OVERRIDE, override.id)
        for part in turn.parts
    ]
    more = len(parts) - _MAX_LISTED_SHIFTS
    lines = [change.format_period(each.start, each.end) for each in parts[:_MAX_LISTED_SHIFTS]]
    lines += [f"and {more} more"] if more > 0 else []
    return "\n\n" + "\n".join(f"- {line}" for line in lines)


def queue_ended_override_notices(override: OnCallOverride, change: ShiftChangeContext) -> None:
    """Queue messages to the user of an ended override, and to the users who are on call again."""
    when = change.format_period(override.starts_at, override.ends_at)
    ended = _ShiftNotice(
        key=_build_notice_key(override, "ended"),
        subject="Your on-call override was removed",
        text=lambda _, by: (
            f"{by} removed the override that put you on call {when}. The rotations and swaps "
            "of the schedule apply again."
        ),
        told=(override.user,),
    )
    back = _ShiftNotice(
        key=_build_notice_key(override, "back"),
        subject="You are on call again",
        text=lambda _, by: (
            f"{by} removed the override that put {_get_full_name(override.user)} on call {when}. "
            "Your "
            "shifts in this period apply again."
        ),
        told=_find_others_on_call(override, change),
    )
    _queue_notice(ended, change)
    _queue_notice(back, change)


def queue_rotation_removal_notices(
    previous_schedule: OnCallSchedule, change: ShiftChangeContext
) -> None:
    """Queue a message to each user who was removed from a rotation.

    `previous_schedule` is the schedule before the change.
    """
    now = change.work.now
    removed: dict[int, list[str]] = {}
    for name, user_ids in _find_removed_users(previous_schedule, change.schedule):
        for user_id in user_ids:
            removed.setdefault(user_id, []).append(name)

    def text(person: UserReference, by: str) -> str:
        *others, last = removed[person.id]
        which = f"rotations {', '.join(others)} and {last}" if others else f"rotation {last}"
        return (
            f"{by} removed you from the {which}. You have no shifts there from "
            f"{change.format_time(now)} on."
        )

    named = change.find_users(removed)
    notice = _ShiftNotice(
        key=(
            f"on-call schedule {previous_schedule.id} "
            f"of {previous_schedule.created_at.isoformat()} at {now.isoformat()}"
        ),
        subject="You were removed from a rotation",
        told=tuple(named[each] for each in sorted(named)),
        text=text,
    )
    _queue_notice(notice, change)


def _find_removed_users(
    previous_schedule: OnCallSchedule, changed_schedule: OnCallSchedule
) -> Iterator[tuple[str, set[int]]]:
    """Yield the name of each rotation that has lost users, and the IDs of these users."""
    known, kept = (
        {each.id for each in view.rotations} for view in (previous_schedule, changed_schedule)
    )
    ended = [each for each in previous_schedule.rotations if each.id not in kept]
    begun = [each for each in changed_schedule.rotations if each.id not in known]
    names = {each.name for each in ended}
    for rotation in ended:
        # A changed rotation has the same name, unless the rotation was renamed.
        following = [each for each in begun if each.name == rotation.name] or [
            each for each in begun if each.name not in names
        ]
        still = {user for each in following for user in each.users}
        yield rotation.name, {each.id for each in rotation.users if each not in still}


def _find_others_on_call(
    override: OnCallOverride, change: ShiftChangeContext
) -> tuple[UserReference, ...]:
    """Return the other users who would be on call if an override did not exist.

    If an override replaces a single user, only that user is returned. An additional override does
    not change the shifts of other users, so no users are returned.
    """
    if override.in_addition:
        return ()
    if override.instead_of is not None:
        return (override.instead_of,)
    work, schedule_id = change.work, change.schedule.id
    start = max(override.starts_at, work.now)
    within = Period(start, override.ends_at)
    plans = load_schedule_plans([schedule_id], within, session=work.session, now=work.now)
    if schedule_id not in plans or start >= override.ends_at:
        return ()
    without = replace(
        plans[schedule_id],
        overrides=tuple(each for each in plans[schedule_id].overrides if each.id != override.id),
    )
    on_call = {
        each for span in compute_spans(without, start, override.ends_at) for each in span.user_ids
    }
    named = change.find_users(on_call - {override.user.id})
    return tuple(named[each] for each in sorted(named))


def _queue_notice(notice: _ShiftNotice, change: ShiftChangeContext) -> None:
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
    made_by = change.find_users([made_by_id] if made_by_id else []).values()
    by = next(map(_get_full_name, made_by), "Somebody")
    messages = [
        NewEmail(
            key=f"{notice.key}, to {each.id}",
            recipient=addresses[each.id],
            subject=f"{notice.subject}: {change.schedule.name} of {change.holder.path}",
            text=_format_message(notice.text(each, by), notice.reason, each, change),
        )
        for each in told
        if each.id in addresses
    ]
    queue_emails(messages, session=work.session, keyring=work.policy(Keyring), now=work.now)


def _format_message(
    text: str, reason: str, person: UserReference, change: ShiftChangeContext
) -> str:
    settings = change.work.settings
    return (
        f"Hello {_get_full_name(person)},\n\n{text}\n\n"
        f"Schedule: {change.schedule.name} of {change.holder.path}\n"
        f"Times are in the time zone {change.schedule.time_zone}.\n"
        f"{change.schedule.web_url}\n\n"
        f"-- \n{settings.instance_name}, {settings.base_url}\n"
        f"You receive this message because {reason}.\n"
    )


def _get_full_name(person: UserReference) -> str:
    return person.name or person.username
