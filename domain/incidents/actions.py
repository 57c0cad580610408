"""Actions on incidents and their alerts."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from domain.access.actions import action, question
from domain.access.actor import Means, Work
from domain.alerts.formats.base import Reading
from domain.alerts.listing.queries import ROWS, AlertRow, row_of
from domain.alerts.listing.sort_orders import read_cursor
from domain.alerts.listing.types import Alert as ShownAlert
from domain.alerts.listing.types import shown_alert
from domain.audit.events import Actor, EventKind
from domain.core.database.paging import Page, Slice, fetch_page
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.base import Found
from domain.incidents import listing
from domain.incidents.changes import change_status, edit_incident, set_assignees, usernames_of
from domain.incidents.links import (
    LinkedAlert,
    check_free,
    hold,
    hold_again,
    link,
    lock_alerts,
    release_fingerprints,
    stop_following,
)
from domain.incidents.listing import (
    SORT_ORDERS,
    TABS,
    IncidentFilter,
    IncidentSlice,
    get_incident_id,
    get_row,
    incidents_of,
    locked_incident,
)
from domain.incidents.opening import Composer, open_incident
from domain.incidents.paging import page_people, were_just_paged
from domain.incidents.timeline import NewEntry, add_entries, alerts_in
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


@question("incidents.index")
def list_incidents(work: Work, project: ProjectView, query: IncidentQuery) -> Found[Incident]:
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
    following = read_cursor(query.cursor, order)
    part = IncidentSlice(size=query.size, order=order, following=following)
    page = listing.list_incidents(wanted, part, session=work.session)
    cursor = None if page.next_before is None else str(page.next_before)
    return Found(items=_shown(work, project, page.items), next_cursor=cursor)


@question("incidents.index")
def show_page(
    work: Work, project: ProjectView, wanted: IncidentFilter, part: IncidentSlice
) -> tuple[Page[Incident], dict[str, int]]:
    """Return a page of incidents, and the number of incidents by status (`count_by_status`)."""
    wanted = listing.looked_up(wanted, session=work.session)
    page = listing.list_incidents(wanted, part, session=work.session)
    shown = page.with_items(_shown(work, project, page.items))
    return shown, listing.count_by_status(wanted, session=work.session)


@question("incidents.index")
def list_of_alert(work: Work, project: ProjectView, alert_id: int) -> list[Incident]:
    """Return the ten newest incidents that contain an alert."""
    rows = listing.incidents_of_alert(alert_id, session=work.session)
    return _shown(work, project, rows)


@question("incidents.show")
def show_incident(work: Work, project: ProjectView, iid: int) -> Incident:
    """Show an incident.

    Raise NotFoundError if the project has no such incident.
    """
    return _one(work, project, get_row(project.id, iid, session=work.session))


@question("incident_alerts.index")
def show_alerts(work: Work, project: ProjectView, iid: int, part: Slice) -> Page[AlertRow]:
    """Return a page of the alerts of an incident, newest first.

    Raise NotFoundError if the project has no such incident.
    """
    incident_id = get_incident_id(project.id, iid, session=work.session)
    linked = ROWS.join(IncidentAlert, IncidentAlert.alert_id == Alert.id).where(
        IncidentAlert.incident_id == incident_id
    )
    return fetch_page(linked, IncidentAlert.alert_id, part, session=work.session, view=row_of)


@question("incident_alerts.index")
def list_alerts(
    work: Work, project: ProjectView, iid: int, query: IncidentAlertsQuery
) -> Found[ShownAlert]:
    """List the alerts of an incident, newest first."""
    page = show_alerts(work, project, iid, query.part)
    return Found.of_page(page, lambda row: shown_alert(ShownAlert, row, work.settings.base_url))


@action("incidents.create")
def create_incident(work: Work, project: ProjectView, new: NewIncident) -> Incident:
    """Open an incident, optionally with alerts.

    Raise InvalidError, NotFoundError, or ConflictError if another open incident contains an alert.
    """
    url = f"{work.settings.base_url}/{project.path}/-/alerts"
    row = open_incident(
        project,
        new,
        by=_by(work),
        session=work.session,
        now=work.now,
        composer=Composer(reading=work.policy(Reading), alert_url=lambda iid: f"{url}/{iid}"),
    )
    assignees = _assignees(work, new) or ()
    by, session, now = _by(work), work.session, work.now
    set_assignees(project, row, assignees, by=by, session=session, now=now)
    if new.page_assignees and assignees:
        page_people(work, project, row, assignees, by=by)
    made = _one(work, project, row)
    alerts = {"alerts": list(made.alerts)} if made.alerts else {}
    _record(work, project, made, EventKind.INCIDENT_CREATED, **alerts)
    return made


@action("incidents.change", alias="update")
def change_incident(work: Work, project: ProjectView, iid: int, change: IncidentChange) -> Incident:
    """Change an incident, or close it and resolve its alerts.

    Raise InvalidError or NotFoundError.
    """
    assignees = _assignees(work, change)
    row = locked_incident(project.id, iid, session=work.session)
    present = _one(work, project, row)
    by, session, now = _by(work), work.session, work.now
    edit_incident(row, change, by=by, session=session, now=now)
    if assignees is not None:
        set_assignees(project, row, assignees, by=by, session=session, now=now)
    added = set(assignees or ()) - {person.username for person in present.assignees}
    if change.page_assignees and added:
        page_people(work, project, row, sorted(added), by=by)
    if change.status is not None:
        change_status(row, change.status, by=by, session=session, now=now)
    changed = _one(work, project, row)
    if changed != present:
        given = change.model_dump(mode="json", exclude_unset=True, exclude={"description"})
        _record(work, project, changed, EventKind.INCIDENT_CHANGED, **given)
    return changed


@action("incidents.page")
def page_responders(work: Work, project: ProjectView, iid: int, body: IncidentPageBody) -> Incident:
    """Page users about an open incident, by default its assignees.

    Raise NotFoundError, ConflictError if the incident is closed, or InvalidError if a user cannot
    be paged now.
    """
    row = locked_incident(project.id, iid, session=work.session)
    incident = _one(work, project, row)
    if not incident.is_open:
        raise ConflictError("The incident is closed. Reopen it first.")
    names = body.users or [person.username for person in incident.assignees]
    if not names:
        message = "The incident has no assignees. Specify the users to page."
        raise InvalidError(message, field="users")
    if work.actor.means is Means.PAGE and were_just_paged(row.id, names, work=work):
        return incident
    paged = page_people(work, project, row, names, by=_by(work))
    _record(work, project, incident, EventKind.INCIDENT_PEOPLE_PAGED, people=list(paged))
    return incident


@action("incidents.delete")
def delete_incident(work: Work, project: ProjectView, iid: int) -> Incident:
    """Delete an incident and its timeline, but keep its alerts.

    Return the deleted incident. Raise NotFoundError if the project has no such incident.
    """
    row = locked_incident(project.id, iid, session=work.session)
    incident = _one(work, project, row)
    _record(work, project, incident, EventKind.INCIDENT_REMOVED)
    work.session.execute(delete(IncidentRow).where(IncidentRow.id == row.id))
    stop_following(project.id, session=work.session)
    return incident


@action("incident_alerts.create")
def link_alerts(work: Work, project: ProjectView, iid: int, body: IncidentAlertsBody) -> Incident:
    """Link alerts to an incident.

    Alerts that are already linked do not change.

    Raise NotFoundError, or ConflictError if another open incident contains an alert.
    """
    row = locked_incident(project.id, iid, session=work.session)
    alerts = lock_alerts(project.id, body.alerts, session=work.session)
    had = work.session.scalars(
        select(IncidentAlert.alert_id).where(
            IncidentAlert.incident_id == row.id,
            IncidentAlert.alert_id.in_([alert.id for alert in alerts]),
        )
    ).all()
    new = [alert for alert in alerts if alert.id not in had]
    if not new:
        return _one(work, project, row)
    if row.status in OPEN_STATUSES:
        check_free(new, session=work.session)
        hold({row.id: new}, project.id, session=work.session)
    link({row.id: new}, session=work.session)
    row.alerts += len(new)
    _note(work, row, EntryKind.LINKED, new)
    linked = _one(work, project, row)
    numbers = [alert.iid for alert in new]
    _record(work, project, linked, EventKind.INCIDENT_CHANGED, linked=numbers)
    return linked


@action("incident_alerts.delete")
def unlink_alert(work: Work, project: ProjectView, iid: int, alert_iid: int) -> Incident:
    """Unlink an alert from an incident.

    Raise NotFoundError if there is no such incident or the alert is not linked to it.
    """
    row = locked_incident(project.id, iid, session=work.session)
    (alert,) = lock_alerts(project.id, [alert_iid], session=work.session)
    removed = work.session.execute(
        delete(IncidentAlert)
        .where(IncidentAlert.incident_id == row.id, IncidentAlert.alert_id == alert.id)
        .returning(IncidentAlert.alert_id)
    ).all()
    if not removed:
        raise NotFoundError(f"Alert {alert_iid} is not linked to incident {iid}.")
    row.alerts -= 1
    _note(work, row, EntryKind.UNLINKED, [alert])
    if row.status in OPEN_STATUSES:
        # Hold the fingerprints of the remaining alerts again.
        release_fingerprints([row.id], session=work.session)
        hold_again(row, session=work.session)
    incident = _one(work, project, row)
    _record(work, project, incident, EventKind.INCIDENT_CHANGED, unlinked=[alert_iid])
    return incident


def _note(work: Work, row: IncidentRow, kind: EntryKind, alerts: Sequence[LinkedAlert]) -> None:
    row.updated_at = work.now
    details = alerts_in([alert.iid for alert in alerts])
    entry = NewEntry(incident_id=row.id, kind=kind, details=details)
    add_entries([entry], by=_by(work), session=work.session, now=work.now)


def _assignees(work: Work, body: NewIncident | IncidentChange) -> Sequence[str] | None:
    """Return the names of the users to assign, or None to keep the assignees."""
    if body.assignee_ids is None:
        names = body.assignees
        return names and [name for name in names if name != listing.NOBODY]
    if body.assignees is not None:
        raise InvalidError("assignees, assignee_ids are mutually exclusive", field="assignees")
    return usernames_of(body.assignee_ids, session=work.session)


def _by(work: Work) -> Actor | None:
    """Return the acting user, or None for the command line."""
    actor = work.actor
    return None if actor.id is None else Actor(id=actor.id, name=actor.name)


def _shown(work: Work, project: ProjectView, rows: Sequence[IncidentRow]) -> list[Incident]:
    url = f"{work.settings.base_url}/{project.path}/-/incidents"
    return incidents_of(rows, url=url, session=work.session)


def _one(work: Work, project: ProjectView, row: IncidentRow) -> Incident:
    return _shown(work, project, [row])[0]


def _record(
    work: Work, project: ProjectView, incident: Incident, kind: EventKind, **details: object
) -> None:
    about = {"project": project.path, "iid": incident.iid, **details}
    work.record(kind, subject=incident.title, details=about)
