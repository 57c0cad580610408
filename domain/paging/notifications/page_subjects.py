"""Subjects of pages: alerts and incidents, which have a project, a severity and a status."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, SQLColumnExpression, func, select
from sqlalchemy.orm import Session

from domain.alerts.listing.filters import SEVERITIES
from models import Alert, Incident, Page


class SubjectKind(StrEnum):
    """The kind of subject of a page. The value is the noun that messages use for the subject."""

    ALERT = "alert"
    INCIDENT = "incident"

    @property
    def column(self) -> SQLColumnExpression[int | None]:
        """The column of the page table that stores the ID of the subject.

        In each page, only one of the two columns is set.
        """
        return Page.alert_id if self is SubjectKind.ALERT else Page.incident_id


class PageSubject(NamedTuple):
    """An alert or incident that a page is about."""

    subject: SubjectKind
    id: int

    @property
    def columns(self) -> dict[str, int | None]:
        """Values of both ID columns for a page about this subject."""
        return {
            "alert_id": self.id if self.subject is SubjectKind.ALERT else None,
            "incident_id": self.id if self.subject is SubjectKind.INCIDENT else None,
        }

    @property
    def form_value(self) -> str:
        """Value in the acknowledgement form, such as `12` or `incident-3`."""
        return f"incident-{self.id}" if self.subject is SubjectKind.INCIDENT else str(self.id)


#: Rank of an incident's severity on the severity scale of alerts, where 0 is critical.
INCIDENT_SEVERITY_RANK = len(SEVERITIES) - 1 - Incident.urgency
#: Project and severity of the subject, for queries that join pages with both tables.
SUBJECT_PROJECT_ID: ColumnElement[int] = func.coalesce(Alert.project_id, Incident.project_id)
SUBJECT_SEVERITY: ColumnElement[int] = func.coalesce(Alert.severity, INCIDENT_SEVERITY_RANK)


def find_severity_ranks(
    subjects: Collection[PageSubject], *, session: Session
) -> Mapping[PageSubject, int]:
    """Return the severity ranks of subjects.

    Subjects that no longer exist are left out.
    """
    found: dict[PageSubject, int] = {}
    for subject, key, severity in (
        (SubjectKind.ALERT, Alert.id, Alert.severity),
        (SubjectKind.INCIDENT, Incident.id, INCIDENT_SEVERITY_RANK),
    ):
        if ids := {each.id for each in subjects if each.subject is subject}:
            rows = session.execute(select(key, severity).where(key.in_(ids)))
            found.update((PageSubject(subject, row[0]), row[1]) for row in rows)
    return found


def get_severity_rank(subject: Alert | Incident) -> int:
    """Return the severity rank of an alert or incident, where 0 is critical."""
    return subject.severity if isinstance(subject, Alert) else len(SEVERITIES) - 1 - subject.urgency


def format_title(subject: Alert | Incident) -> str:
    """Return the title of an alert or incident, with the prefix `Incident:` for an incident."""
    return subject.title if isinstance(subject, Alert) else f"Incident: {subject.title}"


def format_subject_counts(alerts: int, incidents: int) -> str:
    """Format the numbers of alerts and incidents, such as `2 alerts and 1 incident`."""
    counts = ((alerts, "alert"), (incidents, "incident"))
    words = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts if n]
    return " and ".join(words)
