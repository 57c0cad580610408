"""Responders that rules assign to incidents and page: users, and users on call in schedules.

The timeline shows responders who cannot be reached, and gaps in schedules. Escalations of the
alerts continue independently. If no responder is paged, maintainers are notified.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.audit.events import Actor
from domain.delivery.mail.assignment_notices import NewAssignment, note_assignments
from domain.incidents.changes import MOST_ASSIGNEES
from domain.incidents.paging import new_pages
from domain.incidents.rule_engine import ActiveRule
from domain.incidents.timeline import NewEntry, add_entries
from domain.incidents.types import HIGHEST_URGENCY, OPEN_STATUSES, EntryKind
from domain.paging.escalations.maintainer_notices import UNCALLED, tell_of_unpaged
from domain.paging.escalations.policies import names_of
from domain.paging.escalations.recipients import Reached, Recipients, read_recipients
from domain.paging.escalations.steps import Plan, Step, Target, TargetKind
from domain.paging.escalations.types import EscalationTarget
from domain.paging.notifications.batching import Reach
from domain.paging.notifications.paging import NewPage, queue_pages
from domain.paging.notifications.policy import PagingPolicy
from domain.projects.member_lists import able_people
from domain.projects.views import Namespace
from models import Incident, IncidentAssignee, IncidentRuleResponder, User


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An incident that a rule has just opened."""

    incident: Incident
    rule: ActiveRule
    project: Namespace

    @property
    def id(self) -> int:
        """ID of the incident."""
        return self.incident.id

    @property
    def iid(self) -> int:
        """Number of the incident."""
        return self.incident.iid

    @property
    def title(self) -> str:
        """Title of the incident."""
        return self.incident.title

    @property
    def key(self) -> tuple[Namespace, bool]:
        """Namespace of the incident's pages, and whether the incident is critical."""
        return self.project, self.incident.urgency == HIGHEST_URGENCY


def targets_of(
    rule_ids: Collection[int | None], *, session: Session
) -> Mapping[int, tuple[Target, ...]]:
    """Return the ordered responders of rules, by the ID of the rule.

    Rules without responders are omitted.
    """
    found: dict[int, tuple[Target, ...]] = defaultdict(tuple)
    for row in session.scalars(
        select(IncidentRuleResponder)
        .where(IncidentRuleResponder.rule_id.in_([each for each in rule_ids if each]))
        .order_by(IncidentRuleResponder.id)
    ):
        user, schedule = row.user_id, row.schedule_id
        target = Target(TargetKind.USER if user else TargetKind.SCHEDULE, user or schedule or 0)
        found[row.rule_id] += (target,)
    return found


def responders_of(
    rule_ids: Collection[int], *, session: Session
) -> Mapping[int, list[EscalationTarget]]:
    """Return the responders of rules with their names."""
    targets = targets_of(rule_ids, session=session)
    names = names_of({each for some in targets.values() for each in some}, session=session)
    return {
        rule_id: [
            EscalationTarget(type=each.kind.value, id=each.id, name=names.get(each))
            for each in some
        ]
        for rule_id, some in targets.items()
    }


def store_responders(rule_id: int, targets: Sequence[Target], *, session: Session) -> None:
    """Replace the responders of a rule."""
    is_of_rule = IncidentRuleResponder.rule_id == rule_id
    session.execute(delete(IncidentRuleResponder).where(is_of_rule))
    for each in targets:
        column = "user_id" if each.kind is TargetKind.USER else "schedule_id"
        session.add(IncidentRuleResponder(rule_id=rule_id, **{column: each.id}))
        session.flush()  # The order of the IDs is the order of the responders.


def call_responders(
    opened: Sequence[Opened], policy: PagingPolicy, *, session: Session, now: datetime
) -> None:
    """Assign and page the responders of rules for the incidents that these rules opened.

    Incidents that have been resolved in the meantime are skipped. If no page is sent for an
    incident, maintainers are notified. To prevent deadlocks between workers, all pages are queued
    together, in a fixed order of their recipients.
    """
    targets = targets_of({each.rule.id for each in opened}, session=session)
    calls = [
        (each, Step(timedelta(), targets[each.rule.id]))
        for each in opened
        if each.rule.id in targets and each.incident.status in OPEN_STATUSES
    ]
    if not calls:
        return
    wanted: dict[tuple[Namespace, bool], set[Plan]] = defaultdict(set)
    for each, step in calls:
        wanted[each.key].add(Plan((step,)))
    recipients = read_recipients(wanted, sends_mail=policy.sends_mail, session=session, now=now)
    able = _able(recipients, {place for place, _ in wanted}, session=session, now=now)
    pages: list[NewPage] = []
    uncalled: list[Opened] = []
    for each, step in calls:
        place, is_critical = each.key
        reached = recipients.of(place, step, is_critical=is_critical)
        _assign(each, reached, able[place], session=session, now=now)
        pages += _page(each, reached, recipients.names, session=session, now=now)
        if not reached.user_ids:
            uncalled.append(each)
    session.flush()  # The pages read the severities of the incidents.
    queue_pages(pages, session=session, now=now)
    tell_of_unpaged(uncalled, UNCALLED, policy, session=session, now=now)


def _able(
    recipients: Recipients, places: Collection[Namespace], *, session: Session, now: datetime
) -> Mapping[Namespace, Mapping[int, str]]:
    """Return the users who can be assigned to incidents, as for manual assignments."""
    people = [each.id for each in recipients.names if each.kind is TargetKind.USER]
    wanted, today = User.id.in_(people), now.date()
    return {
        place: able_people(wanted, Ability.ADMIN_ALERTS, place, session=session, today=today)
        for place in places
    }


def _assign(
    opened: Opened, reached: Reached, able: Mapping[int, str], *, session: Session, now: datetime
) -> None:
    called = [*reached.user_ids, *(person.id for person in reached.unreached)]
    ids = [each for each in dict.fromkeys(called) if each in able][:MOST_ASSIGNEES]
    if not ids:
        return
    incident_id = opened.incident.id
    rows = [{"incident_id": incident_id, "user_id": each} for each in ids]
    session.execute(insert(IncidentAssignee), rows)
    because = {"rule": opened.rule.name}
    entries = [
        NewEntry(incident_id=incident_id, kind=EntryKind.ASSIGNED, text=able[each], details=because)
        for each in ids
    ]
    add_entries(entries, by=None, session=session, now=now)
    assignments = [NewAssignment(user_id=each, incident_id=incident_id) for each in ids]
    note_assignments(assignments, by_id=None, by_name="", session=session, now=now)


def _page(
    opened: Opened,
    reached: Reached,
    names: Mapping[Target, str],
    *,
    session: Session,
    now: datetime,
) -> Sequence[NewPage]:
    """Return the pages for an incident.

    The timeline records who is paged, who is not, and why.
    """
    incident, rule = opened.incident, opened.rule.name
    people = {each: names[Target(TargetKind.USER, each)] for each in reached.user_ids}
    pages = new_pages(incident, people, by=None, rule=rule, session=session, now=now)
    for person, reach in reached.unreached.items():
        if reach is not Reach.QUIET:
            text = f"{reach.value}: not paged"
            entry = NewEntry(incident_id=incident.id, kind=EntryKind.PAGE, text=text)
            who = Actor(id=person.id, name=person.name)
            add_entries([entry], by=who, session=session, now=now)
    add_entries(_gaps(opened, reached), by=None, session=session, now=now)
    return pages


def _gaps(opened: Opened, reached: Reached) -> Iterator[NewEntry]:
    if reached.gaps or not reached.user_ids:
        reasons = list(dict.fromkeys(reached.gaps)) or ["none of its responders can be paged"]
        details = {"rule": opened.rule.name, "reasons": reasons, "nobody": not reached.user_ids}
        yield NewEntry(incident_id=opened.incident.id, kind=EntryKind.UNPAGED, details=details)
