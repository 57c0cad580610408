"""Responders for incidents that rules open: users, and users on call in schedules.

The timeline shows responders who cannot be reached, and gaps in schedules. Escalations of the
alerts continue independently. If no responder is paged, maintainers are notified.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.audit.events import EventActor
from domain.delivery.mail.assignment_notices import NewAssignment, store_assignment_notices
from domain.incidents.changes import MAX_ASSIGNEES
from domain.incidents.paging import build_incident_pages
from domain.incidents.rule_decisions import ActiveRule
from domain.incidents.timeline import NewTimelineEntry, add_timeline_entries
from domain.incidents.types import MAX_URGENCY, OPEN_STATUSES, EntryKind
from domain.paging.escalations.maintainer_notices import (
    NO_RESPONDER_REACHED,
    notify_of_paging_failure,
)
from domain.paging.escalations.policies import find_target_names
from domain.paging.escalations.policy_steps import EscalationPlan, Step, Target, TargetKind
from domain.paging.escalations.recipients import StepRecipients, load_recipients
from domain.paging.escalations.types import EscalationTarget
from domain.paging.notifications.batching import UserReachability
from domain.paging.notifications.page_queue import NewPage, queue_pages
from domain.paging.notifications.paging_settings import PagingSettings
from domain.projects.member_lists import find_users_with_ability
from domain.projects.views import Namespace
from models import Incident, IncidentAssignee, IncidentRuleResponder, User


@dataclass(frozen=True, kw_only=True)
class OpenedIncident:
    """An incident that a rule has just opened."""

    incident: Incident
    rule: ActiveRule
    project: Namespace

    @property
    def id(self) -> int:
        """Database ID of the incident."""
        return self.incident.id

    @property
    def iid(self) -> int:
        """Number of the incident within its project."""
        return self.incident.iid

    @property
    def title(self) -> str:
        """Title of the incident, which is derived from its first alert."""
        return self.incident.title

    @property
    def page_group(self) -> tuple[Namespace, bool]:
        """Namespace of the incident's pages, and whether the incident is critical."""
        return self.project, self.incident.urgency == MAX_URGENCY


def find_responder_targets(
    rule_ids: Collection[int | None], *, session: Session
) -> Mapping[int, tuple[Target, ...]]:
    """Return the ordered responders of rules, by rule ID.

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


def find_named_responders(
    rule_ids: Collection[int], *, session: Session
) -> Mapping[int, list[EscalationTarget]]:
    """Return the responders of rules, with their types and names, by rule ID."""
    targets = find_responder_targets(rule_ids, session=session)
    names = find_target_names({each for some in targets.values() for each in some}, session=session)
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


def assign_and_page_responders(
    opened_incidents: Sequence[OpenedIncident],
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Assign and page the responders of rules for the incidents that the rules opened.

    Incidents that have already been resolved are skipped. If no page is sent for an incident,
    maintainers are notified. To prevent deadlocks between workers, all pages are queued together,
    in a fixed order of recipients.
    """
    targets = find_responder_targets({each.rule.id for each in opened_incidents}, session=session)
    calls = [
        (each, Step(timedelta(), targets[each.rule.id]))
        for each in opened_incidents
        if each.rule.id in targets and each.incident.status in OPEN_STATUSES
    ]
    if not calls:
        return
    wanted: dict[tuple[Namespace, bool], set[EscalationPlan]] = defaultdict(set)
    for each, step in calls:
        wanted[each.page_group].add(EscalationPlan((step,)))
    recipients = load_recipients(wanted, sends_mail=policy.sends_mail, session=session, now=now)
    is_person = User.id.in_([each.id for each in recipients.names if each.kind is TargetKind.USER])
    able = {
        place: find_users_with_ability(
            is_person, Ability.ADMIN_ALERTS, place, session=session, today=now.date()
        )
        for place in {place for place, _ in wanted}
    }
    pages: list[NewPage] = []
    uncalled: list[OpenedIncident] = []
    for each, step in calls:
        place, is_critical = each.page_group
        reached = recipients.find_step_recipients(place, step, is_critical=is_critical)
        _assign_responders(each, reached, able[place], session=session, now=now)
        pages += _build_pages(each, reached, recipients.names, session=session, now=now)
        if not reached.user_ids:
            uncalled.append(each)
    session.flush()  # Queueing the pages reads the stored severities.
    queue_pages(pages, session=session, now=now)
    notify_of_paging_failure(uncalled, NO_RESPONDER_REACHED, policy, session=session, now=now)


def _assign_responders(
    opened_incident: OpenedIncident,
    recipients: StepRecipients,
    able: Mapping[int, str],
    *,
    session: Session,
    now: datetime,
) -> None:
    called = [*recipients.user_ids, *(person.id for person in recipients.unreached)]
    ids = [each for each in dict.fromkeys(called) if each in able][:MAX_ASSIGNEES]
    if not ids:
        return
    incident_id = opened_incident.incident.id
    rows = [{"incident_id": incident_id, "user_id": each} for each in ids]
    session.execute(insert(IncidentAssignee), rows)
    because = {"rule": opened_incident.rule.name}
    entries = [
        NewTimelineEntry(
            incident_id=incident_id, kind=EntryKind.ASSIGNED, text=able[each], details=because
        )
        for each in ids
    ]
    add_timeline_entries(entries, actor=None, session=session, now=now)
    assignments = [NewAssignment(user_id=each, incident_id=incident_id) for each in ids]
    store_assignment_notices(assignments, by_id=None, by_name="", session=session, now=now)


def _build_pages(
    opened_incident: OpenedIncident,
    recipients: StepRecipients,
    names: Mapping[Target, str],
    *,
    session: Session,
    now: datetime,
) -> Sequence[NewPage]:
    """Return the pages for an incident.

    The timeline records which users are paged, and why other users are not paged.
    """
    incident, rule = opened_incident.incident, opened_incident.rule.name
    people = {each: names[Target(TargetKind.USER, each)] for each in recipients.user_ids}
    pages = build_incident_pages(incident, people, actor=None, rule=rule, session=session, now=now)
    for person, reach in recipients.unreached.items():
        if reach is not UserReachability.QUIET:
            text = f"{reach.value}: not paged"
            entry = NewTimelineEntry(incident_id=incident.id, kind=EntryKind.PAGE, text=text)
            who = EventActor(id=person.id, name=person.name)
            add_timeline_entries([entry], actor=who, session=session, now=now)
    if recipients.gaps or not people:
        reasons = list(dict.fromkeys(recipients.gaps)) or ["none of its responders can be paged"]
        details = {"rule": rule, "reasons": reasons, "nobody": not people}
        entry = NewTimelineEntry(incident_id=incident.id, kind=EntryKind.UNPAGED, details=details)
        add_timeline_entries([entry], actor=None, session=session, now=now)
    return pages
