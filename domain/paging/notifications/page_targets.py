"""What pages are about: alerts and incidents. Both have a project, a severity and a status."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, SQLColumnExpression, func, select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from models import Alert, Incident, Page


class Subject(StrEnum):
    """What a page is about; the value is its name in a sentence."""

    ALERT = "alert"
    INCIDENT = "incident"

    @property
    def column(self) -> SQLColumnExpression[int | None]:
        """The column with its id; in each page one of them has a value."""
        return Page.alert_id if self is Subject.ALERT else Page.incident_id


class About(NamedTuple):
    """An alert or an incident."""

    subject: Subject
    id: int

    @property
    def columns(self) -> dict[str, int | None]:
        """The columns of a page about it."""
        return {
            "alert_id": self.id if self.subject is Subject.ALERT else None,
            "incident_id": self.id if self.subject is Subject.INCIDENT else None,
        }


#: The rank of an incident's severity, as alerts have it: 0 for critical.
RANK_OF_INCIDENT = len(SEVERITIES) - 1 - Incident.urgency
#: Of a page that is joined with both tables.
PROJECT_ID: ColumnElement[int] = func.coalesce(Alert.project_id, Incident.project_id)
SEVERITY: ColumnElement[int] = func.coalesce(Alert.severity, RANK_OF_INCIDENT)


def severities_of(things: Collection[About], *, session: Session) -> Mapping[About, int]:
    """Return the ranks of severities; what does not exist any more is left out."""
    found: dict[About, int] = {}
    for subject, key, severity in (
        (Subject.ALERT, Alert.id, Alert.severity),
        (Subject.INCIDENT, Incident.id, RANK_OF_INCIDENT),
    ):
        if ids := {each.id for each in things if each.subject is subject}:
            rows = session.execute(select(key, severity).where(key.in_(ids)))
            found.update((About(subject, row[0]), row[1]) for row in rows)
    return found


def rank_of(thing: Alert | Incident) -> int:
    """Return the rank of the severity: 0 for critical."""
    return thing.severity if isinstance(thing, Alert) else len(SEVERITIES) - 1 - thing.urgency


def shown_title(thing: Alert | Incident) -> str:
    """Return the title, which says of an incident that it is one."""
    return thing.title if isinstance(thing, Alert) else f"Incident: {thing.title}"


def counted(alerts: int, incidents: int) -> str:
    """Return how many there are, in words: `2 alerts and 1 incident`."""
    counts = ((alerts, "alert"), (incidents, "incident"))
    words = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
    return " and ".join(words)
