"""A delivery on its way in."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.alerts.incoming import IncomingAlert


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    """A request's body, and where it came from and goes to."""

    project_id: int
    integration_id: int
    #: http or prometheus.
    format: str
    sender: str
    body: bytes = field(repr=False)
    received_at: datetime
    is_test: bool = False

    def without_body(self) -> "Parcel":
        """Return the parcel without what a stranger put into it."""
        return replace(self, body=b"")


def alert_values(alert: IncomingAlert, parcel: Parcel) -> dict[str, Any]:
    """Return the columns of a new alert that the payload decides."""
    return {
        "project_id": parcel.project_id,
        "integration_id": parcel.integration_id,
        "item_index": alert.item_index,
        "fingerprint": alert.fingerprint,
        "severity": alert.severity.rank,
        "title": alert.title,
        "description": alert.description,
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": "\n".join(alert.hosts),
        "environment": alert.environment,
        "started_at": alert.started_at,
        "last_event_at": parcel.received_at,
        "created_at": parcel.received_at,
    }
