"""/api/v4/projects/:id/incidents: problems that people work on."""

from collections.abc import Sequence

from flask import Blueprint

from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.errors import InvalidError
from domain.incidents.assignees import usernames_of
from domain.incidents.editing import IncidentEdit, delete_incident, edit_incident
from domain.incidents.events import incident_changed, incident_created, incident_removed
from domain.incidents.listing import list_incidents
from domain.incidents.opening import Composer, NewIncident, create_incident
from domain.incidents.rows import get_incident
from domain.incidents.status import change_status
from domain.incidents.views import IncidentView
from domain.projects.views import ProjectView
from web.alerts.urls import AlertUrls, IncidentUrls
from web.api.operations import Found, operation
from web.api.schemas.incidents.incidents import (
    Incident,
    IncidentBody,
    IncidentChange,
    IncidentQuery,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, reading

incidents = Blueprint("incidents", __name__, url_prefix="/projects/<path:reference>/incidents")
#: The converter refuses numbers that no incident has and that databases reject.
_ONE = f"/<int(max={LARGEST_IID}):iid>"


@incidents.get("")
@operation("incidents.index", query=IncidentQuery, returns=Incident)
def index(project: ProjectView, query: IncidentQuery) -> Found[Incident]:
    """List incidents."""
    page = list_incidents(query.of_project(project.id), query.part, session=db.session())
    urls = IncidentUrls()
    return Found.of_page(page, lambda row: Incident.of(row, urls.of(project.path, row.iid)))


@incidents.post("")
@operation("incidents.create", body=IncidentBody, returns=Incident, status=201)
def create(project: ProjectView, body: IncidentBody, actor: Actor) -> Incident:
    """Open an incident, with alerts or without."""
    new = NewIncident(
        title=body.title,
        description=body.description,
        severity=body.severity,
        alerts=body.alerts,
        assignees=_assignees(body) or (),
        closes_when_resolved=bool(body.close_when_resolved),
    )
    urls = AlertUrls()
    composer = Composer(reading=reading(), alert_url=lambda iid: urls.of(project.path, iid))
    made = create_incident(
        project, new, by=actor, session=db.session(), now=now(), composer=composer
    )
    record_event(incident_created(made, project.path))
    return _shown(project, made)


@incidents.get(_ONE)
@operation("incidents.show", returns=Incident)
def show(project: ProjectView, iid: int) -> Incident:
    """Show an incident."""
    return _shown(project, get_incident(project.id, iid, session=db.session()))


@incidents.put(_ONE)
@operation("incidents.change", body=IncidentChange, returns=Incident)
def change(project: ProjectView, iid: int, body: IncidentChange, actor: Actor) -> Incident:
    """Change an incident; closing it resolves its alerts."""
    edit = IncidentEdit(
        title=body.title,
        description=body.description,
        severity=body.severity,
        closes_when_resolved=body.close_when_resolved,
        assignees=_assignees(body),
    )
    session, moment = db.session(), now()
    changed = edit_incident(project, iid, edit, by=actor, session=session, now=moment)
    if body.status is not None:
        changed = change_status(project.id, iid, body.status, by=actor, session=session, now=moment)
    if changed.updated_at == moment:
        given = body.model_dump(mode="json", exclude_unset=True, exclude={"description"})
        record_event(incident_changed(changed, project.path, **given))
    return _shown(project, changed)


@incidents.delete(_ONE)
@operation("incidents.delete")
def delete(project: ProjectView, iid: int) -> None:
    """Delete an incident with its timeline; its alerts are kept."""
    record_event(
        incident_removed(delete_incident(project.id, iid, session=db.session()), project.path)
    )


def _assignees(body: IncidentBody | IncidentChange) -> Sequence[str] | None:
    """Return the names of the users to assign, or None to leave them as they are."""
    if body.assignee_ids is None:
        return body.assignees
    if body.assignees is not None:
        message = "assignees, assignee_ids are mutually exclusive"
        raise InvalidError(message, field="assignees")
    return usernames_of(body.assignee_ids, session=db.session())


def _shown(project: ProjectView, view: IncidentView) -> Incident:
    return Incident.of(view, IncidentUrls().of(project.path, view.iid))
