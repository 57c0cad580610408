"""Actions that read the timelines of alerts and incidents."""

from sqlalchemy import select

from domain.access.actions import question
from domain.access.actor import Work
from domain.alerts.formats.base import Reading
from domain.alerts.handling.alert_detail import RUNBOOK, get_alert_id, read_facts
from domain.core.types.base import Found
from domain.incidents.listing import get_incident_id, get_row
from domain.incidents.note_actions import sees_internal
from domain.incidents.timelines.merging import merge, stored
from domain.incidents.timelines.sources import (
    activity_among,
    activity_of,
    alerts_of,
    deployments_near,
    entries_of,
    pages_of,
    reports_of,
)
from domain.incidents.timelines.types import IncidentSurroundings, TimelineItem, TimelineQuery
from domain.paging.on_call.shifts import on_call_in_project
from domain.projects.views import ProjectView
from models import Alert, IncidentAlert

#: Maximum number of alerts whose payloads are searched for runbooks.
_MOST_READ = 10


@question("alert_timeline.index", command="timeline", plural="timeline")
def list_alert_timeline(
    work: Work, project: ProjectView, iid: int, query: TimelineQuery
) -> Found[TimelineItem]:
    """List the timeline of an alert.

    It contains reports, pages, actions of users and deployments of the same time.

    Raise NotFoundError if the project has no such alert.
    """
    session = work.session
    alert = session.get_one(Alert, get_alert_id(project.id, iid, session=session))
    sources = (
        reports_of(alert.id, session=session),
        activity_of(alert.id, session=session),
        pages_of({alert.id: ()}, session=session),
        deployments_near(
            work,
            project,
            {alert.environment} if alert.environment else (),
            opened_at=alert.created_at,
            ended_at=alert.ended_at,
        ),
    )
    return merge(sources, query)


@question("incident_timeline.index", command="timeline", plural="timeline")
def list_incident_timeline(
    work: Work, project: ProjectView, iid: int, query: TimelineQuery
) -> Found[TimelineItem]:
    """List the timeline of an incident and its alerts.

    It contains deployments of the same time.

    Raise NotFoundError if the project has no such incident.
    """
    session, incident = work.session, get_row(project.id, iid, session=work.session)
    alerts = alerts_of(incident.id, session=session)
    sources = (
        stored("o", alerts.rows),
        entries_of(incident.id, shows_internal=sees_internal(project), session=session),
        activity_among(alerts.numbers, session=session),
        pages_of({each: (number,) for each, number in alerts.numbers.items()}, session=session),
        deployments_near(
            work,
            project,
            alerts.environments,
            opened_at=alerts.opened_at or incident.created_at,
            ended_at=incident.resolved_at,
        ),
    )
    return merge(sources, query)


@question("incident_timeline.surroundings")
def show_surroundings(work: Work, project: ProjectView, iid: int) -> IncidentSurroundings:
    """Show the users on call for an incident and the runbooks of its alerts.

    Raise NotFoundError if the project has no such incident.
    """
    incident_id = get_incident_id(project.id, iid, session=work.session)
    alerts = work.session.scalars(
        select(Alert)
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .where(IncidentAlert.incident_id == incident_id)
        .order_by(IncidentAlert.alert_id.desc())
        .limit(_MOST_READ)
    )
    reading = work.policy(Reading)
    facts = [read_facts(each, session=work.session, reading=reading) for each in alerts]
    runbooks = (each.links[RUNBOOK] for each in facts if RUNBOOK in each.links)
    return IncidentSurroundings(
        on_call=tuple(on_call_in_project(work, project)), runbooks=tuple(dict.fromkeys(runbooks))
    )
