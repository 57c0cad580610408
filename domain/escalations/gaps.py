"""What keeps the policies of a project from reaching everybody, and who is told when that grows.

Somebody is removed, blocked or loses a role, a rotation or a layer goes: each of these happens in
many places, so the result is looked at, every few minutes. Only what is new is told, in one message
to each person about all of their projects.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.accounts.users import IN_USE
from domain.clock import date_and_time
from domain.database.rows import insert_into
from domain.escalations.policies import names_of, plan_of
from domain.escalations.steps import Target, TargetKind
from domain.mail.outbox import NewMessage, Sign, queue_messages
from domain.notifications.gathering import Reach, reachable
from domain.on_call.final_schedule import Span, spans
from domain.on_call.plans import Period, Plan
from domain.on_call.reading import read_plans
from domain.projects.member_lists import able_people
from domain.projects.views import Namespace
from models import EscalationPolicy, KnownGaps, OnCallSchedule, Project, User

#: How far schedules are looked at. Whole weeks: what recurs weekly is always as large.
_AHEAD = timedelta(weeks=2)
_HOUR = timedelta(hours=1)
#: A schedule that has hours without anybody anyway is told of when there are so many more.
_GROWTH_HOURS = 12
_MOST_MAINTAINERS = 50
_MOST_PROJECTS_NAMED = 50


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Something that keeps alerts from reaching somebody."""

    #: The same as long as the gap is.
    key: str
    #: In hours for a schedule, else 1.
    size: int
    #: A sentence.
    text: str
    #: Who is not reached any more, if it is somebody with an account in use.
    user_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class _Watched:
    """A project, and what was found."""

    project: Namespace
    gaps: Sequence[Gap]


def queue_gap_notices(
    sign: Sign, *, session: Session, now: datetime, between: Callable[[], None]
) -> int:
    """Store messages about new gaps of all projects with policies, and return their number.

    `between` commits. The first look at a project tells nobody: its pages say what is missing.
    """
    found = []
    for project in _projects(session=session):
        gaps = tuple(_gaps_of(project, session=session, now=now))
        found.append(_Watched(project=project, gaps=gaps))
        between()
    stored = session.scalars(select(KnownGaps))
    known: dict[int | None, Mapping[str, int]] = {row.project_id: row.gaps for row in stored}
    new = [
        _Watched(project=each.project, gaps=some)
        for each in found
        if each.project.id in known
        and (some := [gap for gap in each.gaps if _is_new(gap, known[each.project.id])])
    ]
    count = queue_messages(_messages(new, sign, session=session, now=now), session=session, now=now)
    for each in found:
        _remember(each, known.get(each.project.id), session=session)
    between()
    return count


def _projects(*, session: Session) -> Sequence[Namespace]:
    rows = session.execute(
        select(Project.id, Project.path)
        .where(
            Project.id.in_(select(EscalationPolicy.project_id)),
            Project.deleted_at.is_(None),
            Project.archived_at.is_(None),
        )
        .order_by(Project.id)
    )
    return [Namespace(project_id=row.id, path=row.path) for row in rows]


def _gaps_of(project: Namespace, *, session: Session, now: datetime) -> Iterator[Gap]:
    policies = session.scalars(
        select(EscalationPolicy)
        .where(EscalationPolicy.project_id == project.id)
        .order_by(EscalationPolicy.id)
    ).all()
    targets: dict[Target, str] = {}
    for policy in policies:
        for step in plan_of(policy).steps:
            for target in step.targets:
                targets.setdefault(target, policy.name)
    named = {each.id: name for each, name in targets.items() if each.kind is TargetKind.USER}
    schedules = [each.id for each in targets if each.kind is TargetKind.SCHEDULE]
    yield from _gaps_of_people(project, named, session=session, now=now)
    yield from _gaps_of_schedules(project, schedules, session=session, now=now)


def _gaps_of_people(
    project: Namespace, policies: Mapping[int, str], *, session: Session, now: datetime
) -> Iterator[Gap]:
    """Yield the people whom policies name and no page reaches; with the policy by user."""
    reaches = _reaches(project, policies, session=session, now=now)
    names = _usernames(reaches, session=session)
    for user_id, reach in reaches.items():
        who = f"@{names[user_id]}" if user_id in names else "A user who was deleted"
        why = reach.value if user_id in names else "has no account any more"
        yield Gap(
            key=f"user {user_id}",
            size=1,
            text=f"{who} {why}, but the policy {policies[user_id]} pages them.",
            user_id=user_id if reach is Reach.NO_ACCESS else None,
        )


def _reaches(
    project: Namespace, user_ids: Collection[int], *, session: Session, now: datetime
) -> Mapping[int, Reach]:
    """Return why pages do not reach people, without those whom they reach."""
    reaches = reachable(
        user_ids, project.id or 0, is_critical=True, sends_mail=True, session=session, now=now
    )
    reached = {Reach.REACHABLE, Reach.QUIET}
    return {user_id: each for user_id, each in reaches.items() if each not in reached}


def _usernames(user_ids: Collection[int], *, session: Session) -> Mapping[int, str]:
    targets = [Target(TargetKind.USER, each) for each in user_ids]
    return {each.id: name for each, name in names_of(targets, session=session).items()}


def _gaps_of_schedules(
    project: Namespace, schedule_ids: Collection[int], *, session: Session, now: datetime
) -> Iterator[Gap]:
    if not schedule_ids:
        return
    within = Period(now, now + _AHEAD)
    plans = read_plans(schedule_ids, within, session=session, today=now.date())
    of_ids = OnCallSchedule.id.in_(plans)
    names = dict(
        session.execute(select(OnCallSchedule.id, OnCallSchedule.name).where(of_ids)).all()
    )
    absent = {each: _absent(plan, now) for each, plan in plans.items()}
    everybody = {user_id for some in absent.values() for user_id in some}
    reaches = _reaches(project, everybody, session=session, now=now)
    usernames = _usernames(everybody, session=session)
    for schedule_id, plan in plans.items():
        for user_id in absent[schedule_id]:
            who = f"@{usernames[user_id]}" if user_id in usernames else "A user who was deleted"
            yield Gap(
                key=f"schedule {schedule_id}, user {user_id}",
                size=1,
                text=f"{who} cannot be on call in {names[schedule_id]} any more; "
                "the shifts are skipped.",
                user_id=user_id if reaches.get(user_id) is Reach.NO_ACCESS else None,
            )
        yield from _uncovered(plan, names[schedule_id], within)


def _absent(plan: Plan, now: datetime) -> Sequence[int]:
    """Return who is in a rotation in force and cannot be on call."""
    present = [each for each in plan.rotations if each.valid_until is None]
    users = dict.fromkeys(user_id for each in present for user_id in each.user_ids)
    return [each for each in users if each in plan.ends and plan.ends[each] <= now]


def _uncovered(plan: Plan, name: str, within: Period) -> Iterator[Gap]:
    empty: list[Span] = [span for span in spans(plan, within.start, within.end) if not span.duties]
    if empty:
        hours = -(-sum((span.end - span.start for span in empty), timedelta()) // _HOUR)
        first = f"{date_and_time(empty[0].start)} until {date_and_time(empty[0].end)}"
        more = f", {hours} hours in the next two weeks" if len(empty) > 1 else ""
        yield Gap(
            key=f"schedule {plan.schedule_id}, uncovered",
            size=hours,
            text=f"Nobody is on call in {name} from {first}{more}.",
        )


def _is_new(gap: Gap, known: Mapping[str, int]) -> bool:
    return gap.key not in known or gap.size >= known[gap.key] + _GROWTH_HOURS


def _remember(found: _Watched, known: Mapping[str, int] | None, *, session: Session) -> None:
    """Store what is known now; small growth does not count, so that it adds up."""
    before = known or {}
    gaps = {
        each.key: each.size if _is_new(each, before) else min(each.size, before[each.key])
        for each in found.gaps
    }
    if gaps == known:
        return
    insert = insert_into(KnownGaps, session=session)
    values = {"project_id": found.project.id, "gaps": gaps}
    session.execute(
        insert.values(values).on_conflict_do_update(
            index_elements=["project_id"], set_={"gaps": insert.excluded.gaps}
        )
    )


def _messages(
    new: Sequence[_Watched], sign: Sign, *, session: Session, now: datetime
) -> Sequence[NewMessage]:
    to_maintainers: dict[int, list[_Watched]] = defaultdict(list)
    to_people: dict[int, list[Namespace]] = defaultdict(list)
    for each in new:
        for user_id in _maintainers(each.project, session=session, now=now):
            to_maintainers[user_id].append(each)
        for concerned in dict.fromkeys(gap.user_id for gap in each.gaps if gap.user_id):
            to_people[concerned].append(each.project)
    users = _addresses({*to_maintainers, *to_people}, session=session)
    messages = [
        NewMessage(
            key=f"gaps at {now.isoformat()}, to {user_id}",
            recipient=users[user_id].email,
            subject=_subject("Alerts may reach nobody", [each.project for each in some]),
            text=_to_maintainer(users[user_id], some, sign),
        )
        for user_id, some in to_maintainers.items()
        if user_id in users
    ]
    return messages + [
        NewMessage(
            key=f"not paged any more at {now.isoformat()}, to {user_id}",
            recipient=users[user_id].email,
            subject=_subject("You are not paged any more", projects),
            text=_to_person(users[user_id], projects, sign),
        )
        for user_id, projects in to_people.items()
        if user_id in users
    ]


def _maintainers(project: Namespace, *, session: Session, now: datetime) -> Sequence[int]:
    able = able_people(
        true(), Ability.ADMIN_INTEGRATIONS, project, session=session, today=now.date()
    )
    return sorted(able)[:_MOST_MAINTAINERS]


def _addresses(user_ids: Collection[int], *, session: Session) -> Mapping[int, User]:
    rows = session.scalars(select(User).where(User.id.in_(user_ids), IN_USE))
    return {row.id: row for row in rows}


def _subject(what: str, projects: Sequence[Namespace]) -> str:
    more = len(projects) - 1
    others = f" and {more} other project{'s' if more > 1 else ''}" if more else ""
    return f"{what}: {projects[0].path}{others}"


def _to_maintainer(user: User, found: Sequence[_Watched], sign: Sign) -> str:
    parts = []
    for each in found[:_MOST_PROJECTS_NAMED]:
        gaps = "\n".join(f"- {gap.text}" for gap in each.gaps)
        parts.append(f"{each.project.path}:\n{gaps}\n{sign.base_url}/{each.project.path}/-/on_call")
    if len(found) > _MOST_PROJECTS_NAMED:
        parts.append(f"and {len(found) - _MOST_PROJECTS_NAMED} more projects")
    return (
        f"Hello {user.name or user.username},\n\n"
        "something changed, and these escalation policies and schedules do not reach everybody\n"
        "any more:\n\n" + "\n\n".join(parts) + "\n\n"
        f"-- \n{sign.instance_name}, {sign.base_url}\n"
        "You receive this message because you are a maintainer. Each gap is told once.\n"
    )


def _to_person(user: User, projects: Sequence[Namespace], sign: Sign) -> str:
    paths = "\n".join(f"- {each.path}" for each in projects[:_MOST_PROJECTS_NAMED])
    return (
        f"Hello {user.name or user.username},\n\n"
        "you have no access to the alerts of these projects any more, so you are neither on call\n"
        f"nor paged for them:\n\n{paths}\n\n"
        f"-- \n{sign.instance_name}, {sign.base_url}\n"
        "You receive this message because their policies or schedules name you.\n"
    )
