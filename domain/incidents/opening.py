"""Opens incidents: one that a user asks for, and those that rules open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from domain.alerts.formats.base import Reading
from domain.alerts.handling.reports import AlertReport, read_reports
from domain.alerts.reading.incoming import Severity
from domain.audit.events import Actor
from domain.errors import InvalidError
from domain.incidents.composing import composed_description, composed_title
from domain.incidents.fields import (
    IncidentStatus,
    checked_description,
    checked_title,
    urgency_of,
)
from domain.incidents.links import LinkedAlert, check_free, hold, link, lock_alerts
from domain.incidents.planning import Opening
from domain.incidents.rows import lock_incidents
from domain.incidents.timeline import EntryKind, NewEntry, add_entries, alerts_in
from domain.incidents.types import NewIncident
from domain.projects.views import ProjectView
from models import Incident

#: Returns the URL of the page of an alert by its number.
AlertUrl = Callable[[int], str]


@dataclass(frozen=True, kw_only=True)
class Composer:
    """What it takes to compose an incident from an alert."""

    reading: Reading
    alert_url: AlertUrl


def open_incident(
    project: ProjectView,
    new: NewIncident,
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
    composer: Composer,
) -> Incident:
    """Open an incident; raise InvalidError, NotFoundError or ConflictError.

    An alert that an open incident has is refused.
    """
    counter = lock_incidents(project.id, session=session)
    alerts = lock_alerts(project.id, new.alerts, session=session)
    check_free(alerts, session=session)
    counter.last_iid += 1
    if alerts:
        first = _first_report(new, alerts, session=session, composer=composer)
        new = _completed(new, first, counter.last_iid, composer)
    row = _row(project.id, counter.last_iid, new, by=by, now=now)
    _store(row, alerts, by=by, session=session, now=now)
    return row


def _first_report(
    new: NewIncident, alerts: Sequence[LinkedAlert], *, session: Session, composer: Composer
) -> AlertReport:
    """Return the report of the alert that was named first, from which the incident is composed."""
    first = next(alert.id for alert in alerts if alert.iid == new.alerts[0])
    return read_reports([first], session=session, reading=composer.reading)[first]


def _store(
    row: Incident,
    alerts: Sequence[LinkedAlert],
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
) -> None:
    row.alerts = len(alerts)
    session.add(row)
    session.flush()  # to get the id
    if alerts:
        link({row.id: alerts}, session=session)
        hold({row.id: alerts}, row.project_id, session=session)
    details = alerts_in([alert.iid for alert in alerts])
    entry = NewEntry(incident_id=row.id, kind=EntryKind.OPENED, details=details)
    add_entries([entry], by=by, session=session, now=now)


def _completed(new: NewIncident, report: AlertReport, iid: int, composer: Composer) -> NewIncident:
    """Return the incident with what is left out of it taken from an alert."""
    description = new.description
    if description is None:
        description = composed_description(report, composer.alert_url(report.iid))
    composed = {
        "title": composed_title(report, iid) if new.title is None else new.title,
        "description": description,
        "severity": new.severity or report.severity,
    }
    return new.model_copy(update=composed)


def _row(
    project_id: int, iid: int, new: NewIncident, *, by: Actor | None, now: datetime
) -> Incident:
    if new.title is None:
        message = "Give a title, or alerts to take it from."
        raise InvalidError(message, field="title")
    return Incident(
        project_id=project_id,
        iid=iid,
        title=checked_title(new.title),
        description=checked_description(new.description or ""),
        urgency=urgency_of(new.severity or Severity.UNKNOWN),
        status=IncidentStatus.TRIGGERED.value,
        closes_when_resolved=bool(new.close_when_resolved),
        author_id=by.id if by else None,
        author_name=by.name if by else "",
        created_at=now,
        updated_at=now,
    )


def open_by_rules(
    project_id: int,
    openings: Sequence[Opening],
    *,
    session: Session,
    now: datetime,
    composer: Composer,
) -> list[Incident]:
    """Store the incidents that rules open, with a few statements for all of them.

    The caller has locked the incidents of the project.
    """
    if not openings:
        return []
    counter = lock_incidents(project_id, session=session)
    firsts = [opening.alerts[0].id for opening in openings]
    reports = read_reports(firsts, session=session, reading=composer.reading)
    rows = [
        _row_of_rule(project_id, iid, opening, reports[opening.alerts[0].id], composer, now)
        for iid, opening in enumerate(openings, counter.last_iid + 1)
    ]
    counter.last_iid += len(openings)
    session.add_all(rows)
    session.flush()  # to get the ids
    links: dict[int, Sequence[LinkedAlert]] = {
        row.id: opening.alerts for row, opening in zip(rows, openings, strict=True)
    }
    link(links, session=session)
    hold(links, project_id, session=session)
    add_entries(
        [
            NewEntry(
                incident_id=row.id,
                kind=EntryKind.OPENED,
                details={
                    "rule": opening.rule.name,
                    **alerts_in([alert.iid for alert in opening.alerts]),
                },
            )
            for row, opening in zip(rows, openings, strict=True)
        ],
        by=None,
        session=session,
        now=now,
    )
    return rows


def _row_of_rule(
    project_id: int,
    iid: int,
    opening: Opening,
    report: AlertReport,
    composer: Composer,
    now: datetime,
) -> Incident:
    new = NewIncident(close_when_resolved=opening.rule.closes_when_resolved)
    row = _row(project_id, iid, _completed(new, report, iid, composer), by=None, now=now)
    row.urgency, row.rule_id = opening.urgency, opening.rule.id
    row.alerts = len(opening.alerts)
    return row
