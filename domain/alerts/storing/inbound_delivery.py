"""A delivery on its way in."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.alerts.reading.incoming import IncomingAlert
from domain.alerts.reading.mapping import UNMAPPED, FieldMapping, stored_form
from domain.clock import Stopwatch

#: Microseconds that the column can hold, more than half an hour.
_LONGEST = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    """A request's body, and where it came from and goes to."""

    project_id: int
    integration_id: int
    #: http or prometheus.
    format: str
    sender: str
    body: bytes = field(repr=False)
    #: As it came; a body that was refused unread has a size all the same.
    size: int
    received_at: datetime
    #: Runs since the request arrived.
    stopwatch: Stopwatch = field(repr=False)
    #: What it is read by.
    mapping: FieldMapping = UNMAPPED
    is_test: bool = False

    def without_body(self) -> "Parcel":
        """Return the parcel without what a stranger put into it."""
        return replace(self, body=b"")


def delivery_values(parcel: Parcel) -> dict[str, Any]:
    """Return the columns of a delivery that do not depend on what becomes of it."""
    return {
        "project_id": parcel.project_id,
        "integration_id": parcel.integration_id,
        "format": parcel.format,
        "mapping": stored_form(parcel.mapping),
        "is_test": parcel.is_test,
        "received_at": parcel.received_at,
        "sender": parcel.sender,
        "size": parcel.size,
        "body": parcel.body or None,
        "duration": min(parcel.stopwatch(), _LONGEST),
    }


def alert_values(alert: IncomingAlert, parcel: Parcel) -> dict[str, Any]:
    """Return the columns of a new alert that the payload decides."""
    return {
        "project_id": parcel.project_id,
        "integration_id": parcel.integration_id,
        "item_index": alert.item_index,
        "fingerprint": alert.fingerprint,
        "severity": alert.severity.rank,
        "severity_reason": alert.severity_reason,
        "title": alert.title,
        "description": alert.description,
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": "\n".join(alert.hosts),
        "query": alert.query or "",
        "environment": alert.environment,
        "started_at": alert.started_at,
        "last_event_at": parcel.received_at,
        "created_at": parcel.received_at,
    }
