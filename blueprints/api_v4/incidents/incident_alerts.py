"""/api/v4/projects/:id/incidents/:iid/alerts: the alerts of an incident."""

from flask import Blueprint

from domain.alerts.listing.queries import LARGEST_IID
from domain.audit.events import Actor
from domain.database.paging import Slice, read_cursor
from domain.incidents.events import incident_changed
from domain.incidents.linked_alerts import list_linked
from domain.incidents.links import link_alerts, unlink_alert
from domain.incidents.rows import get_incident_id
from domain.projects.views import ProjectView
from web.alerts.urls import AlertUrls, IncidentUrls
from web.api.operations import Found, operation
from web.api.schemas.alerts.alerts import Alert
from web.api.schemas.incidents.incidents import Incident, IncidentAlertsBody, IncidentAlertsQuery
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now

incident_alerts = Blueprint(
    "incident_alerts",
    __name__,
    url_prefix=(f"/projects/<path:reference>/incidents/<int(max={LARGEST_IID}):iid>/alerts"),
)


@incident_alerts.get("")
@operation("incident_alerts.index", query=IncidentAlertsQuery, returns=Alert)
def index(project: ProjectView, iid: int, query: IncidentAlertsQuery) -> Found[Alert]:
    """List the alerts of an incident, newest first."""
    incident_id = get_incident_id(project.id, iid, session=db.session())
    part = Slice(size=query.size, before=read_cursor(query.cursor))
    page, urls = list_linked(incident_id, part, session=db.session()), AlertUrls()
    return Found.of_page(page, lambda row: Alert.of(row, urls.of(project.path, row.iid)))


@incident_alerts.post("")
@operation("incident_alerts.create", body=IncidentAlertsBody, returns=Incident, status=201)
def create(project: ProjectView, iid: int, body: IncidentAlertsBody, actor: Actor) -> Incident:
    """Link alerts to an incident."""
    view = link_alerts(project.id, iid, body.alerts, by=actor, session=db.session(), now=now())
    record_event(incident_changed(view, project.path, linked=list(body.alerts)))
    return Incident.of(view, IncidentUrls().of(project.path, iid))


@incident_alerts.delete(f"/<int(max={LARGEST_IID}):alert_iid>")
@operation("incident_alerts.delete")
def delete(project: ProjectView, iid: int, alert_iid: int, actor: Actor) -> None:
    """Unlink an alert from an incident."""
    view = unlink_alert(project.id, iid, alert_iid, by=actor, session=db.session(), now=now())
    record_event(incident_changed(view, project.path, unlinked=[alert_iid]))
