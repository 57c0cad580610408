"""Actions that read the timelines of alerts and incidents."""

from sqlalchemy import select

from domain.access.actions import read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.alert_detail import RUNBOOK, find_links_and_labels, get_alert_id
from domain.core.types.pagination import ListPage
from domain.incidents.listing import get_incident_row
from domain.incidents.note_actions import can_see_internal_comments
from domain.incidents.timelines.merging import build_source_from_rows, merge_sources
from domain.incidents.timelines.sources import (
    INCIDENT_ACTIVITY_KINDS,
    build_activity_source,
    build_deployment_source,
    build_entry_source,
    build_page_source,
    build_report_source,
    find_incident_alerts,
)
from domain.incidents.timelines.types import IncidentSurroundings, TimelineItem, TimelineQuery
from domain.paging.on_call.shifts import list_schedules_on_call
from domain.projects.views import ProjectView
from models import Alert, IncidentAlert

#: Maximum number of alerts whose payloads are searched for runbooks.
_MAX_SEARCHED_ALERTS = 10


@read_action("alert_timeline.index", command="timeline", plural="timeline")
def list_alert_timeline(
    work: UnitOfWork, project: ProjectView, iid: int, query: TimelineQuery
) -> ListPage[TimelineItem]:
    """List the timeline items of an alert.

    The timeline contains reports, pages, user actions, and deployments from the same period.

    Raise NotFoundError if the project has no such alert.
    """
    session = work.session
    alert = session.get_one(Alert, get_alert_id(project.id, iid, session=session))
    sources = (
        build_report_source(alert.id, session=session),
        build_activity_source({alert.id: ()}, session=session),
        build_page_source({alert.id: ()}, session=session),
        build_deployment_source(
            work,
            project,
            {alert.environment} if alert.environment else (),
            opened_at=alert.created_at,
            ended_at=alert.ended_at,
        ),
    )
    return merge_sources(sources, query)


@read_action("incident_timeline.index", command="timeline", plural="timeline")
def list_incident_timeline(
    work: UnitOfWork, project: ProjectView, iid: int, query: TimelineQuery
) -> ListPage[TimelineItem]:
    """List the timeline items of an incident and its alerts.

    The timeline also contains deployments from the same period.

    Raise NotFoundError if the project has no such incident.
    """
    session, incident = work.session, get_incident_row(project.id, iid, session=work.session)
    alerts = find_incident_alerts(incident.id, session=session)
    sources = (
        build_source_from_rows("o", alerts.rows),
        build_entry_source(
            incident.id, shows_internal=can_see_internal_comments(project), session=session
        ),
        build_activity_source(alerts.numbers, INCIDENT_ACTIVITY_KINDS, session=session),
        build_page_source(alerts.numbers, session=session),
        build_deployment_source(
            work,
            project,
            alerts.environments,
            opened_at=alerts.opened_at or incident.created_at,
            ended_at=incident.resolved_at,
        ),
    )
    return merge_sources(sources, query)


@read_action("incident_timeline.surroundings")
def show_responders_and_runbooks(
    work: UnitOfWork, project: ProjectView, iid: int
) -> IncidentSurroundings:
    """Show the users on call for an incident, and the runbooks of its alerts.

    Raise NotFoundError if the project has no such incident.
    """
    incident_id = get_incident_row(project.id, iid, session=work.session).id
    alerts = work.session.scalars(
        select(Alert)
        .join(IncidentAlert, IncidentAlert.alert_id == Alert.id)
        .where(IncidentAlert.incident_id == incident_id)
        .order_by(IncidentAlert.alert_id.desc())
        .limit(_MAX_SEARCHED_ALERTS)
    )
    reading = work.policy(ParserSettings)
    facts = [find_links_and_labels(each, session=work.session, reading=reading) for each in alerts]
    runbooks = (each.links[RUNBOOK] for each in facts if RUNBOOK in each.links)
    return IncidentSurroundings(
        on_call=tuple(list_schedules_on_call(work, project)),
        runbooks=tuple(dict.fromkeys(runbooks)),
    )
