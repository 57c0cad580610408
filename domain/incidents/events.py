"""Audit events about incidents and their rules."""

from collections.abc import Mapping

from domain.audit.events import Event, EventKind
from domain.incidents.rules import RuleView
from domain.incidents.views import IncidentView


def incident_created(incident: IncidentView, project_path: str, **details: object) -> Event:
    """Return the event of a new incident."""
    alerts = {"alerts": list(incident.alerts)} if incident.alerts else {}
    return _about(incident, project_path, EventKind.INCIDENT_CREATED, {**alerts, **details})


def incident_changed(incident: IncidentView, project_path: str, **details: object) -> Event:
    """Return the event of a change of an incident, its comments or its alerts."""
    return _about(incident, project_path, EventKind.INCIDENT_CHANGED, details)


def incident_removed(incident: IncidentView, project_path: str) -> Event:
    """Return the event of a deletion."""
    return _about(incident, project_path, EventKind.INCIDENT_REMOVED, {})


def rule_event(kind: EventKind, rule: RuleView, project_path: str) -> Event:
    """Return the event of a new, changed or deleted rule."""
    return Event(
        kind=kind,
        subject=rule.name,
        details={
            "project": project_path,
            "id": rule.id,
            **rule.conditions.to_json(),
            "close_when_resolved": rule.closes_when_resolved,
            "open_when_silenced": rule.opens_when_silenced,
            "active": rule.is_active,
        },
    )


def _about(
    incident: IncidentView, project_path: str, kind: EventKind, details: Mapping[str, object]
) -> Event:
    return Event(
        kind=kind,
        subject=incident.title,
        details={"project": project_path, "iid": incident.iid, **details},
    )
