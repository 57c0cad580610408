"""Frozen views of incidents."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from domain.alerts.reading.incoming import Severity

_SEVERITIES = tuple(Severity)
#: The urgency of critical.
HIGHEST_URGENCY = len(_SEVERITIES) - 1
#: The most linked alerts that an incident names; it has the number of all.
MOST_NAMED_ALERTS = 100


class IncidentStatus(StrEnum):
    """The status of an incident."""

    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


STATUSES = tuple(status.value for status in IncidentStatus)
OPEN_STATUSES = (IncidentStatus.TRIGGERED.value, IncidentStatus.ACKNOWLEDGED.value)


def urgency_of(severity: Severity) -> int:
    """Return the severity as it is stored: 0 for unknown to 5 for critical."""
    return HIGHEST_URGENCY - severity.rank


def severity_of(urgency: int) -> Severity:
    """Return the severity that is stored so."""
    return _SEVERITIES[HIGHEST_URGENCY - urgency]


class Person(NamedTuple):
    """Somebody who did something to an incident, or looks after it."""

    #: None if the account was deleted.
    id: int | None
    username: str


@dataclass(frozen=True, kw_only=True)
class IncidentView:
    """An incident with its assignees and alerts."""

    id: int
    iid: int
    project_id: int
    title: str
    #: Markdown.
    description: str
    severity: Severity
    status: IncidentStatus
    assignees: Sequence[Person]
    #: Numbers (iid) of the first MOST_NAMED_ALERTS linked alerts.
    alerts: Sequence[int]
    #: The number of linked alerts.
    alert_count: int
    closes_when_resolved: bool
    #: None if a rule or command opened it.
    author: Person | None
    rule_id: int | None
    created_at: datetime
    updated_at: datetime
    acknowledged_at: datetime | None
    resolved_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to work on it."""
        return self.status is not IncidentStatus.RESOLVED
