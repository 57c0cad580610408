"""Looks up the recipients of steps, once for all escalations that are due together."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.orm import Session

from domain.paging.escalations.policies import find_target_names
from domain.paging.escalations.policy_steps import EscalationPlan, Step, Target, TargetKind
from domain.paging.escalations.round_robin import RoundRobinTurns
from domain.paging.notifications.batching import UserReachability, find_reachability
from domain.paging.on_call.shifts import find_users_on_call
from domain.projects.views import Namespace

#: Reachability of users by ID, for each pair of a namespace and a flag for critical alerts.
_ReachabilityByNamespace = Mapping[tuple[Namespace, bool], Mapping[int, UserReachability]]


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user, with the name that is shown in the activity of an alert."""

    id: int
    name: str


@dataclass(kw_only=True)
class StepRecipients:
    """The recipients of a step without duplicates, and reasons why other targets are not paged."""

    user_ids: list[int] = field(default_factory=list)
    channel_ids: list[int] = field(default_factory=list)
    #: Reasons as sentences without a full stop.
    gaps: list[str] = field(default_factory=list)
    #: Users who cannot be paged now, with the reasons.
    unreached: dict[NamedUser, UserReachability] = field(default_factory=dict)

    @property
    def reaches_anyone(self) -> bool:
        """True if at least one page is sent immediately."""
        waiting = [each for each in self.unreached.values() if each is UserReachability.QUIET]
        return len(self.user_ids) > len(waiting) or bool(self.channel_ids)

    @property
    def reasons(self) -> list[str]:
        """Reasons why targets of the step are not paged, as phrases."""
        unreached = self.unreached.items()
        return [*self.gaps, *(f"@{person.name} {reach.value}" for person, reach in unreached)]


@dataclass(frozen=True, kw_only=True)
class RecipientLookup:
    """The users and channels that can be paged at a given time."""

    reachability: _ReachabilityByNamespace
    on_call: Mapping[int, tuple[int, ...]]
    names: Mapping[Target, str]
    turns: RoundRobinTurns = field(default_factory=RoundRobinTurns)

    def find_step_recipients(
        self, namespace: Namespace, step: Step, *, is_critical: bool
    ) -> StepRecipients:
        """Return the recipients of a step.

        A user who is named twice is paged only once.
        """
        found, people = StepRecipients(), dict[int, None]()
        for target in step.targets:
            if target.kind is TargetKind.CHANNEL:
                self._add_channel(target, found)
            elif target.kind is TargetKind.USER:
                people[target.id] = None
            else:
                people.update(dict.fromkeys(self._find_users_on_call(target, found)))
        reaches = self.reachability.get((namespace, is_critical), {})
        for user_id in people:
            self._add_user(user_id, reaches.get(user_id, UserReachability.INACTIVE), found)
        return found

    def find_gaps(self, namespace: Namespace, plan: EscalationPlan) -> Mapping[str, int | None]:
        """Return the reasons why a plan does not reach recipients now.

        Each reason is mapped to the ID of the unreachable user, or to None for other reasons. Quiet
        hours are intended, so they do not count as gaps.
        """
        found: dict[str, int | None] = {}
        for step in plan.steps:
            reached = self.find_step_recipients(namespace, step, is_critical=True)
            found.update(dict.fromkeys(reached.gaps))
            found.update(
                (f"@{person.name} {reach.value}", person.id)
                for person, reach in reached.unreached.items()
                if reach is not UserReachability.QUIET
            )
        return found

    def _add_channel(self, target: Target, recipients: StepRecipients) -> None:
        if target not in self.names:
            recipients.gaps.append("a channel was deleted")
        elif target.id not in recipients.channel_ids:
            recipients.channel_ids.append(target.id)

    def _find_users_on_call(self, target: Target, recipients: StepRecipients) -> tuple[int, ...]:
        on_call = self.on_call.get(target.id, ())
        if not on_call:
            name = self.names.get(target)
            recipients.gaps.append(
                f"nobody is on call in {name}" if name else "a schedule was deleted"
            )
        return on_call

    def _add_user(self, user_id: int, reach: UserReachability, recipients: StepRecipients) -> None:
        name = self.names.get(Target(TargetKind.USER, user_id))
        if name is None:
            recipients.gaps.append("the account of a user was deleted")
            return
        if reach in {UserReachability.REACHABLE, UserReachability.QUIET}:
            recipients.user_ids.append(user_id)
        if reach is not UserReachability.REACHABLE:
            recipients.unreached[NamedUser(user_id, name)] = reach


def load_recipients(
    plans: Mapping[tuple[Namespace, bool], Iterable[EscalationPlan]],
    *,
    sends_mail: bool,
    session: Session,
    now: datetime,
) -> RecipientLookup:
    """Return the recipients that plans can page now.

    Each key of `plans` consists of a project or group, and a flag for critical alerts. A group
    represents all projects below it.
    """
    targets = {
        key: {target for plan in some for step in plan.steps for target in step.targets}
        for key, some in plans.items()
    }
    everything = {target for some in targets.values() for target in some}
    schedules = {each.id for each in everything if each.kind is TargetKind.SCHEDULE}
    on_call = find_users_on_call(schedules, moment=now, session=session) if schedules else {}
    users = {
        key: {number for each in some for number in _list_target_users(each, on_call)}
        for key, some in targets.items()
    }
    people = {Target(TargetKind.USER, each) for some in users.values() for each in some}
    return RecipientLookup(
        reachability=_load_reachability(users, sends_mail=sends_mail, session=session, now=now),
        on_call=on_call,
        names=find_target_names(everything | people, session=session),
    )


def _list_target_users(target: Target, on_call: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    if target.kind is TargetKind.SCHEDULE:
        return on_call.get(target.id, ())
    return (target.id,) if target.kind is TargetKind.USER else ()


def _load_reachability(
    users: Mapping[tuple[Namespace, bool], Collection[int]],
    *,
    sends_mail: bool,
    session: Session,
    now: datetime,
) -> _ReachabilityByNamespace:
    return {
        (place, is_critical): find_reachability(
            user_ids,
            place,
            is_critical=is_critical,
            sends_mail=sends_mail,
            session=session,
            now=now,
        )
        for (place, is_critical), user_ids in users.items()
    }
