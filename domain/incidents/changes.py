"""Changes the fields, assignees and status of incidents, and the status of their alerts."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, insert, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.users import UserView
from domain.alerts.handling.assignments import get_assignable_user
from domain.alerts.handling.status import StatusChange, change_statuses_in_bulk
from domain.alerts.listing.filters import OPEN_STATUSES as OPEN_ALERTS
from domain.audit.events import EventActor, EventKind
from domain.core.errors import InvalidError
from domain.delivery.mail.assignment_notices import NewAssignment, store_assignment_notices
from domain.incidents.alert_links import (
    reclaim_fingerprints,
    release_fingerprints,
    stop_queuing_alert_changes_if_unneeded,
)
from domain.incidents.listing import lock_incidents
from domain.incidents.timeline import NewTimelineEntry, add_timeline_entries
from domain.incidents.types import (
    MAX_URGENCY,
    OPEN_STATUSES,
    EntryKind,
    IncidentChange,
    IncidentStatus,
    convert_to_severity,
    convert_to_urgency,
    validate_incident_description,
    validate_incident_title,
)
from domain.paging.notifications.acknowledgement_links import (
    VIA_MESSAGE_LINK,
    AcknowledgementLink,
    LinkSelection,
    acknowledge_alerts,
    find_selected_subjects,
)
from domain.paging.notifications.page_queue import cancel_pages, release_critical_pages
from domain.paging.notifications.page_subjects import SubjectKind
from domain.projects.views import ProjectView
from models import Alert, Incident, IncidentAlert, IncidentAssignee, User

_RESOLVED = IncidentStatus.RESOLVED.value
#: Statuses of alerts that change together with an incident, by the new status of the incident.
_FOLLOWING_ALERT_STATUSES: dict[str, Sequence[str]] = {
    IncidentStatus.TRIGGERED.value: (),
    IncidentStatus.ACKNOWLEDGED.value: ("triggered",),
    _RESOLVED: OPEN_ALERTS,
}
MAX_ASSIGNEES = 20


def change_incident_status(
    work: UnitOfWork,
    incident: Incident,
    status: str,
    *,
    actor: EventActor | None,
    via: str | None = None,
) -> None:
    """Change the status of a locked incident and of its alerts.

    Acknowledging an incident acknowledges its triggered alerts. Closing an incident resolves its
    open alerts, but not its ignored alerts. Reopening an incident does not change its alerts.
    """
    if incident.status == status:
        return
    session, now, old = work.session, work.now, incident.status
    _set_status(incident, status, now=now)
    changed = 0
    if _FOLLOWING_ALERT_STATUSES[status]:
        with_it = f"with incident #{incident.iid}" + ("" if actor else ", on the command line")
        changed = change_statuses_in_bulk(
            incident.project_id,
            select(IncidentAlert.alert_id).where(IncidentAlert.incident_id == incident.id),
            StatusChange(status=status, by=actor, via=with_it),
            among=_FOLLOWING_ALERT_STATUSES[status],
            session=session,
            now=now,
        )
    session.flush()
    if status != IncidentStatus.TRIGGERED.value:
        # No other user needs to respond to the incident.
        cancel_pages(
            [incident.id],
            subject_kind=SubjectKind.INCIDENT,
            keeps_asked=status != _RESOLVED,
            session=session,
            now=now,
        )
    if status == _RESOLVED:
        release_fingerprints([incident.id], session=session)
        stop_queuing_alert_changes_if_unneeded(incident.project_id, session=session)
    elif old == _RESOLVED:
        reclaim_fingerprints(incident, session=session)
    details = {"old": old, "new": status, "count": changed, **({"via": via} if via else {})}
    entry = NewTimelineEntry(incident_id=incident.id, kind=EntryKind.STATUS, details=details)
    add_timeline_entries([entry], actor=actor, session=session, now=now)


def _set_status(incident: Incident, status: str, *, now: datetime) -> None:
    incident.status = status
    incident.updated_at = now
    incident.resolved_at = now if status == _RESOLVED else None
    if status == IncidentStatus.ACKNOWLEDGED.value:
        incident.acknowledged_at = now
    elif status == IncidentStatus.TRIGGERED.value:
        incident.acknowledged_at = None


def acknowledge_incidents_by_link(
    work: UnitOfWork, link: AcknowledgementLink, selection: LinkSelection
) -> int:
    """Acknowledge the selected alerts and incidents of a link if they are still triggered.

    Return the number of acknowledged items. Raise ForbiddenError or InvalidError under the same
    conditions as `find_selected_subjects`.
    """
    found = find_selected_subjects(work, link, selection)
    by_project = found.get_ids_by_project(SubjectKind.INCIDENT)
    for project_id in by_project:
        lock_incidents(project_id, session=work.session)
    own = work.with_actor(found.user.id or 0, found.user.name)
    status, done = IncidentStatus.ACKNOWLEDGED.value, 0
    for project_id, ids in by_project.items():
        waiting = select(Incident).where(
            Incident.id.in_(ids), Incident.status == IncidentStatus.TRIGGERED.value
        )
        again = waiting.order_by(Incident.id).execution_options(populate_existing=True)
        for row in work.session.scalars(again).all():
            change_incident_status(work, row, status, actor=found.user, via=VIA_MESSAGE_LINK)
            about = {"project": found.projects[project_id].path, "iid": row.iid, "status": status}
            own.record_audit_event(EventKind.INCIDENT_CHANGED, subject=row.title, details=about)
            done += 1
    work.session.flush()
    return done + acknowledge_alerts(work, found)


def close_recovered_incidents(
    project_id: int, alert_ids: Sequence[int], *, session: Session, now: datetime
) -> Sequence[Incident]:
    """Close incidents that are configured to close automatically when their alerts are resolved.

    Such an incident is closed if at least one of its alerts is resolved and none is open. Ignored
    alerts do not keep an incident open. `alert_ids` are the alerts that were resolved or ignored.
    The caller must have locked the incidents of the project.
    """
    rows = session.scalars(
        select(Incident)
        .where(
            Incident.project_id == project_id,
            Incident.id.in_(
                select(IncidentAlert.incident_id).where(IncidentAlert.alert_id.in_(alert_ids))
            ),
            Incident.status.in_(OPEN_STATUSES),
            Incident.closes_when_resolved.is_(True),
            ~_build_alert_condition(OPEN_ALERTS),
            _build_alert_condition(("resolved",)),
        )
        .order_by(Incident.id)
        .execution_options(populate_existing=True)
    ).all()
    if not rows:
        return rows
    entries = []
    for row in rows:
        details = {"old": row.status, "new": _RESOLVED, "because": "its alerts are resolved"}
        entries.append(NewTimelineEntry(incident_id=row.id, kind=EntryKind.STATUS, details=details))
        _set_status(row, _RESOLVED, now=now)
    add_timeline_entries(entries, actor=None, session=session, now=now)
    release_fingerprints([row.id for row in rows], session=session)
    session.flush()
    closed = [row.id for row in rows]
    cancel_pages(closed, subject_kind=SubjectKind.INCIDENT, session=session, now=now)
    stop_queuing_alert_changes_if_unneeded(project_id, session=session)
    return rows


def _build_alert_condition(statuses: Sequence[str]) -> ColumnElement[bool]:
    return (
        exists()
        .where(
            IncidentAlert.incident_id == Incident.id,
            Alert.id == IncidentAlert.alert_id,
            Alert.status.in_(statuses),
        )
        .correlate(Incident)
    )


def edit_incident(
    work: UnitOfWork, incident: Incident, change: IncidentChange, *, actor: EventActor | None
) -> None:
    """Change the fields of a locked incident, and add entries to its timeline."""
    session, now = work.session, work.now
    entries = list(_apply_changes(incident, change))
    add_timeline_entries(entries, actor=actor, session=session, now=now)
    if entries:
        incident.updated_at = now
    release_pages_if_critical(incident, entries, session=session, now=now)


def release_pages_if_critical(
    incident: Incident, entries: Sequence[NewTimelineEntry], *, session: Session, now: datetime
) -> None:
    """Send pages that were delayed by quiet hours, if an incident has become critical."""
    was_changed = any(each.kind is EntryKind.SEVERITY for each in entries)
    if was_changed and incident.urgency == MAX_URGENCY:
        session.flush()
        ids = [incident.id]
        release_critical_pages(ids, subject_kind=SubjectKind.INCIDENT, session=session, now=now)


def _apply_changes(incident: Incident, change: IncidentChange) -> Iterator[NewTimelineEntry]:
    def build_entry(kind: EntryKind, **details: object) -> NewTimelineEntry:
        return NewTimelineEntry(incident_id=incident.id, kind=kind, details=details)

    title = incident.title if change.title is None else validate_incident_title(change.title)
    if title != incident.title:
        yield build_entry(EntryKind.TITLE, old=incident.title, new=title)
        incident.title = title
    description = incident.description
    if change.description is not None:
        description = validate_incident_description(change.description)
    if description != incident.description:
        yield build_entry(EntryKind.DESCRIPTION)
        incident.description = description
    if change.severity is not None and convert_to_urgency(change.severity) != incident.urgency:
        yield change_incident_severity(incident, convert_to_urgency(change.severity))
    closes, quiets = change.close_when_resolved, change.quiet_alerts
    if closes is not None and closes != incident.closes_when_resolved:
        yield build_entry(EntryKind.CLOSING, new=closes)
        incident.closes_when_resolved = closes
    if quiets is not None and quiets != incident.quiets_alerts:
        yield build_entry(EntryKind.QUIET, new=quiets)
        incident.quiets_alerts = quiets


def change_incident_severity(incident: Incident, urgency: int) -> NewTimelineEntry:
    """Change the severity of an incident, and return a timeline entry for the change."""
    old, incident.urgency = incident.urgency, urgency
    details = {"old": convert_to_severity(old).value, "new": convert_to_severity(urgency).value}
    return NewTimelineEntry(incident_id=incident.id, kind=EntryKind.SEVERITY, details=details)


def set_assignees(
    work: UnitOfWork,
    project: ProjectView,
    incident: Incident,
    usernames: Sequence[str],
    *,
    actor: EventActor | None,
) -> None:
    """Assign an incident to exactly the given users.

    Users who are already assigned stay assigned even if they have lost their role. Raise
    InvalidError if a new user cannot be assigned.
    """
    session, now = work.session, work.now
    wanted = list(dict.fromkeys(usernames))
    if len(wanted) > MAX_ASSIGNEES:
        message = f"An incident can have at most {MAX_ASSIGNEES} assignees."
        raise InvalidError(message, field="assignees")
    rows = session.execute(
        select(User.username, User.id)
        .join(IncidentAssignee, IncidentAssignee.user_id == User.id)
        .where(IncidentAssignee.incident_id == incident.id)
    )
    present = dict(rows.all())
    new = [
        _get_assignable_user(work, project, name, actor=actor)
        for name in wanted
        if name not in present
    ]
    gone = {name: user_id for name, user_id in present.items() if name not in wanted}
    session.execute(
        delete(IncidentAssignee).where(
            IncidentAssignee.incident_id == incident.id,
            IncidentAssignee.user_id.in_(gone.values()),
        )
    )
    if new:
        added = [{"incident_id": incident.id, "user_id": user.id} for user in new]
        session.execute(insert(IncidentAssignee), added)
    changes = [(EntryKind.UNASSIGNED, name) for name in gone]
    changes += [(EntryKind.ASSIGNED, user.username) for user in new]
    entries = [
        NewTimelineEntry(incident_id=incident.id, kind=kind, text=name) for kind, name in changes
    ]
    add_timeline_entries(entries, actor=actor, session=session, now=now)
    assigned = [NewAssignment(user_id=user.id, incident_id=incident.id) for user in new]
    by_id, by_name = (actor.id, actor.name) if actor else (None, "")
    store_assignment_notices(assigned, by_id=by_id, by_name=by_name, session=session, now=now)
    if entries:
        incident.updated_at = now


def _get_assignable_user(
    work: UnitOfWork, project: ProjectView, username: str, *, actor: EventActor | None
) -> UserView:
    session, today = work.session, work.now.date()
    try:
        return get_assignable_user(project, username, by=actor, session=session, today=today)
    except InvalidError as error:
        message = "Assignees must be members of the project with the Developer role or higher."
        raise InvalidError(message, field="assignees") from error
