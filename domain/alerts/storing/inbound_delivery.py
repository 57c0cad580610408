"""A request to a receiver before it is stored, and the column values made from it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import perf_counter_ns

from domain.alerts.formats.base import Format
from domain.alerts.reading.incoming import IncomingAlert
from domain.alerts.reading.mapping import UNMAPPED, FieldMapping
from domain.alerts.storing.lifecycle import Arrival
from domain.core.database.statements import KeptConnection
from domain.core.errors import DomainError

#: Largest duration that the column holds, in microseconds: more than half an hour.
_LONGEST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Receiving:
    """What a deployment receives deliveries with."""

    connection: KeptConnection
    #: Returns how many bytes a body of a format may not reach.
    body_limit: Callable[[Format], int]
    #: For how long after a recovery copies of its alert arrive late.
    late_copies: timedelta
    #: Returns the status code of the response to a delivery that an error refuses.
    status_of: Callable[[DomainError], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class InboundDelivery:
    """The body of a request, its sender, and the integration that receives it."""

    project_id: int
    #: None for what the service itself reports.
    integration_id: int | None
    #: The name of the format.
    format: str
    #: IP address of the client, or name of the user who sent a test alert.
    sender: str
    body: bytes = field(repr=False)
    #: In bytes as received; also set if the body was refused unread.
    size: int
    received_at: datetime
    #: When the request arrived, by `time.perf_counter_ns`.
    began_ns: int
    #: The mapping that the body is read with.
    mapping: FieldMapping = UNMAPPED
    #: The monitor of the integration, which its alerts belong to.
    monitor_id: int | None = None
    is_test: bool = False
    #: As the client calls itself; stored if the delivery is refused.
    user_agent: str | None = None
    #: For how long after a recovery copies of its alert arrive late; zero for what has no copies.
    late_copies: timedelta = timedelta(0)
    #: When a body arrived that is replayed now.
    first_received_at: datetime | None = None

    @property
    def arrival(self) -> Arrival:
        """What decides whether its items are late copies."""
        first = min(self.first_received_at or self.received_at, self.received_at)
        return Arrival(
            self.received_at,
            recovered_after=first - self.late_copies,
            # A recovery may have been received by a host whose clock runs ahead.
            recovered_before=self.received_at + self.late_copies,
        )


def delivery_values(delivery: InboundDelivery) -> dict[str, object]:
    """Return the columns of a delivery that do not depend on its outcome."""
    return {
        "project_id": delivery.project_id,
        "integration_id": delivery.integration_id,
        "format": delivery.format,
        "mapping": delivery.mapping.stored,
        "is_test": delivery.is_test,
        "received_at": delivery.received_at,
        "sender": delivery.sender,
        "size": delivery.size,
        "body": delivery.body or None,
        "duration": min((perf_counter_ns() - delivery.began_ns) // 1_000, _LONGEST),
    }


def alert_values(alert: IncomingAlert, delivery: InboundDelivery) -> dict[str, object]:
    """Return the columns of a new alert that come from its payload and its delivery."""
    return {
        "project_id": delivery.project_id,
        "integration_id": delivery.integration_id,
        "item_index": alert.item_index,
        "fingerprint": alert.fingerprint,
        "monitor_id": delivery.monitor_id,
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
        "last_event_at": delivery.received_at,
        "created_at": delivery.received_at,
    }
