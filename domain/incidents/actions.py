"""Actions on incidents and their alerts."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from domain.access.actions import action, read_action
from domain.access.actor import AccessMethod, UnitOfWork
from domain.alerts.handling.assignments import get_assignee_username
from domain.alerts.listing.queries import ALERT_LIST_QUERY, AlertListRow, build_alert_list_row
from domain.alerts.listing.sort_orders import parse_sort_cursor
from domain.alerts.listing.types import Alert as ShownAlert
from domain.alerts.listing.types import build_alert_resource
from domain.audit.events import EventActor, EventKind
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_page
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.incidents import listing
from domain.incidents.alert_links import (
    LinkedAlert,
    check_not_in_open_incident,
    claim_fingerprints,
    lock_alerts_to_link,
    reclaim_fingerprints,
    release_fingerprints,
    stop_queuing_alert_changes_if_unneeded,
    store_alert_links,
)
from domain.incidents.changes import change_incident_status, edit_incident, set_assignees
from domain.incidents.listing import (
    SORT_ORDERS,
    TABS,
    IncidentFilter,
    IncidentSlice,
    build_incident_resources,
    get_incident_row,
    lock_incident,
)
from domain.incidents.opening import open_incident
from domain.incidents.paging import has_just_paged, page_users_about_incident
from domain.incidents.timeline import NewTimelineEntry, add_timeline_entries, build_alert_details
from domain.incidents.types import (
    OPEN_STATUSES,
    EntryKind,
    Incident,
    IncidentAlertsBody,
    IncidentAlertsQuery,
    IncidentChange,
    IncidentPageBody,
    IncidentQuery,
    NewIncident,
)
from domain.projects.views import ProjectView
from models import Alert, IncidentAlert
from models import Incident as IncidentRow


@read_action("incidents.index")
def list_incidents(
    work: UnitOfWork, project: ProjectView, query: IncidentQuery
) -> ListPage[Incident]:
    """List the incidents of a project."""
    wanted = IncidentFilter(
        project_id=project.id,
        statuses=TABS[query.status],
        search=query.search.strip(),
        severity=query.severity,
        assignee=query.assignee or None,
        alert=query.alert,
    )
    order = SORT_ORDERS[query.sort]
    following = parse_sort_cursor(query.cursor, order)
    part = IncidentSlice(size=query.page_size, order=order, following=following)
    page = listing.list_incidents(wanted, part, session=work.session)
    cursor = None if page.next_before is None else str(page.next_before)
    return ListPage(items=_build_resources(work, project, page.items), next_cursor=cursor)


@read_action("incidents.index")
def list_incidents_with_counts(
    work: UnitOfWork, project: ProjectView, wanted: IncidentFilter, part: IncidentSlice
) -> tuple[KeysetPage[Incident], dict[str, int]]:
    """Return a page of incidents, and the number of incidents by status."""
    wanted = listing.resolve_incident_filter(wanted, session=work.session)
    page = listing.list_incidents(wanted, part, session=work.session)
    shown = page.with_items(_build_resources(work, project, page.items))
    return shown, listing.count_incidents_by_status(wanted, session=work.session)


@read_action("incidents.index")
def list_incidents_for_alert(
    work: UnitOfWork, project: ProjectView, alert_id: int
) -> list[Incident]:
    """Return the ten newest incidents that contain an alert."""
    containing = select(IncidentAlert.incident_id).where(IncidentAlert.alert_id == alert_id)
    newest = (
        select(IncidentRow)
        .where(IncidentRow.id.in_(containing))
        .order_by(IncidentRow.id.desc())
        .limit(10)
    )
    return _build_resources(work, project, work.session.scalars(newest).all())


@read_action("incidents.show")
def show_incident(work: UnitOfWork, project: ProjectView, iid: int) -> Incident:
    """Show an incident.

    Raise NotFoundError if the project has no such incident.
    """
    return _build_resource(work, project, get_incident_row(project.id, iid, session=work.session))


@read_action("incident_alerts.index")
def fetch_incident_alert_page(
    work: UnitOfWork, project: ProjectView, iid: int, part: KeysetRange
) -> KeysetPage[AlertListRow]:
    """Return a page of the alerts in an incident, newest first.

    Raise NotFoundError if the project has no such incident.
    """
    incident_id = get_incident_row(project.id, iid, session=work.session).id
    linked = ALERT_LIST_QUERY.join(IncidentAlert, IncidentAlert.alert_id == Alert.id).where(
        IncidentAlert.incident_id == incident_id
    )
    return fetch_page(
        linked, IncidentAlert.alert_id, part, session=work.session, view=build_alert_list_row
    )


@read_action("incident_alerts.index")
def list_incident_alerts(
    work: UnitOfWork, project: ProjectView, iid: int, query: IncidentAlertsQuery
) -> ListPage[ShownAlert]:
    """List the alerts in an incident, newest first."""
    page = fetch_incident_alert_page(work, project, iid, query.requested_range)
    return ListPage.from_keyset_page(
        page, lambda row: build_alert_resource(ShownAlert, row, work.settings.base_url)
    )


@action("incidents.create")
def create_incident(work: UnitOfWork, project: ProjectView, new: NewIncident) -> Incident:
    """Open an incident, optionally with alerts.

    Raise InvalidError for an invalid field, NotFoundError for an unknown alert, or ConflictError if
    another open incident contains one of the alerts.
    """
    by = _get_acting_user(work)
    row = open_incident(work, project, new, actor=by)
    assignees = _resolve_assignees(work, new) or ()
    set_assignees(work, project, row, assignees, actor=by)
    if new.page_assignees and assignees:
        page_users_about_incident(work, project, row, assignees, actor=by)
    made = _build_resource(work, project, row)
    alerts = {"alerts": list(made.alerts)} if made.alerts else {}
    _record_event(work, project, made, EventKind.INCIDENT_CREATED, **alerts)
    return made


@action("incidents.change", alias="update")
def change_incident(
    work: UnitOfWork, project: ProjectView, iid: int, change: IncidentChange
) -> Incident:
    """Change an incident, or close it and resolve its alerts.

    Raise NotFoundError if the project has no such incident, or InvalidError for an invalid field.
    """
    assignees = _resolve_assignees(work, change)
    row = lock_incident(project.id, iid, session=work.session)
    present = _build_resource(work, project, row)
    by = _get_acting_user(work)
    edit_incident(work, row, change, actor=by)
    if assignees is not None:
        set_assignees(work, project, row, assignees, actor=by)
    added = set(assignees or ()) - {person.username for person in present.assignees}
    if change.page_assignees and added:
        page_users_about_incident(work, project, row, sorted(added), actor=by)
    if change.status is not None:
        change_incident_status(work, row, change.status, actor=by)
    changed = _build_resource(work, project, row)
    if changed != present:
        given = change.model_dump(mode="json", exclude_unset=True, exclude={"description"})
        _record_event(work, project, changed, EventKind.INCIDENT_CHANGED, **given)
    return changed


@action("incidents.page")
def page_responders(
    work: UnitOfWork, project: ProjectView, iid: int, body: IncidentPageBody
) -> Incident:
    """Page users about an open incident, by default its assignees.

    Raise NotFoundError if the project has no such incident, ConflictError if the incident is
    closed, or InvalidError if a user cannot currently be paged.
    """
    row = lock_incident(project.id, iid, session=work.session)
    incident = _build_resource(work, project, row)
    if not incident.is_open:
        raise ConflictError("The incident is closed. Reopen it first.")
    names = body.users or [person.username for person in incident.assignees]
    if not names:
        message = "The incident has no assignees. Specify the users to page."
        raise InvalidError(message, field="users")
    if work.actor.means is AccessMethod.PAGE and has_just_paged(row.id, names, work=work):
        return incident
    paged = page_users_about_incident(work, project, row, names, actor=_get_acting_user(work))
    _record_event(work, project, incident, EventKind.INCIDENT_PEOPLE_PAGED, people=list(paged))
    return incident


@action("incidents.delete")
def delete_incident(work: UnitOfWork, project: ProjectView, iid: int) -> Incident:
    """Delete an incident and its timeline, but keep its alerts.

    Return the deleted incident. Raise NotFoundError if the project has no such incident.
    """
    row = lock_incident(project.id, iid, session=work.session)
    incident = _build_resource(work, project, row)
    _record_event(work, project, incident, EventKind.INCIDENT_REMOVED)
    work.session.execute(delete(IncidentRow).where(IncidentRow.id == row.id))
    stop_queuing_alert_changes_if_unneeded(project.id, session=work.session)
    return incident


@action("incident_alerts.create")
def link_alerts(
    work: UnitOfWork, project: ProjectView, iid: int, body: IncidentAlertsBody
) -> Incident:
    """Link alerts to an incident.

    Alerts that are already linked are not changed.

    Raise NotFoundError if there is no such incident or alert, or ConflictError if another open
    incident contains one of the alerts.
    """
    row = lock_incident(project.id, iid, session=work.session)
    alerts = lock_alerts_to_link(project.id, body.alerts, session=work.session)
    had = work.session.scalars(
        select(IncidentAlert.alert_id).where(
            IncidentAlert.incident_id == row.id,
            IncidentAlert.alert_id.in_([alert.id for alert in alerts]),
        )
    ).all()
    new = [alert for alert in alerts if alert.id not in had]
    if not new:
        return _build_resource(work, project, row)
    if row.status in OPEN_STATUSES:
        check_not_in_open_incident(new, session=work.session)
        claim_fingerprints({row.id: new}, project.id, session=work.session)
    store_alert_links({row.id: new}, session=work.session)
    row.alerts += len(new)
    _add_alert_timeline_entry(work, row, EntryKind.LINKED, new)
    linked = _build_resource(work, project, row)
    numbers = [alert.iid for alert in new]
    _record_event(work, project, linked, EventKind.INCIDENT_CHANGED, linked=numbers)
    return linked


@action("incident_alerts.delete")
def unlink_alert(work: UnitOfWork, project: ProjectView, iid: int, alert_iid: int) -> Incident:
    """Unlink an alert from an incident.

    Raise NotFoundError if there is no such incident, or if the alert is not linked to it.
    """
    row = lock_incident(project.id, iid, session=work.session)
    (alert,) = lock_alerts_to_link(project.id, [alert_iid], session=work.session)
    removed = work.session.execute(
        delete(IncidentAlert)
        .where(IncidentAlert.incident_id == row.id, IncidentAlert.alert_id == alert.id)
        .returning(IncidentAlert.alert_id)
    ).all()
    if not removed:
        raise NotFoundError(f"Alert {alert_iid} is not linked to incident {iid}.")
    row.alerts -= 1
    _add_alert_timeline_entry(work, row, EntryKind.UNLINKED, [alert])
    if row.status in OPEN_STATUSES:
        # Reclaim the fingerprints of the remaining alerts.
        release_fingerprints([row.id], session=work.session)
        reclaim_fingerprints(row, session=work.session)
    incident = _build_resource(work, project, row)
    _record_event(work, project, incident, EventKind.INCIDENT_CHANGED, unlinked=[alert_iid])
    return incident


def _add_alert_timeline_entry(
    work: UnitOfWork, row: IncidentRow, kind: EntryKind, alerts: Sequence[LinkedAlert]
) -> None:
    row.updated_at = work.now
    details = build_alert_details([alert.iid for alert in alerts])
    entry = NewTimelineEntry(incident_id=row.id, kind=kind, details=details)
    add_timeline_entries([entry], actor=_get_acting_user(work), session=work.session, now=work.now)


def _resolve_assignees(
    work: UnitOfWork, body: NewIncident | IncidentChange
) -> Sequence[str] | None:
    """Return the usernames of the new assignees, or None to make no change.

    Raise InvalidError if an ID is unknown, or if the body has both names and IDs.
    """
    if body.assignee_ids is None:
        names = body.assignees
        return names and [name for name in names if name != listing.NO_ASSIGNEE]
    if body.assignees is not None:
        raise InvalidError(
            "`assignees` and `assignee_ids` are mutually exclusive.", field="assignees"
        )
    # The ID 0 stands for no assignee.
    ids = filter(None, body.assignee_ids)
    return [get_assignee_username(user_id, session=work.session) for user_id in ids]


def _get_acting_user(work: UnitOfWork) -> EventActor | None:
    """Return the acting user, or None for the command line."""
    actor = work.actor
    return None if actor.id is None else EventActor(id=actor.id, name=actor.name)


def _build_resources(
    work: UnitOfWork, project: ProjectView, rows: Sequence[IncidentRow]
) -> list[Incident]:
    url = f"{work.settings.base_url}/{project.path}/-/incidents"
    return build_incident_resources(rows, url=url, session=work.session)


def _build_resource(work: UnitOfWork, project: ProjectView, row: IncidentRow) -> Incident:
    return _build_resources(work, project, [row])[0]


def _record_event(
    work: UnitOfWork, project: ProjectView, incident: Incident, kind: EventKind, **details: object
) -> None:
    about = {"project": project.path, "iid": incident.iid, **details}
    work.record_audit_event(kind, subject=incident.title, details=about)
