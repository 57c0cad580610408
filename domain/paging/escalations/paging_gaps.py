"""Detects paging gaps in policies and schedules, and notifies the maintainers.

A gap exists if a user in a policy cannot be paged, or if nobody is on call. Many actions can cause
gaps, such as removing a user or deleting a rotation. This module therefore checks all policies and
schedules every few minutes. It reports only new gaps, in one message per user for all projects.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.clock import format_message_time
from domain.core.database.bulk_statements import build_session_insert
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from domain.paging.escalations.policies import build_plan, find_target_names
from domain.paging.escalations.policy_steps import Target, TargetKind
from domain.paging.notifications.batching import UserReachability, find_reachability
from domain.paging.on_call.final_schedule import OnCallSpan, compute_spans
from domain.paging.on_call.schedule_plans import Period, SchedulePlan
from domain.paging.on_call.schedule_queries import load_schedule_plans
from domain.projects.member_lists import find_users_with_ability
from domain.projects.row_ownership import build_owner_match_condition, build_web_url
from domain.projects.views import Namespace
from models import EscalationPolicy, Group, KnownGaps, OnCallSchedule, Project, User

#: Length of the period for which schedules are checked. It covers whole weeks, so the total size
#: of gaps that recur every week does not vary between checks.
_CHECKED_PERIOD = timedelta(weeks=2)
_HOUR = timedelta(hours=1)
#: Increase in uncovered hours after which a schedule with known gaps is reported again.
_RENOTIFY_GROWTH_HOURS = 12
_MAX_MAINTAINERS = 50
_MAX_LISTED_PROJECTS = 50


@dataclass(frozen=True, kw_only=True)
class PagingGap:
    """A reason why alerts do not reach a recipient."""

    #: Key that stays the same while the gap exists.
    key: str
    #: Number of uncovered hours in a schedule; 1 for other gaps.
    size: int
    #: Description of the gap as a sentence.
    text: str
    #: ID of a user who can no longer be paged because the user has lost access. None for other
    #: gaps.
    user_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class _OwnerGaps:
    """A project or group, and its gaps."""

    place: Namespace
    gaps: Sequence[PagingGap]


def queue_gap_notices(
    message_settings: MessageSettings,
    *,
    session: Session,
    now: datetime,
    commit_batch: Callable[[], None],
) -> int:
    """Queue emails about new gaps in all projects and groups.

    Return the number of emails. `commit_batch` commits the transaction. The first check of a
    project or group only stores the gaps, since its web pages show the gaps.
    """
    found = []
    for place in _list_policy_owners(session=session):
        gaps = tuple(_find_paging_gaps(place, session=session, now=now))
        found.append(_OwnerGaps(place=place, gaps=gaps))
        commit_batch()
    stored = session.scalars(select(KnownGaps))
    known = {(row.project_id, row.group_id): row.gaps for row in stored}
    new = [
        _OwnerGaps(place=each.place, gaps=some)
        for each in found
        if _get_owner_key(each.place) in known
        and (
            some := [
                gap
                for gap in each.gaps
                if _should_notify_of_gap(gap, known[_get_owner_key(each.place)])
            ]
        )
    ]
    count = queue_emails(
        _build_gap_messages(new, message_settings, session=session, now=now),
        session=session,
        keyring=message_settings.keyring,
        now=now,
    )
    for each in found:
        _store_known_gaps(each, known.get(_get_owner_key(each.place)), session=session)
    commit_batch()
    return count


def _get_owner_key(namespace: Namespace) -> tuple[int | None, int | None]:
    return namespace.project_id, namespace.group_id


def _list_policy_owners(*, session: Session) -> Sequence[Namespace]:
    projects = session.execute(
        select(Project.id, Project.path)
        .where(
            Project.id.in_(select(EscalationPolicy.project_id)),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
        .order_by(Project.id)
    )
    groups = session.execute(
        select(Group.id, Group.path)
        .where(Group.id.in_(select(EscalationPolicy.group_id)), Group.deleted_at.is_(None))
        .order_by(Group.id)
    )
    return [
        *(Namespace(project_id=row.id, path=row.path) for row in projects),
        *(Namespace(group_id=row.id, path=row.path) for row in groups),
    ]


def _find_paging_gaps(
    namespace: Namespace, *, session: Session, now: datetime
) -> Iterator[PagingGap]:
    policies = session.scalars(
        select(EscalationPolicy)
        .where(build_owner_match_condition(EscalationPolicy, namespace))
        .order_by(EscalationPolicy.id)
    ).all()
    targets: dict[Target, str] = {}
    for policy in policies:
        for step in build_plan(policy).steps:
            for target in step.targets:
                targets.setdefault(target, policy.name)
    named = {each.id: name for each, name in targets.items() if each.kind is TargetKind.USER}
    schedules = [each.id for each in targets if each.kind is TargetKind.SCHEDULE]
    yield from _find_user_gaps(namespace, named, session=session, now=now)
    yield from _find_schedule_gaps(namespace, schedules, session=session, now=now)


def _find_user_gaps(
    namespace: Namespace, policies: Mapping[int, str], *, session: Session, now: datetime
) -> Iterator[PagingGap]:
    """Yield a gap for each user in the policies who cannot be paged.

    `policies` maps user IDs to policy names.
    """
    reaches = _find_unreachable_users(namespace, policies, session=session, now=now)
    names = _find_usernames(reaches, session=session)
    for user_id, reach in reaches.items():
        who = f"@{names[user_id]}" if user_id in names else "A deleted user"
        why = reach.value if user_id in names else "no longer has an account"
        yield PagingGap(
            key=f"user {user_id}",
            size=1,
            text=f"{who} {why}, but the policy {policies[user_id]} pages them.",
            user_id=user_id if reach is UserReachability.NO_ACCESS else None,
        )


def _find_unreachable_users(
    namespace: Namespace, user_ids: Collection[int], *, session: Session, now: datetime
) -> Mapping[int, UserReachability]:
    """Return the reasons why pages do not reach users, by user ID.

    Reachable users are left out.
    """
    reaches = find_reachability(
        user_ids, namespace, is_critical=True, sends_mail=True, session=session, now=now
    )
    reached = {UserReachability.REACHABLE, UserReachability.QUIET}
    return {user_id: each for user_id, each in reaches.items() if each not in reached}


def _find_usernames(user_ids: Collection[int], *, session: Session) -> Mapping[int, str]:
    targets = [Target(TargetKind.USER, each) for each in user_ids]
    return {each.id: name for each, name in find_target_names(targets, session=session).items()}


def _find_schedule_gaps(
    namespace: Namespace, schedule_ids: Collection[int], *, session: Session, now: datetime
) -> Iterator[PagingGap]:
    if not schedule_ids:
        return
    within = Period(now, now + _CHECKED_PERIOD)
    plans = load_schedule_plans(schedule_ids, within, session=session, now=now)
    of_ids = OnCallSchedule.id.in_(plans)
    names = dict(
        session.execute(select(OnCallSchedule.id, OnCallSchedule.name).where(of_ids)).all()
    )
    absent = {each: _find_absent_users(plan, now) for each, plan in plans.items()}
    everybody = {user_id for some in absent.values() for user_id in some}
    reaches = _find_unreachable_users(namespace, everybody, session=session, now=now)
    usernames = _find_usernames(everybody, session=session)
    for schedule_id, plan in plans.items():
        for user_id in absent[schedule_id]:
            who = f"@{usernames[user_id]}" if user_id in usernames else "A deleted user"
            yield PagingGap(
                key=f"schedule {schedule_id}, user {user_id}",
                size=1,
                text=f"{who} can no longer be on call in {names[schedule_id]}. "
                "Their shifts are skipped.",
                user_id=user_id if reaches.get(user_id) is UserReachability.NO_ACCESS else None,
            )
        yield from _find_uncovered_time(plan, names[schedule_id], within)


def _find_absent_users(plan: SchedulePlan, now: datetime) -> Sequence[int]:
    """Return the IDs of users in current rotations who cannot be on call now."""
    present = [each for each in plan.rotations if each.valid_until is None]
    users = dict.fromkeys(user_id for each in present for user_id in each.user_ids)
    return [each for each in users if not plan.can_be_on_call(each, now)]


def _find_uncovered_time(plan: SchedulePlan, name: str, period: Period) -> Iterator[PagingGap]:
    empty: list[OnCallSpan] = [
        span for span in compute_spans(plan, period.start, period.end) if not span.duties
    ]
    if empty:
        hours = -(-sum((span.end - span.start for span in empty), timedelta()) // _HOUR)
        first = f"{format_message_time(empty[0].start)} until {format_message_time(empty[0].end)}"
        more = f" ({hours} h in total in the next two weeks)" if len(empty) > 1 else ""
        yield PagingGap(
            key=f"schedule {plan.schedule_id}, uncovered",
            size=hours,
            text=f"Nobody is on call in {name} from {first}{more}.",
        )


def _should_notify_of_gap(gap: PagingGap, known: Mapping[str, int]) -> bool:
    return gap.key not in known or gap.size >= known[gap.key] + _RENOTIFY_GROWTH_HOURS


def _store_known_gaps(
    owner_gaps: _OwnerGaps, known: Mapping[str, int] | None, *, session: Session
) -> None:
    """Store the gaps of a project or group, for comparison in the next check.

    Small increases are not stored, so that they add up until the gap is reported again.
    """
    before = known or {}
    gaps = {
        each.key: each.size
        if _should_notify_of_gap(each, before)
        else min(each.size, before[each.key])
        for each in owner_gaps.gaps
    }
    if gaps == known:
        return
    insert = build_session_insert(KnownGaps, session=session)
    column = "group_id" if owner_gaps.place.is_group else "project_id"
    session.execute(
        insert.values({column: owner_gaps.place.id, "gaps": gaps}).on_conflict_do_update(
            index_elements=[column], set_={"gaps": insert.excluded.gaps}
        )
    )


def _build_gap_messages(
    gaps_by_owner: Sequence[_OwnerGaps],
    message_settings: MessageSettings,
    *,
    session: Session,
    now: datetime,
) -> Sequence[NewEmail]:
    to_maintainers: dict[int, list[_OwnerGaps]] = defaultdict(list)
    to_people: dict[int, list[Namespace]] = defaultdict(list)
    for each in gaps_by_owner:
        for user_id in _find_maintainers(each.place, session=session, now=now):
            to_maintainers[user_id].append(each)
        for concerned in dict.fromkeys(gap.user_id for gap in each.gaps if gap.user_id):
            to_people[concerned].append(each.place)
    users = _find_active_users({*to_maintainers, *to_people}, session=session)
    messages = [
        NewEmail(
            key=f"gaps at {now.isoformat()}, to {user_id}",
            recipient=users[user_id].email,
            subject=_format_subject("Alerts may reach nobody", [each.place for each in some]),
            text=_format_maintainer_text(users[user_id], some, message_settings),
        )
        for user_id, some in to_maintainers.items()
        if user_id in users
    ]
    return messages + [
        NewEmail(
            key=f"not paged any more at {now.isoformat()}, to {user_id}",
            recipient=users[user_id].email,
            subject=_format_subject("You are no longer paged", projects),
            text=_format_user_text(users[user_id], projects, message_settings),
        )
        for user_id, projects in to_people.items()
        if user_id in users
    ]


def _find_maintainers(namespace: Namespace, *, session: Session, now: datetime) -> Sequence[int]:
    able = find_users_with_ability(
        true(), Ability.ADMIN_INTEGRATIONS, namespace, session=session, today=now.date()
    )
    return sorted(able)[:_MAX_MAINTAINERS]


def _find_active_users(user_ids: Collection[int], *, session: Session) -> Mapping[int, User]:
    rows = session.scalars(select(User).where(User.id.in_(user_ids), IS_ACTIVE_HUMAN))
    return {row.id: row for row in rows}


def _format_subject(what: str, projects: Sequence[Namespace]) -> str:
    more = len(projects) - 1
    return f"{what}: {projects[0].path}{f' and {more} more' if more else ''}"


def _format_maintainer_text(
    user: User, gaps_by_owner: Sequence[_OwnerGaps], message_settings: MessageSettings
) -> str:
    parts = []
    for each in gaps_by_owner[:_MAX_LISTED_PROJECTS]:
        gaps = "\n".join(f"- {gap.text}" for gap in each.gaps)
        url = f"{build_web_url(each.place, message_settings.base_url)}/on_call"
        parts.append(f"{each.place.path}:\n{gaps}\n{url}")
    if len(gaps_by_owner) > _MAX_LISTED_PROJECTS:
        parts.append(f"and {len(gaps_by_owner) - _MAX_LISTED_PROJECTS} more")
    return (
        f"Hello {user.name or user.username},\n\n"
        "These escalation policies and schedules no longer reach everyone:\n\n"
        + "\n\n".join(parts)
        + "\n\n"
        f"-- \n{message_settings.instance_name}, {message_settings.base_url}\n"
        "You receive this message because you are a maintainer. Each gap is reported once.\n"
    )


def _format_user_text(
    user: User, projects: Sequence[Namespace], message_settings: MessageSettings
) -> str:
    paths = "\n".join(f"- {each.path}" for each in projects[:_MAX_LISTED_PROJECTS])
    return (
        f"Hello {user.name or user.username},\n\n"
        "You no longer have access to the alerts of these projects, so you are neither on call\n"
        f"nor paged for them:\n\n{paths}\n\n"
        f"-- \n{message_settings.instance_name}, {message_settings.base_url}\n"
        "You receive this message because policies or schedules of these projects include you.\n"
    )
